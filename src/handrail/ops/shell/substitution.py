"""Decides whether bash would substitute anything in a command. This is a lint; the sandbox is the security boundary.

The scan ends at the first active substitution, so it never parses the inside of one and only follows quoting.
Text in arithmetic, and in `${…}` within double quotes, is expanded however it is quoted: the code calls it soft.
If the parse depends on shell options or runtime values, the scan gives up and assumes that any possible
substitution happens.
"""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_CONTINUATION = "\\\n"
_DEPTH = 50
_SPECIAL_PARAMETERS = "$?!#@*-"
_PATTERN_MARKS = "?*+@!"
_FUNCTION_MARKS = " \t\n|(;"
"""Characters after `${` that make it run a command in the current shell: `${ cmd; }`, `${|cmd;}`."""
_OPENING = {")": "(", "]": "[", "}": ""}

_IN_CODE = re.compile(r"""[\\'"`$<>()#\n\[]""")
_SINGLE_QUOTE = re.compile("'")
_IN_QUOTES = re.compile(r'[\\"`$]')
_IN_BRACES = re.compile(r"""[\\'"`$<>}]""")
_IN_HEREDOC = re.compile(r"[\\`$]")
_IN_ARITHMETIC = re.compile(r"""[\\'"`$<>#()\[\]}]""")

_PARAMETER = re.compile(r"[!#]?(?:[A-Za-z_][A-Za-z_0-9]*|[0-9]+|[-@*#?$!])?")
_PARAMETER_SUBSCRIPT = re.compile(_PARAMETER.pattern + r"\[")
_SUBSTRING = re.compile(r":(?![-=?+])")
_ANSI_STRING = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)
# Strings with the same meaning whether or not the quotes count, and whether they are expanded once or twice.
_PLAIN_STRING = re.compile(r"""'[^'"\\$`()\[\]{}\n]*'""")
_NOT_PLAIN = re.compile(r"[\\'()\[\]]")
_PLAIN_ANSI_STRING = re.compile(r"""'(?:[^'"\\$`(){}]|\\[abeEfnrtv]|\\0?33|\\x1[bB])*'""")
_HEREDOC_WORD = re.compile(r"""(?:'[^'\n]*'|"[^"\\$`\n]*"|\\[^\n]|[^ \t\n'"\\$`()<>;&|])+(?=[ \t\n;&|<>)]|\Z)""")
_QUOTE_MARKS = re.compile(r"""\\(.)|'([^']*)'|"([^"]*)\"""")
_HEREDOC_LINE = re.compile(r"[^\n]*\n?")
_JOINED_LINE = re.compile(r"(?:[^\\\n]+|\\.|\\\Z)*\n?", re.DOTALL)
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_PROCESS = re.compile(r"[<>](?:\\\n)*\(")
# These begin a comment, a here-document or a substitution in an argument, but not in a subscript.
_TWO_READINGS = re.compile(r"[#<\n]|>\(")
_COULD_SUBSTITUTE = re.compile(r"\$\(|`|[<>]\(|\$\{[ \t\n|(;]")
_SPELT_BY_NUMBER = re.compile(r"\\[xuU0-7]")


class _SubstitutionFound(Exception):  # noqa: N818  not an error: it ends the scan
    """The scan found an active substitution."""


class _Unclear(Exception):  # noqa: N818  not an error: it ends the scan
    """The scan cannot decide."""


def substitutes(command: str) -> bool:
    """Return whether bash would substitute anything; if the scan cannot decide, whether bash could."""
    try:
        _Code(command).scan()
    except _SubstitutionFound:
        return True
    except _Unclear:
        return _could_substitute(command)
    return False


def pieces(command: str) -> list[str] | None:
    """Cut a command into the pieces that the scan sees; return None if the command substitutes or is unclear.

    Pieces are quotes, expansions, operators, comments, newlines with the here-documents after them, and other text.
    """
    code = _Code(command)
    try:
        code.scan()
    except (_SubstitutionFound, _Unclear):
        return None
    return [command[start:end] for start, end in pairwise([0, *code.cuts, len(command)]) if start < end]


def _could_substitute(command: str) -> bool:
    text = command.replace(_CONTINUATION, "")
    return bool(_COULD_SUBSTITUTE.search(text) or ("$'" in text and _SPELT_BY_NUMBER.search(text)))


