"""Reads the short form of a rule, as a user writes it, and says in a sentence what it allows.

`edit src/**` covers changes of files, by globs relative to the workspace. `fetch docs.python.org` covers the pages of a
host. Everything else is a command: `git status` is exactly that command, `git status *` also takes further words. A
rule is about what a call does, so it covers the tools of all dialects.
"""

import re
import shlex
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from handrail.errors import RuleError
from handrail.model.faults import InvalidPattern
from handrail.model.paths import MEMORIES
from handrail.ops.glob.globs import Glob, compile_globs, expand_braces
from handrail.ops.glob.guarded_names import GUARDED, guarded_place

ONE, REST = "*", "..."
"""In the words of a command: one argument that is not an option, and any further arguments."""
EDIT, FETCH, RUN = "edit", "fetch", "run"
ALL_EDITS = f"{EDIT} **"

_STAR = "\ue000"
_WHOLE_STAR = re.compile(r"(?<!\S)\*(?!\S)")
_PROGRAM = re.compile(r"(?!\.\.(?!/))[\w./@+~:-]*[^\W_][\w./@+~:-]*")
_HOST = re.compile(r"(?:\*|(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?(?::[0-9]{1,5})?)")


class RuleText(NamedTuple):
    """Holds a rule in its short form."""

    kind: str
    """One of `edit`, `fetch` and `run`."""
    words: tuple[str, ...]
    """Globs, hosts, or the words of a command with `*` and a final `...` as in `argv`."""

    @property
    def open(self) -> bool:
        """True if a command rule also covers words that it does not name."""
        return ONE in self.words or REST in self.words


def is_short(text: str) -> bool:
    """Return whether a text is a rule in its short form: a regular expression for JSON never begins with a name."""
    return bool(_PROGRAM.fullmatch((text.split() or [""])[0]))


@lru_cache(maxsize=256)
def parse_rule(text: str) -> RuleText:
    """Read a rule in its short form. Raises RuleError with the reason if it has no meaning or can never match."""
    kind, _, rest = text.strip().partition(" ")
    if kind == EDIT:
        return RuleText(EDIT, _globs(rest))
    if kind == FETCH:
        return RuleText(FETCH, _hosts(rest))
    return RuleText(RUN, _command(rest if kind == RUN else text))


def sentence(text: str) -> str:
    """Return what a rule allows, as the end of a sentence: "run commands that begin with `git status`"."""
    rule = parse_rule(text)
    if rule.kind == EDIT:
        return f"create, change and delete {_files(rule.words)}"
    if rule.kind == FETCH:
        return f"fetch pages from {_listed([_host_words(host) for host in rule.words])}"
    shown, one = _shown(rule), f", where {ONE} is one word" if ONE in rule.words else ""
    if rule.words[-1] == REST:
        return f"run commands that begin with `{shown}`{one}"
    return f"run `{shown}`{one or ', exactly so'}"


def brief(text: str) -> str:
    """Return what a rule allows in few words, for a list of answers: "run `git status …`"."""
    rule = parse_rule(text)
    if rule.kind == EDIT:
        return f"edit {_files(rule.words)}"
    if rule.kind == FETCH:
        return sentence(text)
    return f"run `{_shown(rule)}{' …' if rule.words[-1] == REST else ''}`"


@lru_cache(maxsize=256)
def glob_of(words: tuple[str, ...], *, fold_case: bool = False) -> Glob:
    """Return the compiled globs of a rule for edits."""
    return compile_globs([word.removeprefix("/") for word in words], fold_case=fold_case)


def covers_file(words: tuple[str, ...], target: str, *, fold_case: bool = False) -> bool:
    """Return whether the globs of a rule cover a file. Globs for the memory begin with `/memories`; others are not."""
    same_tree = tuple(word for word in words if word.startswith("/") == target.startswith("/"))
    return bool(same_tree) and bool(glob_of(same_tree, fold_case=fold_case).matches(target.removeprefix("/")))


def covers_host(words: tuple[str, ...], host: str) -> bool:
    """Return whether the hosts of a rule cover a host; `*.python.org` covers the names below it, and not itself."""
    return any(word in (ONE, host) or (word[:2] == "*." and host.endswith(word[1:])) for word in words)


def _globs(text: str) -> tuple[str, ...]:
    words = _split(text)
    if not words:
        raise RuleError("edit needs a path: `edit src/**` for a directory, `edit **` for every file of the workspace")
    for word in words:
        if word.startswith("~") or (word.startswith("/") and not word.startswith(f"{MEMORIES}/")):
            raise RuleError(f"`{word}` can never match: paths in rules are relative to the workspace, as in src/**")
        if ".." in word.split("/"):
            raise RuleError(f"`{word}` can never match: no tool changes files outside the workspace")
        try:
            glob_of((word,))
        except InvalidPattern as fault:
            raise RuleError(f"`{word}` is not a glob: {fault.reason}") from None
    return tuple(words)


