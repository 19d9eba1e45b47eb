r"""Regular expressions as agents write them, read once and written again for each engine.

The language is the common ground of ripgrep's default engine and PCRE2, with these decisions:
- a brace that is no repetition is a brace (`interface{}`, `${x}`);
- `[` inside a class is a member, as everywhere but in Rust, and so are `&&`, `--` and `~~`;
- what only PCRE2 knows (look-around, back-references, possessive repetition …) asks for it;
- a match never spans lines: `^` and `$` mean the line's, `\A` and `\z` the same, and a line break is refused.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from handrail.faults import InvalidPattern
from handrail.limits import Limits

_LIMITS = Limits()
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_CODE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[xuU]\{([0-9A-Fa-f]{1,8})\})")
_PROPERTY = re.compile(r"\\[pP](?:\{[^}]*\}|[A-Za-z])")
_BACK_REFERENCE = re.compile(r"\\(?:[1-9]\d*|[kg](?:<[^>]*>|\{[^}]*\}|'[^']*'|-?\d+))")
_GROUP = re.compile(r"\((?:\?(?:P?<[A-Za-z_]\w*>|[imsx]*(?:-[imsx]+)?[:)]|))?")
_PCRE_GROUP = re.compile(r"\(\?(?:[=!>|]|<[=!]|P[=>]|R\)|&|[+-]?\d+\)|\(|#)")
_POSIX = re.compile(r"\[:\^?[a-z]+:\]")
_CONTROLS = {"a": 7, "f": 12, "t": 9, "v": 11, "e": 27}
_PLAIN_ESCAPES = "dDwWsSbB"
_PCRE_ESCAPES = "hHVKGRX"
_LINE_BREAKS = "\n\r"
_FOLDS_OUTSIDE_ASCII = "iks"


class Token(NamedTuple):
    kind: str
    """literal, class, assertion, open, close, or, repeat"""
    text: str
    """As ripgrep is given it."""
    at: int
    value: str = ""
    """The character of a literal; what the built-in engine is given instead of `text`."""
    low: int = 1
    high: int = 1
    pcre: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    given: str
    tokens: tuple[Token, ...]

    @property
    def needs_pcre(self) -> bool:
        return any(token.pcre for token in self.tokens)

    @property
    def for_ripgrep(self) -> str:
        return "".join(token.text for token in self.tokens)

    @property
    def literal(self) -> str | None:
        """The text itself, where the pattern is nothing but text."""
        if all(token.kind == "literal" for token in self.tokens):
            return "".join(token.value for token in self.tokens)
        return None


def parse(given: str) -> Pattern:
    if len(given) > _LIMITS.pattern_chars:
        _refuse(given[:200], "the pattern is too long", _LIMITS.pattern_chars, "first|second")
    tokens = tuple(_Reader(given).tokens())
    _check_structure(given, tokens)
    return Pattern(given, tokens)


def parse_literal(given: str) -> Pattern:
    """Text that stands for itself."""
    if len(given) > _LIMITS.pattern_chars:
        _refuse(given[:200], "the text is too long", _LIMITS.pattern_chars, given[:20])
    for at, char in enumerate(given):
        if char in _LINE_BREAKS:
            _refuse(given, "a match never spans lines", at, given[:at])
    return Pattern(given, tuple(_literal(char, at) for at, char in enumerate(given)))


def _refuse(given: str, reason: str, at: int, example: str) -> None:
    raise InvalidPattern("regex", given, reason, at, example)


def _literal(char: str, at: int) -> Token:
    return Token("literal", re.escape(char) if char.isascii() else char, at, char)


class _Reader:
    def __init__(self, given: str) -> None:
        self.given, self.at = given, 0

    def tokens(self) -> Iterator[Token]:
        repeatable = False
        while self.at < len(self.given):
            token = self._next(repeatable=repeatable)
            yield token
            self.at = max(self.at, token.at + 1)
            repeatable = token.kind not in ("open", "or")

    def _next(self, *, repeatable: bool) -> Token:
        given, at = self.given, self.at
        char = given[at]
        if char == "\\":
            return self._escape(at)
        if char == "[":
            return self._class(at)
        if char == "(":
            return self._open(at)
        if char in "*+?{":
            return self._repeat(at, repeatable=repeatable)
        if char in "^$":
            return Token("assertion", char, at, "(?<![^\\r\\n])" if char == "^" else "(?![^\\r\\n])")
        if char == ".":
            return Token("class", char, at, "[^\\r\\n\\udc80-\\udcff]")
        if char in ")|":
            return Token("close" if char == ")" else "or", char, at, char)
        if char in _LINE_BREAKS:
            _refuse(given, "a match never spans lines", at, given[:at] or "text$")
        return _literal(char, at)

    def _escape(self, at: int) -> Token:
        given = self.given
        code = _CODE.match(given, at)
        if code:
            self.at = code.end()
            return self._character(int(next(filter(None, code.groups())), 16), at)
        whole = _PROPERTY.match(given, at) or _BACK_REFERENCE.match(given, at)
        if whole:
            self.at = whole.end()
            return Token("class", whole[0], at, whole[0], pcre=whole[0][1] not in "pP")
        char = given[at + 1 : at + 2]
        self.at = at + 2
        if not char:
            _refuse(given, "nothing follows the backslash", at, given + "\\")
        if char in _CONTROLS:
            return self._character(_CONTROLS[char], at)
        if char in "nr":
            _refuse(given, "a match never spans lines", at, given[:at] or "text$")
        if char in "AzZ":
            return (
                Token("assertion", "^", at, "(?<![^\\r\\n])")
                if char == "A"
                else Token("assertion", "$", at, "(?![^\\r\\n])")
            )
        if char in _PLAIN_ESCAPES:
            kind = "assertion" if char in "bB" else "class"
            outside = f"[^\\{char.lower()}\\r\\n\\udc80-\\udcff]"
            return Token(kind, "\\" + char, at, outside if char in "DWS" else "\\" + char)
        if char in _PCRE_ESCAPES:
            return Token("class", "\\" + char, at, "\\" + char, pcre=True)
        if char.isascii() and (char.isalnum() or char in "<>"):
            _refuse(given, f"unknown escape \\{char}", at, given[:at] + char + given[at + 2 :])
        return _literal(char, at)

    def _character(self, code: int, at: int) -> Token:
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            _refuse(self.given, "no such character", at, "\\x41")
        if chr(code) in _LINE_BREAKS:
            _refuse(self.given, "a match never spans lines", at, self.given[:at] or "text$")
        return Token("literal", f"\\x{{{code:x}}}", at, chr(code))

    def _open(self, at: int) -> Token:
        given = self.given
        special = _PCRE_GROUP.match(given, at)
        if special:
            return self._open_pcre(at, special)
        group = _GROUP.match(given, at)
        whole = group[0] if group else "("
        if whole == "(" and given[at + 1 : at + 2] == "?":
            _refuse(given, "unknown kind of group", at, given.replace("(?", "(", 1))
        self.at = at + len(whole)
        if whole.endswith(")"):
            return Token("flags", whole, at, whole)
        return Token("open", whole, at, whole.replace("(?P<", "(?<"))

    def _open_pcre(self, at: int, special: re.Match[str]) -> Token:
        """Look-around and atomic groups open a group; what is complete in itself is taken whole."""
        given, whole = self.given, special[0]
        if whole[2] in "=!>|<":
            self.at = special.end()
            return Token("open", whole, at, whole, pcre=True)
        end = given.find(")", at)
        if end < 0 or whole[2] == "(":
            _refuse(given, "unclosed group" if end < 0 else "conditional groups are not known", at, "(first|second)")
        self.at = end + 1
        return Token("class", given[at : end + 1], at, given[at : end + 1], pcre=True)

    def _repeat(self, at: int, *, repeatable: bool) -> Token:
        given = self.given
        low, high, end = 0 if given[at] in "*?" else 1, 1 if given[at] == "?" else -1, at + 1
        if given[at] == "{":
            count = _COUNT.match(given, at) if repeatable else None
            if count is None:
                return _literal("{", at)
            low, end = int(count[1]), count.end()
            high = low if not count[2] else int(count[3]) if count[3] else -1
            if -1 < high < low:
                fixed = f"{given[:at]}{{{high},{low}}}{given[end:]}"
                _refuse(given, "the repetition's bounds are reversed", at, fixed)
        elif not repeatable:
            fixed = f"{given[:at]}.{given[at:]}" if given[at] != "?" else f"{given[:at]}\\{given[at:]}"
            _refuse(given, "there is nothing to repeat", at, fixed)
        possessive = given[end : end + 1] == "+"
        end += possessive or given[end : end + 1] == "?"
        self.at = end
        return Token("repeat", given[at:end], at, given[at:end], low, high, pcre=possessive)

    def _class(self, at: int) -> Token:
        text, builtin, end = _read_class(self.given, at)
        self.at = end
        return Token("class", text, at, builtin)


def _read_class(given: str, opening: int) -> tuple[str, str, int]:
    """A class as both engines take it: every member that could be an operator is escaped."""
    at = opening + 1
    negated = given[at : at + 1] == "^"
    at += negated
    members: list[str] = []
    previous = ""  # the character that a following '-' could start a range from
    first = at
    while at < len(given) and (given[at] != "]" or at == first):
        posix = _POSIX.match(given, at)
        if posix:
            members.append(posix[0])
            at, previous = posix.end(), ""
            continue
        if given[at] == "-" and previous and given[at + 1 : at + 2] not in ("]", ""):
            member, char, end = _member(given, at + 1)
            if char:
                if char < previous:
                    fixed = f"{given[: at - 1]}{char}-{previous}{given[end:]}"
                    _refuse(given, "the range is reversed", at - 1, fixed)
                members.append(f"-{member}")
                at, previous = end, ""
                continue
        member, previous, at = _member(given, at)
        members.append(member)
    if at >= len(given):
        _refuse(given, "unclosed bracket", opening, f"{given[:opening]}\\{given[opening:]}")
    body = "".join(members)
    if not negated and set(members) <= {"\\n", "\\r"}:
        _refuse(given, "a match never spans lines", opening, given[:opening] or "text$")
    outside = "--[\\r\\n\\udc80-\\udcff]]"
    wide = negated or re.search(r"\\[DWSP]|\[:\^", body)
    text = f"[{'^' if negated else ''}{body}]"
    return text, f"[{text}{outside}" if wide else text, at + 1


def _member(given: str, at: int) -> tuple[str, str, int]:
    """One member of a class: as it is written, the character that it is (if it is one), and where the next begins."""
    char = given[at]
    if char != "\\":
        return _in_class(char), char, at + 1
    code = _CODE.match(given, at)
    if code:
        value = int(next(filter(None, code.groups())), 16)
        if value <= 0x10FFFF and not 0xD800 <= value < 0xE000:
            return _in_class(chr(value)), chr(value), code.end()
        _refuse(given, "no such character", at, "\\x41")
    whole = _PROPERTY.match(given, at)
    if whole:
        return whole[0], "", whole.end()
    char = given[at + 1 : at + 2]
    if char in _CONTROLS:
        return _in_class(chr(_CONTROLS[char])), chr(_CONTROLS[char]), at + 2
    if char in ("n", "r"):
        return "\\" + char, "", at + 2
    if char == "b":
        return "\\x08", "\b", at + 2
    if char in tuple("dDwWsS"):
        return "\\" + char, "", at + 2
    if char.isascii() and char.isalnum():
        _refuse(given, f"unknown escape \\{char}", at, given[:at] + char + given[at + 2 :])
    return _in_class(char), char, at + 2


def _in_class(char: str) -> str:
    if char.isalnum() or not char.isascii() or char in " _":
        return char
    return f"\\x{ord(char):02x}" if ord(char) < 32 or ord(char) == 127 else "\\" + char


def _check_structure(given: str, tokens: tuple[Token, ...]) -> None:
    """Groups are closed, and nested repetitions do not multiply beyond measure."""
    opened: list[Token] = []
    weights, last = [1], 1
    for token in tokens:
        if token.kind == "open":
            opened.append(token)
            weights.append(1)
            last = 1
        elif token.kind == "close":
            if not opened:
                _refuse(given, "unopened group", token.at, f"{given[: token.at]}\\{given[token.at :]}")
            opened.pop()
            last = weights.pop()
            weights[-1] = max(weights[-1], last)
        elif token.kind == "repeat":
            last *= max(token.low, token.high, 1)
            weights[-1] = max(weights[-1], last)
            if last > _LIMITS.repetitions:
                _refuse(given, "it repeats too often", token.at, given[: token.at] + "+")
        else:
            last = 1
    if opened:
        at = opened[-1].at
        _refuse(given, "unclosed group", at, given + ")" * len(opened))
