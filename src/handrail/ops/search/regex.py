r"""Parses regular expressions as agents write them, and writes them again for each engine.

The language is the common part of ripgrep's default engine and PCRE2, with these decisions:
- a brace that is not a repetition is a literal brace (`interface{}`, `${x}`);
- `[` inside a class is a member, as in most languages but Rust, and so are `&&`, `--` and `~~`;
- syntax that only PCRE2 knows (look-around, back-references, possessive repetition …) selects PCRE2;
- a match never spans lines: `^`, `$`, `\A` and `\z` match at the ends of a line, and a line break is an error.

With `spans_lines`, a match may span lines: a dot and every class match line ends, `^` and `$` match at each line,
`\A` and `\z` at the ends of the text.
"""

import re
from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from handrail.model.faults import InvalidPattern
from handrail.model.limits import Limits
from handrail.ops.search.char_class import (
    CODE,
    CONTROLS,
    NOT_IN_LINE,
    NOT_TEXT,
    PROPERTY,
    SPANS_LINES,
    code_point,
    read_class,
)

_LIMITS = Limits()
_COUNT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_BACK_REFERENCE = re.compile(r"\\(?:[1-9]\d*|[kg](?:<[^>]*>|\{[^}]*\}|'[^']*'|-?\d+))")
_GROUP = re.compile(r"\((?:\?(?:P?<[A-Za-z_]\w*>|[imsx]*(?:-[imsx]+)?[:)]))?")
_PCRE_GROUP = re.compile(r"\(\?(?:[=!>|]|<[=!]|P[=>]|R\)|&|[+-]?\d+\)|\(|#)")
_LINE_BREAKS = "\n\r"
_SYNTAX = re.compile(r"[\\.^$|?*+()\[\]{}]")
_TOO_OFTEN = "it repeats too often"
_START, _END = "(?<![^\\r\\n])", "(?![^\\r\\n])"
_INSIDE_CRLF = "(?!(?<=\\r)\\n)"
_TURNS_OFF = re.compile(r"\(\?[imsx]*-[imsx]*[ms]")


class Token(NamedTuple):
    """Holds one token of a regular expression."""

    kind: str
    """One of: literal, class, assertion, open, close, flags, or, repeat."""
    text: str
    """The form for ripgrep."""
    at: int
    value: str = ""
    """The character of a literal; for other kinds the form for the built-in engine."""
    low: int = 1
    high: int = 1
    """The bounds of a repetition; -1 as `high` means no upper bound."""
    pcre: bool = False
    """True if only PCRE2 knows the token."""


# Single characters and escapes: kind, form for ripgrep, form for the built-in engine.
_SINGLES = {
    "^": ("assertion", "^", _START),
    "$": ("assertion", "$", _END),
    ".": ("class", ".", f"[^{NOT_IN_LINE}]"),
    ")": ("close", ")", ")"),
    "|": ("or", "|", "|"),
}
_ESCAPES = {
    "A": _SINGLES["^"],
    "z": _SINGLES["$"],
    "Z": _SINGLES["$"],
    **{char: ("assertion", "\\" + char, "\\" + char) for char in "bB"},
    **{char: ("class", "\\" + char, "\\" + char) for char in "dws"},
    **{char: ("class", "\\" + char, f"[^\\{char.lower()}{NOT_IN_LINE}]") for char in "DWS"},
}
_SPANNING_SINGLES = {
    **_SINGLES,
    "^": ("assertion", "^", _START + _INSIDE_CRLF),
    "$": ("assertion", "$", _END + _INSIDE_CRLF),
    ".": ("class", ".", f"[^{NOT_TEXT}]"),
}
_SPANNING_ESCAPES = {
    **_ESCAPES,
    "A": ("assertion", "\\A", "\\A"),
    **dict.fromkeys("zZ", ("assertion", "\\z", "\\Z")),
    **{char: ("class", "\\" + char, f"[^\\{char.lower()}{NOT_TEXT}]") for char in "DWS"},
}
_CONTROLS = {**CONTROLS, "n": 10, "r": 13}
_PCRE_ESCAPES = "hHVKGRX"