def why_never(text: str) -> str:
    """Return why a rule that allows can never match; empty if it can."""
    rule = parse_rule(text)
    if rule.kind == EDIT:
        return _why_guarded(rule.words)
    return _why_unreadable(rule) if rule.kind == RUN else ""


def _why_guarded(globs: tuple[str, ...]) -> str:
    """Return the reason if all files that one glob names are guarded."""
    for word in globs:
        for plain in expand_braces(word):
            literal = [part for part in plain.split("/") if not re.search(r"[*?\[\\]", part)]
            if name := guarded_place("/".join(literal), GUARDED):
                return f"`{word}` can never match: {name} is guarded, so every change of it is asked about"
    return ""


def _why_unreadable(rule: RuleText) -> str:
    """Return the reason if Handrail cannot read, and so never approves by rule, commands with these words."""
    from handrail.ops.shell.command_programs import parse_command  # noqa: PLC0415  only when a rule is made
    from handrail.ops.shell.program_kinds import runs_words  # noqa: PLC0415  only when a rule is made

    words = tuple("x" if word in (ONE, REST) else word for word in rule.words)
    line, shown = parse_command(shlex.join(words)), shlex.join(word for word in rule.words if word not in (ONE, REST))
    if line.assigns:
        return f"`{shown}` can never match: it sets {', '.join(line.assigns)}"
    if line.unknown or not line.commands:
        return f"`{shown}` can never match: its words do not show which programs it runs"
    if rule.open and runs_words(words):
        return f"`{shown}` can never match with further words: they may be code; name the whole command"
    return ""


def _hosts(text: str) -> tuple[str, ...]:
    words = _split(text)
    if not words:
        raise RuleError("fetch needs a host: `fetch docs.python.org`")
    hosts = []
    for word in words:
        if "/" in word or "@" in word:
            raise RuleError(f"`{word}` is not a host: name only the host, as in `fetch docs.python.org`")
        try:
            host = word.lower().rstrip(".").encode("ascii" if word.isascii() else "idna").decode()
        except UnicodeError:
            host = ""
        port = host.partition(":")[2]
        if port.isdecimal() and not 0 < int(port) < 65536:
            raise RuleError(f"`{word}`: there is no port {port}; ports are 1 to 65535")
        if not _HOST.fullmatch(host):
            raise RuleError(f"`{word}` is not a host name; * stands only for all names below one, as in *.python.org")
        hosts.append(host)
    return tuple(hosts)


def _command(text: str) -> tuple[str, ...]:
    from handrail.ops.shell.command_programs import plain_argv  # noqa: PLC0415  only rules for commands need it

    words = plain_argv(_WHOLE_STAR.sub(_STAR, text))
    if words is None:
        raise RuleError(f"`{text.strip()}` can never match: {_why_not_plain(text)}")
    if any(word in (ONE, REST) for word in words):
        raise RuleError(f"`{text.strip()}`: a rule cannot name a word that is {ONE} or {REST} itself")
    found = [ONE if word == _STAR else word.replace(_STAR, ONE) for word in words]
    if found[0] == ONE:
        raise RuleError("a rule for commands begins with a program, as in `git status *`")
    return (*found[:-1], REST) if found[-1] == ONE else tuple(found)


def _why_not_plain(text: str) -> str:
    if not text.strip():
        return "it names no command"
    if re.search(r"(?<=\S)\*|\*(?=\S)", text):
        return _mistyped_kind(text) or "* stands for whole words, as in `npm run *`"
    if re.match(r"\s*\w+=", text):
        return "it sets a variable; a rule names a program and its words"
    return "a rule names one command without operators, redirections and expansions; add one rule for each command"


def _mistyped_kind(text: str) -> str:
    """Return a hint if the first word of a rule with a glob looks like a mistyped or translated `edit`."""
    from difflib import get_close_matches  # noqa: PLC0415  only wrong rules need it

    first, _, rest = text.strip().partition(" ")
    if first.lower() == "read":
        return "reading needs no rule, because it never asks; a rule for changes is written as `edit src/**`"
    if first.lower() == "write" or get_close_matches(first.lower(), [EDIT], 1, 0.75):
        return f"unknown kind of rule {first}; did you mean `{EDIT} {rest.strip()}`?"
    return ""


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise RuleError(f"`{text.strip()}`: {str(error).lower()}") from None


def _shown(rule: RuleText) -> str:
    """Return the words that a rule for commands names."""
    return shlex.join(word for word in rule.words if word != REST).replace(f"'{ONE}'", ONE)


def _files(globs: tuple[str, ...]) -> str:
    if globs == ("**",):
        return "any workspace file"
    below = [each.removesuffix("**") for each in globs if each.endswith("/**")]
    if len(below) == len(globs) and not any("*" in each for each in below):
        return f"files below {_listed(below)}"
    return f"files that match {_listed(globs)}" if any("*" in each for each in globs) else _listed(globs)


def _host_words(host: str) -> str:
    return "every host" if host == ONE else f"every host below {host[2:]}" if host[:2] == "*." else host


def _listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
