"""Determines what programs that start other programs, such as sudo or xargs, would run.

An argument that is known only at run time is None. Options are read as each program declares them. An option that is
not in the table could take the program's name as its value, so it makes the result unknown.
"""

import re
from typing import NamedTuple

from handrail.ops.shell.shell_builtins import judge_builtin
from handrail.ops.shell.started import Argv, StartedPrograms

_ASSIGNMENT = re.compile(r"([A-Za-z_][^= ]*)=", re.ASCII)


class _Wrapper(NamedTuple):
    """Describes the options and operands of a program that starts another program."""

    short: str = ""
    """The short options, written as for getopt."""
    long: str = ""
    """The long options, separated by spaces, with `=` after those that take a value."""
    skip: int = 0
    """The number of operands before the program."""
    default: str = ""
    """The program that runs if none is given."""
    appends: bool = False
    """True if more arguments come from elsewhere."""

    def takes_value(self, option: str) -> bool | None:
        """Return whether the next word is the option's value; None if the option is unknown."""
        if option.startswith("--"):
            name, given, _ = option[2:].partition("=")
            if name + "=" in self.long.split():
                return not given
            return False if name in self.long.split() and not given else None
        for i, letter in enumerate(option[1:], 2):
            place = self.short.find(letter)
            if place < 0 or letter == ":":
                return None
            if self.short[place + 1 : place + 2] == ":":
                return i == len(option)
        return False


_WRAPPERS = {
    "builtin": _Wrapper(),
    "busybox": _Wrapper(),
    "chroot": _Wrapper(skip=1),
    "command": _Wrapper("pvV"),
    "doas": _Wrapper("Lnu:C:"),
    "env": _Wrapper("iv0u:C:", "ignore-environment null debug unset= chdir="),
    "exec": _Wrapper("cla:"),
    "ionice": _Wrapper("tc:n:", "ignore class= classdata="),
    "nice": _Wrapper("0123456789n:", "adjustment="),
    "nohup": _Wrapper(),
    "setsid": _Wrapper("cfw", "ctty fork wait"),
    "stdbuf": _Wrapper("i:o:e:", "input= output= error="),
    "sudo": _Wrapper("AbEHknPSu:g:h:p:C:D:R:T:r:t:", "non-interactive preserve-env user= group= chdir="),
    "taskset": _Wrapper("a", "all-tasks", skip=1),
    "time": _Wrapper("apqvf:o:", "append portability verbose format= output="),
    "timeout": _Wrapper("vs:k:", "foreground preserve-status verbose signal= kill-after=", skip=1),
    "toybox": _Wrapper(),
    "xargs": _Wrapper(
        "0oprtxa:d:E:I:L:n:P:s:",
        "null no-run-if-empty verbose exit arg-file= delimiter= max-lines= max-args= max-procs=",
        default="echo",
        appends=True,
    ),
}
_GIT = _Wrapper("pPC:", "bare no-pager paginate no-optional-locks literal-pathspecs git-dir= work-tree=")
"""The harmless options of git: others, such as -c and --exec-path, can name a pager, an alias, a program directory."""
_SHELLS = frozenset({"sh", "bash", "rbash", "dash", "ash", "ksh", "lksh", "mksh", "pdksh", "posh", "yash", "zsh"})
_VERSION = re.compile(r"[-.0-9]+(?:-?static)?$|-static$")
_OPAQUE = frozenset(
    {
        ".",
        "source",
        "at",
        "batch",
        "coproc",
        "fish",
        "flock",
        "nsenter",
        "parallel",
        "runuser",
        "script",
        "strace",
        "su",
    }
    | {"systemd-run", "unshare", "watch"}
    | {"alias", "bind", "compgen", "complete", "enable", "fc", "hash", "mapfile", "readarray"}
)
"""Programs that run the content of a file or the value of their own options, or change the meaning of a name."""
_PUTS_INPUT = re.compile(r"-[0oprtx]*I(.*)", re.DOTALL)
"""An option of xargs that names the mark for its input, alone or behind options without a value."""
_FIND_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FD_ACTIONS = frozenset({"-x", "--exec", "-X", "--exec-batch"})


def is_followed(name: str) -> bool:
    """Return whether `started_by` finds everything that a program of this name starts."""
    return name in _WRAPPERS or _is_shell(name) or name in ("eval", "trap", "find", "fd", "fdfind")


