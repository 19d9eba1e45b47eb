"""Finds what the shell evaluates after it has read a command: arithmetic, subscripts, names inside variables.

`x='a[$(rm v)]'; (( x ))` runs rm, although its text has no active substitution: arithmetic evaluates a variable's
value as an expression, and expands a subscript in it. So this module finds the variables that are evaluated, and
decides by their values whether that can run anything. A case that it cannot decide is `unsure`. It follows bash.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from handrail.model.record import record
from handrail.ops.shell.substitution import pieces

_NAME = r"[A-Za-z_][A-Za-z_0-9]*+"
PLAIN_NAME = re.compile(_NAME, re.ASCII)
_ELEMENT = re.compile(rf"({_NAME})\[([^\[\]]*)\]", re.ASCII)
_WORD = re.compile(rf"(?<![A-Za-z_0-9]){_NAME}", re.ASCII)
_NUMBER = re.compile(rf"""\$[#?$!]|\$\{{#(?:{_NAME}(?:\[[@*]\])?|[@*])\}}""", re.ASCII)
"""Expansions that are numbers, whatever the variables contain."""
_ARITHMETIC = re.compile(rf"""(?>[\s0-9()+\-*/%<>=!&|^~?:,;"]|(?<=[0-9])\#|\$?{_NAME}|\$\{{{_NAME}\}})*+""", re.ASCII)
_HARMLESS = re.compile(r"[\w\s./:,@%+=~-]*")
"""Characters of which no expression runs anything."""
_COPY = re.compile(rf"""("?)\$(?:({_NAME})|\{{({_NAME})\}})\1""", re.ASCII)
_EXPANSION = re.compile(r"(?<!\\)(?:\\\\)*\$(?=\(\(|\[|\{)")
_BRACED = re.compile(
    rf"""\$\{{(?:!{_NAME}(?:[@*]|\[[@*]\])\}}|\#?(?P<name>{_NAME}|[0-9]++|[@*\#?$!-])(?:\[(?P<subscript>[^\[\]]*)\])?"""
    r"""(?:\}|(?P<sets>:?=)|:?[-?+]|[#%/^,]|@[QEUuLKkAa]\}|:(?P<slice>[^}]*)\}))""",
    re.ASCII,
)
_SET_ELEMENT = re.compile(rf"(?:^|[\s;&|(){{}}!]){_NAME}\[([^\n;]*?)\]\+?=|(?:^|[\s(])\[([^\s\]]*)\]\+?=", re.ASCII)
_HANDLE_IN_ELEMENT = re.compile(rf"(?<!\$)\{{{_NAME}\[", re.ASCII)
_BEFORE_A_COMMAND = re.compile(
    rf".*[;&|({{!)]|if|then|elif|else|while|until|do|time|command|builtin|exec|{_NAME}\+?=.*", re.ASCII | re.DOTALL
)
_CLOSED_BY = {"[[": "]]", "[": "]", "test": ""}
_COMPARES = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_LOOKS_UP = frozenset({"-v", "-R"})
_STRING = "'"
"""The replacement for quoted text in the code that is checked."""


def arithmetic_names(text: str) -> set[str] | None:
    """Return the variables that an arithmetic text evaluates; None if the text itself may run something."""
    text = _NUMBER.sub("0", text)
    return set(_WORD.findall(text)) if _ARITHMETIC.fullmatch(text) else None


def value_of(text: str, literal: str | None) -> str | None:
    """Return the value of a variable after `x=text`: its text, or the name of the variable it copies; None: unknown."""
    if literal is not None or not text:
        return literal or ""
    bare = text.strip('"')
    if _NUMBER.fullmatch(bare) or (bare.startswith("$((") and bare.endswith("))")):
        return "0"
    copied = _COPY.fullmatch(text)
    return (copied[2] or copied[3]) if copied else None


def settled(names: Iterable[str], values: Mapping[str, list[str | None]]) -> bool:
    """Return whether the evaluation of these variables, and of those named in their values, runs nothing."""
    waiting, seen = [*names], set[str]()
    for name in waiting:
        if name in seen:
            continue
        seen.add(name)
        for value in values.get(name, ()):
            if value is None or (arithmetic_names(value) is None and not _HARMLESS.fullmatch(value)):
                return False
            waiting += _WORD.findall(value)
    return True


@record
class Evaluated:
    """Collects what the shell evaluates."""

    names: set[str] = field(default_factory=set)
    """Variables whose values are evaluated as expressions."""
    sets: set[str] = field(default_factory=set)
    """Variables that get an unknown value."""
    unsure: bool = False
    """True if the evaluation may run something."""

    def arithmetic(self, text: str) -> None:
        """Add an arithmetic text."""
        names = arithmetic_names(text)
        self.unsure |= names is None
        self.names |= names or set()

    def subscript(self, text: str) -> None:
        """Add the text between the brackets of an array element."""
        if text not in ("@", "*"):
            self.arithmetic(text)

    def lookup(self, word: str) -> None:
        """Add a word that the shell reads as a variable name: `-v NAME`, `unset NAME`."""
        element = _ELEMENT.fullmatch(word)
        if element:
            self.subscript(element[2])
        else:
            self.unsure |= not PLAIN_NAME.fullmatch(word)

    def expansions(self, text: str) -> None:
        """Add every `$((…))`, `$[…]` and `${…}` of a text in which quotes have no meaning."""
        for match in _EXPANSION.finditer(text):
            at = match.end() - 1
            if self.unsure:
                return
            if text[at + 1] == "{":
                self._braces(text, at)
            else:
                opening, closing = ("((", "))") if text[at + 1] == "(" else ("[", "]")
                end = _closing(text, at + 1)
                inside = text[at + 1 : end]
                self.unsure |= not inside.endswith(closing)
                self.arithmetic(inside[len(opening) : -len(closing)])

    def _braces(self, text: str, at: int) -> None:
        """Add the `${…}` at `at`."""
        found = _BRACED.match(text, at)
        if found is None:
            self.unsure = True  # ${!x}, ${x@P}, and syntax of newer shells
            return
        if found["subscript"] is not None:
            self.subscript(found["subscript"])
        for part in (found["slice"] or "").split(":"):
            self.arithmetic(part)
        if found["sets"]:
            self.sets.add(found["name"])

    def conditions(self, code: str) -> None:
        """Add every `[[ … ]]`, `[ … ]` and `test …`."""
        kind, words, before = "", list[str](), ";"
        for word in [*code.replace("\n", " ; ").split(), ";"]:
            bare = word.rstrip(";&|)}")
            if not kind:
                kind, words = word.lstrip(";&|(!{"), []
                begins = kind != word or _BEFORE_A_COMMAND.fullmatch(before)
                kind = kind if kind in _CLOSED_BY and (begins or kind != "test") else ""
                before = word
            elif bare == _CLOSED_BY[kind] or (kind == "test" and bare != word):
                (self._double_brackets if kind == "[[" else self._single_brackets)([*words, bare])
                kind, before = "", word
            else:
                words.append(word)
        self.unsure |= kind == "[["

    def _double_brackets(self, words: list[str]) -> None:
        for i, word in enumerate(words):
            if word in _COMPARES:
                for operand in (*words[max(i - 1, 0) : i], *words[i + 1 : i + 2]):
                    self.arithmetic(_NUMBER.sub("0", operand).strip("()"))
            elif word in _LOOKS_UP:
                self.lookup("".join(words[i + 1 : i + 2]).strip('()"'))

    def _single_brackets(self, words: list[str]) -> None:
        """Add `[ … ]` or `test …`, where an expanded word may become an operator, and an unquoted one several words."""
        for i, word in enumerate(words):
            after = "".join(words[i + 1 : i + 2])
            if word in _LOOKS_UP:
                self.lookup(after.strip('"'))
            self.unsure |= "$" in word and "$" in after and not (_NUMBER.fullmatch(word.strip('"')))
            if not word.startswith('"') and not _NUMBER.fullmatch(word):
                self.names |= set(re.findall(rf"\$\{{?({_NAME})", word, re.ASCII))
                self.unsure |= bool(re.search(r"\$\{?[0-9@*]", word))


def evaluated(script: str) -> Evaluated:
    """Return what the shell evaluates in a script, except for the arguments of its builtins."""
    found = Evaluated()
    cut = pieces(script)
    if cut is None:
        found.unsure = True
        return found
    code = "".join(_code(cut, found))
    for match in _SET_ELEMENT.finditer(code):
        found.subscript((match[1] or match[2] or "").strip('"'))
    found.unsure |= bool(_HANDLE_IN_ELEMENT.search(code))
    found.conditions(code)
    return found


def _code(cut: list[str], found: Evaluated) -> Iterable[str]:
    """Yield the code with a mark for quoted text and without comments; add the expansions on the way to `found`."""
    live_bodies = False
    for piece in cut:
        joined = piece.replace("\\\n", "")
        if joined[:1] == "\n":
            if live_bodies:
                found.expansions(joined)
            live_bodies = False
            yield "\n"
        elif joined.startswith("(("):
            found.arithmetic(joined[2:-2])
            yield " "
        elif joined.startswith("<<") and not joined.startswith("<<<"):
            live_bodies |= not any(mark in joined for mark in "'\"\\")
            yield " "
        elif joined[:1] == "'" or joined.startswith(("\\", "$'")):
            inside = joined.strip("'")
            yield inside if PLAIN_NAME.fullmatch(inside) or inside.isdigit() else _STRING
        elif joined[:1] == '"':
            found.expansions(joined)
            yield joined if " " not in joined and arithmetic_names(joined) is not None else f'"{_STRING}"'
        elif joined[:1] == "$":
            found.expansions(joined)
            yield joined
        elif not (joined[:1] == "#" and len(joined) > 1):
            yield joined


def _closing(text: str, at: int) -> int:
    """Return the index after the bracket that closes the one at `at`."""
    opening = text[at]
    closing, depth = {"(": ")", "[": "]"}[opening], 0
    for i in range(at, len(text)):
        depth += (text[i] == opening) - (text[i] == closing)
        if not depth:
            return i + 1
    return len(text)
