"""Globs, for every dialect: `**` `*` `?` `[a-z]` `[!a]` `{a,b}` and escapes, `/` at either end, case folding.

A glob is matched against the names that a walk came by, relative to the directory walked, so that `../*` and
`/etc/*` cannot match anything outside. `*` also matches a leading dot. `**` crosses directories where it is a whole
component. `dir/` means everything beneath it. A leading `/` ties a glob to the directory walked.

Every glob becomes one regular expression that matches in linear time: a `*` that is followed by another one may
settle for the first place where the text between the two fits, so these are atomic groups.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from handrail.model.faults import InvalidPattern
from handrail.model.limits import Limits

_LIMITS = Limits()
_FOLDS_OUTSIDE_ASCII = "iksIKS"


class Glob(NamedTuple):
    matches: Callable[[str], object]
    """Whether a relative name matches, as truth."""
    sieve: tuple[str, ...] | None
    """Globs for the last component in ripgrep's syntax that let pass at least what matches; None: all names."""


def compile_globs(patterns: Iterable[str], *, anywhere: bool = False, fold_case: bool = False) -> Glob:
    """One matcher for several globs. `anywhere`: a glob without `/` is a name at any depth, as in file filters."""
    plain = [each for pattern in patterns for each in _prepared(pattern, anywhere=anywhere)]
    sieve = {_sieve(each.rpartition("/")[2], fold_case=fold_case) for each in plain}
    regex = "|".join(path_regex(each) for each in plain)
    return Glob(_compiled(regex, fold_case=fold_case), None if "*" in sieve else tuple(sorted(sieve)))


def compile_exclusions(patterns: Iterable[str], *, fold_case: bool = False) -> Callable[[str], object]:
    """A matcher for what globs exclude: the names themselves, and everything beneath a directory of that name."""
    plain = [each for pattern in patterns for each in _prepared(pattern, anywhere=True)]
    regex = "|".join(f"{path_regex(each)}(?:/.*)?" for each in plain)
    return _compiled(regex, fold_case=fold_case)


def expand_braces(pattern: str) -> list[str]:
    """The globs without braces that a valid `pattern` stands for."""
    done: list[str] = []
    todo = [(pattern, 0)]
    while todo:
        text, at = todo.pop()
        opening, bars, closing = _first_braces(text, at)
        if opening < 0:
            done.append(text)
            continue
        if len(todo) + len(done) + len(bars) > _LIMITS.glob_alternatives:
            raise InvalidPattern("glob", pattern, "too many alternatives in braces", opening, "**/*.{js,ts}")
        edges = [opening, *bars, closing]
        choices = [text[start + 1 : end] for start, end in pairwise(edges)]
        todo.extend((text[:opening] + choice + text[closing + 1 :], opening) for choice in reversed(choices))
    return done


def check(pattern: str) -> None:
    """Refuse what has no meaning."""
    braces: list[int] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
            if at == len(pattern):
                raise InvalidPattern("glob", pattern, "nothing follows the backslash", at - 1, pattern + "\\")
            if pattern[at] == "/":
                fixed = pattern[: at - 1] + pattern[at:]
                raise InvalidPattern("glob", pattern, "a slash cannot be escaped", at - 1, fixed)
        elif char == "[":
            at = _check_class(pattern, at)
        elif char == "{":
            braces.append(at)
        elif char == "}":
            if not braces:
                fixed = f"{pattern[:at]}\\{pattern[at:]}"
                raise InvalidPattern("glob", pattern, "unopened brace", at, fixed)
            braces.pop()
        at += 1
    if braces:
        raise InvalidPattern("glob", pattern, "unclosed brace", braces[0], pattern + "}" * len(braces))


def _check_class(pattern: str, opening: int) -> int:
    end = _class_end(pattern, opening)
    if end < 0 or "/" in pattern[opening:end]:
        escaped = f"{pattern[:opening]}\\{pattern[opening:]}"
        fixed = pattern + "]" if end < 0 and len(pattern) > opening + 1 else escaped
        raise InvalidPattern("glob", pattern, "unclosed bracket", opening, fixed)
    for low, high in _ranges(pattern[opening + 1 : end].lstrip("!^")):
        if low > high:
            fixed = pattern.replace(f"{low}-{high}", f"{high}-{low}")
            raise InvalidPattern("glob", pattern, "the range is reversed", opening, fixed)
    return end


