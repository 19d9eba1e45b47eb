"""Judges shell builtins that take names or expressions: a name may be an array element with an evaluated subscript.

`read 'a[$(rm v)]'` runs rm. `test -v`, `printf -v`, `unset`, `let` and `declare -i` evaluate their arguments too.
"""

import re
from collections.abc import Callable

from handrail.ops.shell.evaluation import PLAIN_NAME, Evaluated
from handrail.ops.shell.started import Argv, StartedPrograms

_ASSIGNED = re.compile(r'"?([A-Za-z_][A-Za-z_0-9]*)\+?=', re.ASCII)
_READ_VALUES = "adinNptu"
_INTEGER, _REFERENCE = "i", "n"
_ARRAYS = frozenset("aA")


def judge_builtin(name: str, words: Argv) -> StartedPrograms | None:
    """Return what a builtin that takes names or expressions (`read`, `let`, `test`) sets and evaluates; else None."""
    judge = _JUDGES.get(name)
    return judge(words) if judge else None


def _let(words: Argv) -> StartedPrograms:
    found = Evaluated()
    for word in words:
        if word is None:
            return StartedPrograms(unknown=True)
        found.arithmetic(word)
    return StartedPrograms(unknown=found.unsure, evaluated=found.names)


def _read(words: Argv) -> StartedPrograms:
    names: list[str | None] = []
    i = 0
    while i < len(words):
        word = words[i]
        i += 1
        if word is None or not word.startswith("-") or word == "-":
            names.append(word)
            continue
        at = next((at for at, letter in enumerate(word) if letter in _READ_VALUES), 0)
        if at:
            value = (word[at + 1 :],) if word[at + 1 :] else words[i : i + 1]
            i += not word[at + 1 :]
            names += value if word[at] == "a" else ()
    return _setting(names)


def _printf(words: Argv) -> StartedPrograms:
    first, second = (*words, "", "")[:2]
    if first is None:  # the word may be -v
        return StartedPrograms(unknown=second is None or "[" in second)
    if not first.startswith("-v"):
        return StartedPrograms()
    return _setting([first[2:] or second])


def _getopts(words: Argv) -> StartedPrograms:
    return _setting([*words[1:2], "OPTARG"])


def _wait(words: Argv) -> StartedPrograms:
    names: list[str | None] = []
    for i, word in enumerate(words):
        option, found, glued = (word or "").partition("p")
        if option.startswith("-") and found:
            names += [glued] if glued else words[i + 1 : i + 2]
    return _setting(names)


def _unset(words: Argv) -> StartedPrograms:
    found = Evaluated()
    for word in words:
        if word is None:
            return StartedPrograms(unknown=True)
        if not word.startswith("-"):
            found.lookup(word)
    return StartedPrograms(unknown=found.unsure, evaluated=found.names)


def _test(words: Argv) -> StartedPrograms:
    found = Evaluated()
    for i, word in enumerate(words):
        if word in ("-v", "-R"):
            found.lookup("".join(each or "$" for each in words[i + 1 : i + 2]))
    return StartedPrograms(unknown=found.unsure, evaluated=found.names)


def _declare(words: Argv) -> StartedPrograms:
    """Judge `declare` and similar builtins. The caller gives only the name of a variable whose value is unknown."""
    started, integer, array = StartedPrograms(), False, False
    for word in words:
        if word is None:
            return StartedPrograms(unknown=True)
        if word[:1] in ("-", "+"):
            integer |= _INTEGER in word
            array |= not _ARRAYS.isdisjoint(word)
            started.unknown |= _REFERENCE in word and word[0] == "-"
            continue
        name, sign, value = word.partition("=")
        name = name.removesuffix("+") if sign else name
        started.unknown |= not PLAIN_NAME.fullmatch(name)
        started.unknown |= array and "(" in value  # `declare -a 'x=($(rm v))'`
        started.sets += [(name, value)] if sign else []
        started.evaluated |= {name} if integer else set()
    return started


def _jobs(words: Argv) -> StartedPrograms:
    """Judge `jobs`: `jobs -x` runs the words that follow."""
    return StartedPrograms(unknown=any(word is None or (word.startswith("-") and "x" in word) for word in words))


def _setting(names: list[str | None]) -> StartedPrograms:
    """Return the result of a builtin that sets these variables to unknown values."""
    known = [name for name in names if name is not None and PLAIN_NAME.fullmatch(name)]
    return StartedPrograms(unknown=len(known) < len(names), sets=[(name, None) for name in known])


def assigned_name(text: str) -> str | None:
    """Return the name before the `=` of a word that assigns, quoted or not; None for any other word."""
    found = _ASSIGNED.match(text)
    return found[1] if found else None


_DECLARES = ("declare", "typeset", "local", "export", "readonly")
_JUDGES: dict[str, Callable[[Argv], StartedPrograms]] = {
    **dict.fromkeys(_DECLARES, _declare),
    "jobs": _jobs,
    "let": _let,
    "read": _read,
    "printf": _printf,
    "getopts": _getopts,
    "wait": _wait,
    "unset": _unset,
    "test": _test,
    "[": _test,
}
