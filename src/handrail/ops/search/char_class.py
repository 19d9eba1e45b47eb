"""Reads character classes in the common syntax (not Rust's), and writes them so that both engines agree."""

import re

from handrail.model.faults import InvalidPattern

CODE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[xuU]\{([0-9A-Fa-f]{1,8})\})")
PROPERTY = re.compile(r"\\[pP](?:\{[^}]*\}|[A-Za-z])")
CONTROLS = {"a": 7, "f": 12, "t": 9, "v": 11, "e": 27}
NOT_TEXT = "\\udc80-\\udcff"
"""Characters that no class matches in the built-in engine: bytes that are not text."""
NOT_IN_LINE = f"\\r\\n{NOT_TEXT}"
"""Characters that no class matches there if a match lies in one line: line ends, too."""

_POSIX = re.compile(r"\[:\^?[a-z]+:\]")
_WIDE = re.compile(r"\\[DWSP]|\[:\^")
_SETS = {char: "\\" + char for char in "dDwWsSnr"}
SPANS_LINES = "a match never spans lines"


def code_point(given: str, found: re.Match[str]) -> int:
    """Return the character code of a numeric escape."""
    code = int(next(filter(None, found.groups())), 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise InvalidPattern("regex", given, "no such character", found.start(), "\\x41")
    return code


def read_class(given: str, opening: int, never: str = NOT_IN_LINE) -> tuple[str, str, int]:
    """Read the class at `opening`; return its form for ripgrep, its form for the built-in engine, and where it ends.

    `never` names the characters that it does not match.
    """
    negated = given[opening + 1 : opening + 2] == "^"
    members, closing = _members(given, opening, opening + 1 + negated)
    if never == NOT_IN_LINE and not negated and {*members} <= {"\\n", "\\r"}:
        raise InvalidPattern("regex", given, SPANS_LINES, opening, given[:opening] or "text$")
    body = "".join(members)
    text = f"[^{body}]" if negated else f"[{body}]"
    return text, f"[{text}--[{never}]]" if negated or _WIDE.search(body) else text, closing + 1


def _members(given: str, opening: int, first: int) -> tuple[list[str], int]:
    """Read the members from `first` on; return them and the index of the closing bracket."""
    members, at = list[str](), first
    previous = ""  # the character from which a following '-' can start a range
    while at < len(given) and (given[at] != "]" or at == first):
        range_end = _range_end(given, at, previous)
        if range_end:
            (member, at), previous = range_end, ""
        else:
            member, previous, at = _member(given, at)
        members.append(member)
    if at >= len(given):
        raise InvalidPattern("regex", given, "unclosed bracket", opening, f"{given[:opening]}\\{given[opening:]}")
    return members, at


def _range_end(given: str, at: int, previous: str) -> tuple[str, int] | None:
    """Read the `-x` at `at` that makes a range of `previous`, and the index after it; None if `-` starts no range."""
    if given[at] != "-" or not previous or given[at + 1 : at + 2] in ("]", ""):
        return None
    member, char, end = _member(given, at + 1)
    if not char:
        return None
    if char < previous:
        fixed = f"{given[: at - 1]}{char}-{previous}{given[end:]}"
        raise InvalidPattern("regex", given, "the range is reversed", at - 1, fixed)
    return f"-{member}", end


def _member(given: str, at: int) -> tuple[str, str, int]:
    """Read one member; return its text, its character (empty if it is a set), and the index after it."""
    whole = _POSIX.match(given, at) or PROPERTY.match(given, at)
    if whole:
        return whole[0], "", whole.end()
    char, end = given[at], at + 1
    if char == "\\":
        code = CODE.match(given, at)
        char, end = given[at + 1 : at + 2], at + 2
        if code:
            char, end = chr(code_point(given, code)), code.end()
        elif char in _SETS:
            return _SETS[char], "", end
        elif char in CONTROLS:
            char = chr(CONTROLS[char])
        elif char == "b":
            char = "\b"
        elif char.isascii() and char.isalnum():
            fixed = given[:at] + char + given[end:]
            raise InvalidPattern("regex", given, f"unknown escape \\{char}", at, fixed)
    return _escaped(char), char, end


def _escaped(char: str) -> str:
    if char.isalnum() or not char.isascii() or char in " _<>":
        return char
    return "\\" + char if char.isprintable() else f"\\x{ord(char):02x}"