def _prepared(pattern: str, *, anywhere: bool) -> list[str]:
    """Plain globs relative to the directory walked."""
    if not pattern:
        raise InvalidPattern("glob", pattern, "the pattern is empty", 0, "**/*")
    if len(pattern) > _LIMITS.pattern_chars:
        raise InvalidPattern("glob", pattern[:200], "the pattern is too long", _LIMITS.pattern_chars, "**/*.py")
    check(pattern)
    return [_rooted(each, anywhere=anywhere) for each in expand_braces(pattern)]


def _rooted(pattern: str, *, anywhere: bool) -> str:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.endswith("/") or not parts:
        parts.append("**")
    if anywhere and "/" not in pattern.rstrip("/"):
        parts.insert(0, "**")
    return "/".join(parts)


def _first_braces(text: str, at: int) -> tuple[int, list[int], int]:
    """Where the first pair of braces opens, its commas, and where it closes; -1 where there is none."""
    opening, depth, bars = -1, 0, []
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == "[":
            at = _class_end(text, at)
        elif char == "{":
            depth += 1
            opening = at if depth == 1 else opening
        elif char == "," and depth == 1:
            bars.append(at)
        elif char == "}":
            depth -= 1
            if not depth:
                return opening, bars, at
        at += 1
    return -1, [], -1


def _class_end(text: str, opening: int) -> int:
    """The bracket that closes a class; one that stands first in it is a member."""
    first = opening + 1 + (text[opening + 1 : opening + 2] in ("!", "^"))
    return text.find("]", first + 1)


def _compiled(regex: str, *, fold_case: bool) -> Callable[[str], object]:
    return re.compile(regex, re.DOTALL | (re.IGNORECASE if fold_case else 0)).fullmatch


def path_regex(pattern: str) -> str:
    """A glob without braces and outer slashes. Between `**` stand runs of components: each may settle for the first
    place that fits, except the last.
    """
    runs: list[list[str]] = [[]]
    for part in pattern.split("/"):
        if part == "**":
            if runs[-1] or len(runs) == 1:
                runs.append([])
        else:
            runs[-1].append(_component(part))
    first, *middle, last = runs if len(runs) > 1 else [[], *runs]
    regex = "".join(part + "/" for part in first)
    for run in middle:
        regex += f"(?>(?:[^/]*+/)*?{'/'.join(run)}/)"
    if len(runs) == 1:
        return f"(?:{'/'.join(last)})"
    return f"(?:{regex}{'(?:.*/)?' + '/'.join(last) if last else '.+'})"


def _component(part: str) -> str:
    """One component: fixed pieces between stars."""
    pieces: list[str] = [""]
    at = 0
    while at < len(part):
        char = part[at]
        if char == "*":
            pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif char == "[":
            end = _class_end(part, at)
            pieces[-1] += _class(part[at + 1 : end])
            at = end
        else:
            at += char == "\\"
            pieces[-1] += re.escape(part[at])
        at += 1
    if len(pieces) == 1:
        return pieces[0]
    if not any(pieces):
        return "[^/]+"
    first, *middle, last = pieces
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle if piece) + "[^/]*" + last


def _class(body: str) -> str:
    negated = body[0] in "!^"
    items = "".join(
        re.escape(low) if low == high else f"{re.escape(low)}-{re.escape(high)}"
        for low, high in _ranges(body[negated:])
    )
    return f"[^/{items}]" if negated else f"(?!/)[{items}]"


def _ranges(body: str) -> Iterator[tuple[str, str]]:
    """The members of a class; a single one is a range of its own."""
    at = 0
    while at < len(body):
        wide = body[at + 1 : at + 2] == "-" and at + 2 < len(body)
        yield body[at], body[at + 2 if wide else at]
        at += 3 if wide else 1


def _sieve(name: str, *, fold_case: bool) -> str:
    """A name glob in ripgrep's syntax that lets pass at least what `name` matches."""
    sieve, at = "", 0
    while at < len(name):
        char = name[at]
        if char == "[":
            at = _class_end(name, at)
            char = "*"
        elif char == "\\":
            at += 1
            char = f"[{name[at]}]" if name[at] in "*?[]{}\\" else name[at]
        elif char == "?":
            char = "*"
        if fold_case and char.isalpha():
            wide = not char.isascii() or char in _FOLDS_OUTSIDE_ASCII
            char = "*" if wide else f"[{char.lower()}{char.upper()}]"
        if not (char == "*" and sieve.endswith("*")):
            sieve += char
        at += 1
    return "*" if sieve.startswith("include:") else sieve
