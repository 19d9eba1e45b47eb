"""Character classes: read as they are written everywhere but in Rust, and written so that both engines agree."""

import re

from handrail.model.faults import InvalidPattern

CODE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[xuU]\{([0-9A-Fa-f]{1,8})\})")
PROPERTY = re.compile(r"\\[pP](?:\{[^}]*\}|[A-Za-z])")
CONTROLS = {"a": 7, "f": 12, "t": 9, "v": 11, "e": 27}
NOT_TEXT = "\\r\\n\\udc80-\\udcff"
"""For the built-in engine: what no class matches, line ends and bytes that are no text."""

_POSIX = re.compile(r"\[:\^?[a-z]+:\]")
_WIDE = re.compile(r"\\[DWSP]|\[:\^")
_SETS = {char: "\\" + char for char in "dDwWsSnr"}


def code_point(given: str, found: re.Match[str]) -> int:
    """The character that a numeric escape names."""
    code = int(next(filter(None, found.groups())), 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise InvalidPattern("regex", given, "no such character", found.start(), "\\x41")
    return code


def read_class(given: str, opening: int) -> tuple[str, str, int]:
    """A class for ripgrep, the same for the built-in engine, and where it ends."""
    first = opening + 1 + (given[opening + 1 : opening + 2] == "^")
    members, at, previous = [], first, ""  # previous: what a following '-' could start a range from
    while at < len(given) and (given[at] != "]" or at == first):
        if given[at] == "-" and previous and given[at + 1 : at + 2] not in ("]", ""):
            member, char, end = _member(given, at + 1)
            if char and char < previous:
                fixed = f"{given[: at - 1]}{char}-{previous}{given[end:]}"
                raise InvalidPattern("regex", given, "the range is reversed", at - 1, fixed)
            if char:
                members.append(f"-{member}")
                at, previous = end, ""
                continue
        member, previous, at = _member(given, at)
        members.append(member)
    if at >= len(given):
        raise InvalidPattern("regex", given, "unclosed bracket", opening, f"{given[:opening]}\\{given[opening:]}")
    negated = first > opening + 1
    if not negated and {*members} <= {"\\n", "\\r"}:
        raise InvalidPattern("regex", given, "a match never spans lines", opening, given[:opening] or "text$")
    body = "".join(members)
    text = f"[^{body}]" if negated else f"[{body}]"
    return text, f"[{text}--[{NOT_TEXT}]]" if negated or _WIDE.search(body) else text, at + 1


def _member(given: str, at: int) -> tuple[str, str, int]:
    """One member: as it is written, the character that it is (if it is one), and where the next begins."""
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