class Pattern(NamedTuple):
    """Holds a parsed pattern."""

    given: str
    tokens: tuple[Token, ...]
    spans_lines: bool = False

    @property
    def needs_pcre(self) -> bool:
        """True if only PCRE2 can match the pattern."""
        return any(token.pcre for token in self.tokens)

    @property
    def for_ripgrep(self) -> str:
        """The pattern in ripgrep's syntax. PCRE2 gets each line with its end, so its classes exclude line ends."""
        if self.spans_lines or not self.needs_pcre:
            return "".join(token.text for token in self.tokens)
        wrapped = "(?:(?![\\r\\n]){})"
        return "".join(
            wrapped.format(token.text) if token.kind == "class" and not token.pcre else token.text
            for token in self.tokens
        )

    @property
    def literal(self) -> str | None:
        """The text that the pattern stands for; None if the pattern is more than plain text."""
        if all(token.kind == "literal" for token in self.tokens):
            return "".join(token.value for token in self.tokens)
        return None


def parse(given: str, *, spans_lines: bool = False) -> Pattern:
    """Parse a regular expression. Raises InvalidPattern."""
    if len(given) > _LIMITS.pattern_chars:
        raise _invalid(given[:200], "the pattern is too long", _LIMITS.pattern_chars, "first|second")
    tokens = tuple(_RegexReader(given, spans_lines=spans_lines).tokens())
    _check_structure(given, tokens)
    return Pattern(given, tokens, spans_lines)


def refuse_huge(given: str) -> None:
    """Raise InvalidPattern only if compiling takes too much memory: for an engine with its own syntax."""
    if len(given) > _LIMITS.pattern_chars:
        raise _invalid(given[:200], "the pattern is too long", _LIMITS.pattern_chars, "first|second")
    try:
        _check_structure(given, tuple(_RegexReader(given, spans_lines=True).tokens()))
    except InvalidPattern as fault:
        counts = [max(int(each[1]), int(each[3] or each[1])) for each in _COUNT.finditer(given)]
        if fault.reason == _TOO_OFTEN or prod(counts) > _LIMITS.repetitions:
            raise _invalid(given, _TOO_OFTEN, fault.position, "a{1,100}") from None


def parse_literal(given: str) -> Pattern:
    """Return the pattern that matches exactly this text. Raises InvalidPattern."""
    if len(given) > _LIMITS.pattern_chars:
        raise InvalidPattern("text", given[:200], "the text is too long", _LIMITS.pattern_chars, given[:20])
    for at, char in enumerate(given):
        if char in _LINE_BREAKS:
            raise InvalidPattern("text", given, SPANS_LINES, at, _first_line(given))
    return Pattern(given, tuple(_literal(char, at) for at, char in enumerate(given)))


def _first_line(given: str) -> str:
    return next((line for line in given.splitlines() if line.strip()), "text")


def _invalid(given: str, reason: str, at: int, example: str) -> InvalidPattern:
    return InvalidPattern("regex", given, reason, at, example)


def _literal(char: str, at: int) -> Token:
    return Token("literal", re.escape(char) if char.isascii() else char, at, char)