def _is_shell(name: str) -> bool:
    return name in _SHELLS or _VERSION.sub("", name) in _SHELLS


def started_by(argv: Argv) -> StartedPrograms:
    """Return what the program of `argv` would start, one layer deep."""
    if argv[0] is None:
        return StartedPrograms(unknown=True)
    name, rest = argv[0].rsplit("/", 1)[-1], argv[1:]
    if name in _WRAPPERS:
        return _unwrap(_WRAPPERS[name], _without_input(rest) if name == "xargs" else rest)
    if _is_shell(name):
        return _shell(rest)
    if name in ("eval", "trap"):
        return _script(rest if name == "eval" else rest[:1])
    if name in ("find", "fd", "fdfind"):
        return _find(rest, _FIND_ACTIONS if name == "find" else _FD_ACTIONS)
    return judge_builtin(name, rest) or StartedPrograms(
        unknown=name in _OPAQUE or (name == "git" and _options(_GIT, rest)[1])
    )


def _without_input(words: Argv) -> Argv:
    """Return the words of xargs, with None for each word into which it puts its input (`-I`, also as in `-0I%`)."""
    marks: list[str | None] = []
    first = 0
    for i, word in enumerate(words):
        if found := _PUTS_INPUT.match(word or ""):
            marks.append(found[1] or next(iter(words[i + 1 : i + 2]), None))
            first = first or i + (1 if found[1] else 2)
    if not marks:
        return words
    put_in = (None if any(not mark or mark in (each or "") for mark in marks) else each for each in words[first:])
    return (*words[:first], *put_in)


def _unwrap(wrapper: _Wrapper, words: Argv) -> StartedPrograms:
    """Return the command that follows the options, assignments and operands of a wrapper."""
    i, unknown = _options(wrapper, words)
    started = StartedPrograms(unknown=unknown)
    while i < len(words) and (match := _ASSIGNMENT.match(words[i] or "")):
        started.unknown |= match[1].endswith("%%")  # a function that a shell inherits
        started.assigns.append(match[1])  # env A=1 prog, sudo A=1 prog: no program has such a name
        started.sets.append((match[1], (words[i] or "")[match.end() :]))
        i += 1
    started.unknown |= None in words[i : i + wrapper.skip]
    inner = words[i + wrapper.skip :] or ((wrapper.default,) if wrapper.default else ())
    if inner:
        started.argvs.append((*inner, None) if wrapper.appends else inner)
    return started


def _options(wrapper: _Wrapper, words: Argv) -> tuple[int, bool]:
    """Return the index of the first operand, and whether that is uncertain."""
    i, unknown = 0, False
    while i < len(words):
        word = words[i]
        if word is None:
            return i, True
        if not word.startswith("-"):
            break
        if word == "--":
            return i + 1, unknown
        value = wrapper.takes_value(word)
        unknown |= value is None
        i += 2 if value else 1
    return min(i, len(words)), unknown


def _shell(words: Argv) -> StartedPrograms:
    """Return the script of `sh -c`; any other use of a shell is unknown."""
    i, script = 0, False
    while i < len(words):
        word = words[i]
        if word is None:
            return StartedPrograms(unknown=True)
        i += 1
        if word in ("-", "--"):
            break
        if word.startswith("--"):
            i += word in ("--rcfile", "--init-file")
        elif word.startswith(("-", "+")):
            script |= "c" in word
            i += word.lower().count("o")  # each `o` takes one more word, as in `-euo pipefail`
        else:
            i -= 1
            break
    return _script(words[i : i + 1]) if script else StartedPrograms(unknown=True)


def _script(words: Argv) -> StartedPrograms:
    known = [word for word in words if word is not None]
    if len(known) < len(words) or (known and known[0].startswith("-")):
        return StartedPrograms(unknown=True)
    return StartedPrograms(scripts=[" ".join(known)])


def _find(words: Argv, actions: frozenset[str]) -> StartedPrograms:
    """Return the commands that find or fd runs with its actions."""
    started = StartedPrograms(unknown=None in words)
    i = 0
    while i < len(words):
        i += 1
        if words[i - 1] not in actions:
            continue
        end = i
        while end < len(words) and words[end] != ";" and words[end - 1 : end + 1] != ("{}", "+"):
            end += 1
        inner = tuple(None if word is None or "{" in word else word for word in words[i:end])
        if inner:
            started.argvs.append((*inner, None))
        i = end
    return started