class _Text:
    """Scans what commands and here-documents share: `$`, quotes, braces, arithmetic.

    Most methods take the index of a construct and return the index after it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = 0
        self.fuel = 4 * len(text) + 10_000

    def at(self, i: int) -> str:
        return self.text[i : i + 1]

    def skip(self, i: int) -> int:
        while self.text.startswith(_CONTINUATION, i):
            i += 2
        return i

    def end(self, pattern: re.Pattern[str], i: int) -> int:
        match = pattern.match(self.text, i)
        return match.end() if match else i

    def stop(self, pattern: re.Pattern[str], i: int) -> int:
        match = pattern.search(self.text, i)
        if match is None:
            raise _Unclear
        return match.start()

    def piece(self, i: int, *, soft: bool) -> int:
        """Return the index after the quoted or expanded piece of a word that begins at `i`."""
        char = self.text[i]
        if char == "`":
            raise _SubstitutionFound
        if char == "$":
            return self.dollar(i, soft=soft)
        if char == '"':
            return self.double_quotes(i + 1)
        if char == "'":
            return self.plain_string(i) if soft else self.stop(_SINGLE_QUOTE, i + 1) + 1
        return i + 2

    def dollar(self, i: int, *, soft: bool, quotes: bool = True) -> int:
        """Return the index after the expansion that the `$` at `i` begins; `quotes`: it may be a string, `$'…'`."""
        j = self.skip(i + 1)
        char = self.at(j)
        if char == "(":
            end = self.double_parentheses(j + 1) if self.at(j + 1) == "(" else None
            if end is None:
                raise _SubstitutionFound
            return end
        if char == "{":
            return self.braces(self.skip(j + 1), soft=soft)
        if char == "[":
            return self.arithmetic(j + 1, "]")
        if char == "'" and quotes:
            return self.ansi_string(j, soft=soft)
        return j + 1 if char and char in _SPECIAL_PARAMETERS else j

    def ansi_string(self, i: int, *, soft: bool) -> int:
        string = _ANSI_STRING.match(self.text, i)
        if string is None or (soft and not _PLAIN_ANSI_STRING.fullmatch(string[0])):
            raise _Unclear
        return string.end()

    def double_quotes(self, i: int) -> int:
        while True:
            i = self.stop(_IN_QUOTES, i)
            if self.text[i] == '"':
                return i + 1
            i = self.expansion(i)

    def expanded(self) -> None:
        """Scan the whole text as the body of a here-document, in which quotes have no meaning."""
        i = 0
        while match := _IN_HEREDOC.search(self.text, i):
            i = self.expansion(match.start())

    def expansion(self, i: int) -> int:
        return self.dollar(i, soft=True, quotes=False) if self.text[i] == "$" else self.piece(i, soft=True)

    def braces(self, i: int, *, soft: bool) -> int:
        """Return the index after the `}` of the expansion whose parameter begins at `i`."""
        if self.at(i) and self.text[i] in _FUNCTION_MARKS:
            raise _SubstitutionFound
        self.enter()
        parameter, subscript = self.end(_PARAMETER, i), self.end(_PARAMETER_SUBSCRIPT, i)
        i = self.arithmetic(subscript, "]") if subscript > parameter else parameter
        i = self.arithmetic(i, "}") if _SUBSTRING.match(self.text, i) else self.brace_word(i, soft=soft)
        self.depth -= 1
        return i

    def brace_word(self, i: int, *, soft: bool) -> int:
        while True:
            i = self.stop(_IN_BRACES, i)
            char = self.text[i]
            if char == "}":
                return i + 1
            if char not in "<>":
                i = self.piece(i, soft=soft)
            elif self.at(self.skip(i + 1)) == "(":
                raise _SubstitutionFound  # also in double quotes: the replacement of ${x/y/<(z)} is active there
            else:
                i += 1

    def plain_string(self, i: int) -> int:
        string = _PLAIN_STRING.match(self.text, i)
        if string is None:
            raise _Unclear
        return string.end()

    def arithmetic(self, i: int, close: str) -> int:
        """Return the index after the `close` that ends an arithmetic text."""
        self.enter()
        begin, nested, opening = i, 0, _OPENING[close]
        while True:
            i = self.stop(_IN_ARITHMETIC, i)
            char = self.text[i]
            if char == close and not nested:
                break
            nested += (char == opening) - (char == close)
            if char == '"':
                i = self.arithmetic_string(i)
            elif char in "'`$":
                i = self.piece(i, soft=True)
            elif self.text.startswith(_CONTINUATION, i):
                i += 2
            elif char == "\\" or (char == "#" and self.text[i - 1] in " \t\n"):
                raise _Unclear
            else:
                i += 1
        self.fuel -= i - begin
        if self.fuel < 0:
            raise _Unclear
        self.depth -= 1
        return i + 1

    def arithmetic_string(self, i: int) -> int:
        end = self.double_quotes(i + 1)
        if _NOT_PLAIN.search(self.text, i, end):
            raise _Unclear
        return end

    def double_parentheses(self, i: int) -> int | None:
        """Return the index after the `))` if the `((` at `i` begins arithmetic; None if it begins two subshells."""
        end = self.arithmetic(i + 1, ")")
        return end + 1 if self.at(end) == ")" else None

    def enter(self) -> None:
        self.depth += 1
        if self.depth > _DEPTH:
            raise _Unclear


class _Code(_Text):
    """Scans commands as the shell reads them: words, comments, here-documents."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.word_begins = True
        self.cuts: list[int] = []
        self.parentheses = 0
        self.pattern = 0
        """The number of open parentheses of extended patterns such as `@(a|b)`."""
        self.array = False
        self.conditional = text.find("[[")
        self.regex = "=~" in text
        self.operators: dict[str, Callable[[int], int]] = {
            "(": self.open,
            ")": self.close,
            "<": self.redirection,
            ">": self.redirection,
            "\n": self.newline,
            "#": self.comment,
            "[": self.bracket,
        }
        self.pending: list[tuple[str, bool, bool]] = []
        """Here-documents whose bodies begin after this line: delimiter, quoted, tabs stripped."""

    def scan(self) -> None:
        """Scan the whole text and collect the cuts for `pieces`. Raises _SubstitutionFound or _Unclear."""
        i = 0
        while match := _IN_CODE.search(self.text, i):
            if match.start() > i:
                self.word_begins = self.text[match.start() - 1] in " \t;&|"
            i = self.token(match.start())
            self.cuts += (match.start(), i)

    def token(self, i: int) -> int:
        if self.text.startswith(_CONTINUATION, i):
            return i + 2
        char = self.text[i]
        if char in self.operators:
            return self.operators[char](i)
        self.word_begins = False
        return self.piece(i, soft=False)

    def opaque(self) -> bool:
        """Return whether the scan is in a pattern or, perhaps, a regular expression: no comments, no here-documents."""
        return bool(self.pattern or (self.regex and self.parentheses))

    def comment(self, i: int) -> int:
        if not self.word_begins:
            return i + 1
        if self.opaque() or (self.regex and self.text[i - 1] == "|"):
            raise _Unclear
        end = self.text.find("\n", i)
        return end if end >= 0 else len(self.text)

    def newline(self, i: int) -> int:
        self.word_begins = True
        if self.pending and self.opaque():
            raise _Unclear
        i += 1
        for delimiter, quoted, tabs in self.pending:
            i = self.heredoc_body(i, delimiter, quoted=quoted, tabs=tabs)
        self.pending.clear()
        return i

    def redirection(self, i: int) -> int:
        self.word_begins = True
        j = self.skip(i + 1)
        if self.at(j) == "(":
            raise _SubstitutionFound
        if self.text[i] == ">" or self.at(j) != "<":
            return i + 1
        j = self.skip(j + 1)
        if self.at(j) == "<":
            return j + 1
        return self.heredoc(j)

    def close(self, i: int) -> int:
        self.word_begins = True
        self.pattern = max(0, self.pattern - 1)
        self.parentheses = max(0, self.parentheses - 1)
        self.array = False
        return i + 1

    def open(self, i: int) -> int:
        previous = "" if self.word_begins else self.before(i)
        self.word_begins = True
        if self.pattern or (previous and previous in _PATTERN_MARKS):
            self.pattern += 1
        elif end := self.arithmetic_command(i):
            return end
        self.array = previous == "="
        self.parentheses += 1
        return i + 1

    def before(self, i: int) -> str:
        while self.text.endswith(_CONTINUATION, 0, i):
            i -= 2
        return self.text[i - 1 : i]

    def arithmetic_command(self, i: int) -> int | None:
        j = self.skip(i + 1)
        end = self.double_parentheses(j) if self.at(j) == "(" else None
        if end and 0 <= self.conditional < i and _PROCESS.search(self.text, i, end):
            raise _Unclear  # within [[ ]] these are two groups, and `<(` is active
        return end

    def bracket(self, i: int) -> int:
        """Scan a `[`: `a[…]=` is arithmetic, an argument `a[…]` is a word. Raises _Unclear if the two differ."""
        name = i
        while name and (self.text[name - 1] == "_" or self.text[name - 1].isalnum()):
            name -= 1
        named = name < i and (not name or self.text[name - 1] in " \t\n;&|()<>")
        if named or (self.array and self.word_begins):
            end = self.arithmetic(i + 1, "]")
            if _TWO_READINGS.search(self.text, i, end):
                raise _Unclear
        self.word_begins = False
        return i + 1

    def heredoc(self, i: int) -> int:
        """Read the delimiter of a heredoc after `<<`; its body is skipped at the end of the line."""
        tabs = self.at(i) == "-"
        i += tabs
        while self.at(i) in (" ", "\t") or self.text.startswith(_CONTINUATION, i):
            i += 1 if self.text[i] != "\\" else 2
        word = _HEREDOC_WORD.match(self.text, i)
        if word is None or self.at(i) == "#" or self.opaque():
            raise _Unclear
        delimiter = _QUOTE_MARKS.sub(lambda m: m[1] or m[2] or m[3] or "", word[0])
        self.pending.append((delimiter, delimiter != word[0], tabs))
        self.word_begins = False
        return word.end()

    def heredoc_body(self, i: int, delimiter: str, *, quoted: bool, tabs: bool) -> int:
        line_end = _HEREDOC_LINE if quoted else _JOINED_LINE
        body = []
        while i < len(self.text):
            end = self.end(line_end, i)
            line = self.text[i:end]
            i = end
            if not quoted:
                line = _ESCAPED.sub(lambda pair: "" if pair[0] == _CONTINUATION else pair[0], line)
            if tabs:
                line = line.lstrip("\t")
            if line.removesuffix("\n") == delimiter:
                break
            body.append(line)
        if not quoted:
            _Text("".join(body)).expanded()
        return i