class _RegexReader:
    """Splits a regular expression into tokens."""

    def __init__(self, given: str, *, spans_lines: bool) -> None:
        self.given, self.at, self.spans_lines = given, 0, spans_lines
        self.singles = _SPANNING_SINGLES if spans_lines else _SINGLES
        self.escapes = _SPANNING_ESCAPES if spans_lines else _ESCAPES

    def tokens(self) -> Iterator[Token]:
        """Yield the tokens in order. Raises InvalidPattern."""
        repeatable = False
        while self.at < len(self.given):
            token = self._next(repeatable=repeatable)
            yield token
            self.at = max(self.at, token.at + 1)
            repeatable = token.kind in ("literal", "class", "close", "repeat")

    def _next(self, *, repeatable: bool) -> Token:
        given, at = self.given, self.at
        char = given[at]
        read = {"\\": self._escape, "[": self._class, "(": self._open}.get(char)
        if read is not None:
            return read(at)
        if char in "*+?{":
            return self._repeat(at, repeatable=repeatable)
        if char in self.singles:
            kind, text, value = self.singles[char]
            return Token(kind, text, at, value)
        return self._character(ord(char), at) if char in _LINE_BREAKS else _literal(char, at)

    def _escape(self, at: int) -> Token:
        given = self.given
        code = CODE.match(given, at)
        whole = code or PROPERTY.match(given, at) or _BACK_REFERENCE.match(given, at)
        self.at = whole.end() if whole else at + 2
        if code:
            return self._character(code_point(given, code), at)
        if whole:
            return Token("class", whole[0], at, whole[0], pcre=whole[0][1] not in "pP")
        char = given[at + 1 : at + 2]
        if char in _CONTROLS:
            return self._character(_CONTROLS[char], at)
        if char in self.escapes:
            kind, text, value = self.escapes[char]
            return Token(kind, text, at, value)
        if char in _PCRE_ESCAPES and char:
            return Token("class", "\\" + char, at, "\\" + char, pcre=True)
        self._expect_escapable(char, at)
        return _literal(char, at)

    def _expect_escapable(self, char: str, at: int) -> None:
        """Raise InvalidPattern if a backslash before this character has no meaning."""
        given = self.given
        if not char:
            raise _invalid(given, "nothing follows the backslash", at, given + "\\")
        if char.isascii() and (char.isalnum() or char in "<>"):
            raise _invalid(given, f"unknown escape \\{char}", at, given[:at] + char + given[at + 2 :])

    def _character(self, code: int, at: int) -> Token:
        """Return the literal token of a character that was written as an escape."""
        if chr(code) in _LINE_BREAKS and not self.spans_lines:
            raise self._line_break(at)
        return Token("literal", f"\\x{{{code:x}}}", at, chr(code))

    def _line_break(self, at: int) -> InvalidPattern:
        given = self.given
        if "\n" in given and "\\" not in given:  # the text of some lines, not a pattern
            return _invalid(given, SPANS_LINES, at, _SYNTAX.sub(r"\\\g<0>", _first_line(given)))
        return _invalid(given, SPANS_LINES, at, given[:at] or "text$")

    def _open(self, at: int) -> Token:
        given = self.given
        special = _PCRE_GROUP.match(given, at)
        if special:
            return self._open_pcre(at, special)
        group = _GROUP.match(given, at)
        whole = group[0] if group else "("
        if whole == "(" and given[at + 1 : at + 2] == "?":
            raise _invalid(given, "unknown kind of group", at, given.replace("(?", "(", 1))
        if self.spans_lines and _TURNS_OFF.match(whole):
            raise _invalid(given, "the flags m and s cannot be turned off", at, given.replace(whole, "", 1) or "text")
        self.at = at + len(whole)
        if whole.endswith(")"):
            return Token("flags", whole, at, whole)
        return Token("open", whole, at, whole.replace("(?P<", "(?<"))

    def _open_pcre(self, at: int, special: re.Match[str]) -> Token:
        """Return the token of a group that only PCRE2 knows; a complete one, such as a comment, becomes one token."""
        given, whole = self.given, special[0]
        if whole[2] in "=!>|<":
            self.at = special.end()
            return Token("open", whole, at, whole, pcre=True)
        end = given.find(")", at)
        if end < 0 or whole[2] == "(":
            raise _invalid(
                given, "unclosed group" if end < 0 else "conditional groups are not known", at, "(first|second)"
            )
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
                raise _invalid(given, "the repetition's bounds are reversed", at, fixed)
        elif not repeatable:
            fixed = f"{given[:at]}.{given[at:]}" if given[at] != "?" else f"{given[:at]}\\{given[at:]}"
            raise _invalid(given, "there is nothing to repeat", at, fixed)
        possessive = given[end : end + 1] == "+"
        end += possessive or given[end : end + 1] == "?"
        self.at = end
        return Token("repeat", given[at:end], at, given[at:end], low, high, pcre=possessive)

    def _class(self, at: int) -> Token:
        text, builtin, end = read_class(self.given, at, NOT_TEXT if self.spans_lines else NOT_IN_LINE)
        self.at = end
        return Token("class", text, at, builtin)


def _check_structure(given: str, tokens: tuple[Token, ...]) -> None:
    """Raise InvalidPattern for an unbalanced group, or if nested repetitions multiply beyond the limit."""
    opened: list[Token] = []
    weights, last = [1], 1
    for token in tokens:
        if token.kind == "open":
            opened.append(token)
            weights.append(1)
            last = 1
        elif token.kind == "close":
            if not opened:
                raise _invalid(given, "unopened group", token.at, f"{given[: token.at]}\\{given[token.at :]}")
            opened.pop()
            last = weights.pop()
            weights[-1] = max(weights[-1], last)
        elif token.kind == "repeat":
            last *= max(token.low, token.high, 1)
            weights[-1] = max(weights[-1], last)
            if last > _LIMITS.repetitions:
                raise _invalid(given, _TOO_OFTEN, token.at, "a{1,100}")
        else:
            last = 1
    if opened:
        at = opened[-1].at
        raise _invalid(given, "unclosed group", at, given + ")" * len(opened))
