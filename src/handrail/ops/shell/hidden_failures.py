"""Tells from the text of a command what its exit status and its output hide: a part that failed, and why.

Both are judged by the text alone, so they serve hints for the model; no code decides anything else by them.
"""

import re

from handrail.ops.shell.command_programs import parse_command
from handrail.ops.shell.started import Argv

_SINGLE_QUOTED = re.compile(r"'[^']*'|\\.", re.DOTALL)
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.", re.DOTALL)
_GOES_ON = re.compile(r"[;|\n]|(?<![&>])&(?![&>])|(?:^|\s)(?:if|while|until|!)\s")
"""Operators after which a command continues although its part before them failed. `a && b` does not."""
_SUBSTITUTES = re.compile(r"\$\((?!\()|`|[<>]\(")
_DISCARDS = re.compile(r"(?:2|&)>>?\s*/dev/null|2>\s*&-|>>?\s*/dev/null\s+2>\s*&1|>&\s*/dev/null")
_TARGET = re.compile(r"(?<![<0-9])[0-9]?>{1,2}\|?\s*([^\s;&|<>()'\"$`]+)")
_CHANGES_ALL = frozenset({"touch", "mkdir", "rm", "rmdir", "mv", "tee", "truncate", "chmod", "chown", "unlink"})
_CHANGES_LAST = frozenset({"cp", "ln", "install", "rsync"})
_GIT_CHANGES = frozenset({"--add", "--unset", "--unset-all", "--replace-all", "--rename-section", "--remove-section"})
_GIT_ELSEWHERE = frozenset({"--global", "--system", "--file", "-f", "--blob"})


def hides_failure(text: str) -> bool:
    """Return whether a part of a command can fail although the exit status of the command is 0."""
    bare = _QUOTED.sub("x", text).strip(" \t\n;")
    return bool(_GOES_ON.search(bare) or _SUBSTITUTES.search(_SINGLE_QUOTED.sub("x", text)))


def discards_errors(text: str) -> bool:
    """Return whether a command sends error messages to /dev/null, so that no output says why a part failed."""
    return _DISCARDS.search(_QUOTED.sub("x", text)) is not None


def named_changes(text: str) -> list[str]:
    """Return the paths that a command names in order to create, change or delete them; not every one is found."""
    targets = _TARGET.findall(_SINGLE_QUOTED.sub("x", text))
    return [*targets, *(path for argv in parse_command(text).commands for path in _changed_by(argv))]


def changes_git_config(text: str) -> bool:
    """Return whether a command sets something in the configuration of a repository."""
    return any(_sets_git_config(argv) for argv in parse_command(text).commands)


def _changed_by(argv: Argv) -> list[str]:
    program, words = argv[0], [word for word in argv[1:] if word is not None]
    operands = [word for word in words if not word.startswith("-")]
    if program in _CHANGES_ALL or (program == "sed" and any(word.startswith("-i") for word in words)):
        return operands
    if program in _CHANGES_LAST:
        return operands[-1:]
    return [word.removeprefix("of=") for word in operands if program == "dd" and word.startswith("of=")]


def _sets_git_config(argv: Argv) -> bool:
    if argv[0] != "git" or "config" not in argv:
        return False
    words = [word or "x" for word in argv[argv.index("config") + 1 :]]
    if not _GIT_ELSEWHERE.isdisjoint(words):
        return False
    operands = [word for word in words if not word.startswith("-")]
    return (len(operands) > 1 and operands[0] not in ("get", "list")) or not _GIT_CHANGES.isdisjoint(words)
