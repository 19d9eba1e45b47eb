"""Compiles globs for every dialect: `**` `*` `?` `[a-z]` `[!a]` `{a,b}` and escapes, `/` at either end, case folding.

A glob is matched against names that a walk found, relative to the walked directory, so that `../*` and `/etc/*`
cannot match anything outside. `*` also matches a leading dot. `**` crosses directories if it is a whole component.
`dir/` means everything inside that directory. A leading `/` anchors a glob at the walked directory.

Every glob becomes one regular expression that matches in linear time. If another `*` follows a `*`, the first place
where the text between them fits is enough, so these are atomic groups.
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
    """Holds compiled globs."""

    matches: Callable[[str], object]
    """Returns a true value if a relative name matches."""
    sieve: tuple[str, ...] | None
    """Globs in ripgrep's syntax for the last component; every matching name passes them. None: every name passes."""


def compile_globs(patterns: Iterable[str], *, anywhere: bool = False, fold_case: bool = False) -> Glob:
    """Compile several globs. `anywhere`: a glob without `/` matches a name at any depth, as in file filters."""
    plain = [each for pattern in patterns for each in _prepared(pattern, anywhere=anywhere)]
    sieve = {_sieve(each.rpartition("/")[2], fold_case=fold_case) for each in plain}
    regex = "|".join(path_regex(each) for each in plain)
    return Glob(_compiled(regex, fold_case=fold_case), None if "*" in sieve else tuple(sorted(sieve)))


def compile_exclusions(patterns: Iterable[str], *, fold_case: bool = False) -> Callable[[str], object]:
    """Compile globs that exclude: the result matches their names, and every name inside a directory they match."""
    plain = [each for pattern in patterns for each in _prepared(pattern, anywhere=True)]
    regex = "|".join(f"{path_regex(each)}(?:/.*)?" for each in plain)
    return _compiled(regex, fold_case=fold_case)


def expand_braces(pattern: str) -> list[str]:
    """Return the globs without braces that a valid `pattern` expands to."""
    done: list[str] = []
    todo = [(pattern, 0)]
    while todo:
        text, at = todo.pop()
        opening, commas, closing = _first_braces(text, at)
        if opening < 0:
            done.append(text)
            continue
        if len(todo) + len(done) + len(commas) > _LIMITS.glob_alternatives:
            raise InvalidPattern("glob", pattern, "too many alternatives in braces", opening, "**/*.{js,ts}")
        edges = [opening, *commas, closing]
        choices = [text[start + 1 : end] for start, end in pairwise(edges)]
        todo.extend((text[:opening] + choice + text[closing + 1 :], opening) for choice in reversed(choices))
    return done


def literal_glob(name: str) -> str:
    """Return the glob that matches exactly this name."""
    return "".join(f"\\{char}" if char in "\\*?[]{},!" else char for char in name)


def check(pattern: str) -> None:
    """Raise InvalidPattern if the glob has no meaning."""
    braces: list[int] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at = _check_escape(pattern, at)
        elif char == "[":
            at = _check_class(pattern, at)
        elif char == "{":
            braces.append(at)
        elif char == "}":
            _close_brace(pattern, at, braces)
        at += 1
    if braces:
        raise InvalidPattern("glob", pattern, "unclosed brace", braces[0], pattern + "}" * len(braces))


def _check_escape(pattern: str, backslash: int) -> int:
    """Return the index of the escaped character."""
    at = backslash + 1
    if at == len(pattern):
        raise InvalidPattern("glob", pattern, "nothing follows the backslash", backslash, pattern + "\\")
    if pattern[at] == "/":
        fixed = pattern[:backslash] + pattern[at:]
        raise InvalidPattern("glob", pattern, "a slash cannot be escaped", backslash, fixed)
    return at


def _close_brace(pattern: str, at: int, braces: list[int]) -> None:
    """Remove the last open brace from `braces`."""
    if not braces:
        fixed = f"{pattern[:at]}\\{pattern[at:]}"
        raise InvalidPattern("glob", pattern, "unopened brace", at, fixed)
    braces.pop()


def _check_class(pattern: str, opening: int) -> int:
    """Return the index of the bracket that closes the class."""
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
    """Check a glob and return the plain globs, relative to the walked directory, that it expands to."""
    if not pattern:
        raise InvalidPattern("glob", pattern, "the pattern is empty", 0, "**/*")
    if len(pattern) > _LIMITS.pattern_chars:
        raise InvalidPattern("glob", pattern[:200], "the pattern is too long", _LIMITS.pattern_chars, "**/*.py")
    check(pattern)
    return [_rooted(each, anywhere=anywhere) for each in expand_braces(pattern)]


def _rooted(pattern: str, *, anywhere: bool) -> str:
    """Return a plain glob without outer slashes, with `**` at either end where the slashes imply it."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.endswith("/") or not parts:
        parts.append("**")
    if anywhere and "/" not in pattern.rstrip("/"):
        parts.insert(0, "**")
    return "/".join(parts)


def _first_braces(text: str, at: int) -> tuple[int, list[int], int]:
    """Return the indexes of the first opening brace, of its commas and of its closing brace; -1 if there is none."""
    opening, depth, commas = -1, 0, list[int]()
    for place, char in _brace_marks(text, at):
        if char == "{":
            depth += 1
            opening = place if depth == 1 else opening
        elif char == "}":
            depth -= 1
            if not depth:
                return opening, commas, place
        elif depth == 1:
            commas.append(place)
    return -1, [], -1


def _brace_marks(text: str, at: int) -> Iterator[tuple[int, str]]:
    """Yield every brace and comma from `at` on, with its index, that is neither escaped nor inside a class."""
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == "[":
            at = _class_end(text, at)
        elif char in "{,}":
            yield at, char
        at += 1


def _class_end(text: str, opening: int) -> int:
    """Return the index of the bracket that closes a class; a bracket at its first position is a member."""
    first = opening + 1 + (text[opening + 1 : opening + 2] in ("!", "^"))
    return text.find("]", first + 1)


def _compiled(regex: str, *, fold_case: bool) -> Callable[[str], object]:
    return re.compile(regex, re.DOTALL | (re.IGNORECASE if fold_case else 0)).fullmatch


def path_regex(pattern: str) -> str:
    """Return the regular expression for a glob without braces and outer slashes.

    `**` separates runs of components. For each run except the last, the first place that fits is enough.
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
    """Return the regular expression for one component: fixed pieces between stars."""
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
    """Return the regular expression for a class, given its text between the brackets."""
    negated = body[0] in "!^"
    items = "".join(
        re.escape(low) if low == high else f"{re.escape(low)}-{re.escape(high)}"
        for low, high in _ranges(body[negated:])
    )
    return f"[^/{items}]" if negated else f"(?!/)[{items}]"


def _ranges(body: str) -> Iterator[tuple[str, str]]:
    """Yield the members of a class as ranges; a single character is a range of one."""
    at = 0
    while at < len(body):
        wide = body[at + 1 : at + 2] == "-" and at + 2 < len(body)
        yield body[at], body[at + 2 if wide else at]
        at += 3 if wide else 1


def _sieve(name: str, *, fold_case: bool) -> str:
    """Return a glob in ripgrep's syntax that matches at least every name that `name` matches."""
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
