"""Generates random commands for bash: well-formed ones, the same with a few characters moved, and random characters.

A substitution runs `X`, and `>( )` runs `Z`; both names occur nowhere else. The commands contain no slash and no loop.
They contain no pipeline, because a subshell in a pipeline looks like a substitution.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

SUBSTITUTIONS = ["$(X)", "`X`", "<(X)", ">(Z)", "$( (X) )", "$((X);(X))", "$\\\n(X)", "<\\\n(X)", "${ X; }"]
SOUP = [
    *SUBSTITUTIONS,
    "'", '"', "\\", "\n", " ", " ", "#", " #", "$", "$$", "{", "}", "[", "]", "(", ")", "((", "))", "<<E\n",
    "<<'E'\n", "<<-E\n", '<<"E"', "<<\\E\n", "\nE\n", "\n\tE\n", "E", "a", "x", "=", ":", "echo ", ": ",
    ";", "&&", "||", "!", "@(", "?(", "+(", "*", "~", "${x:-", "${x#", "${x/", "${a[", "${x:",
    '"${x:-', "$((", "$[", "$'", '$"', "\\'", "\\x24(X)", "\\x27", "[[ ", " ]]", "=~ ", "case a in ", ") ",
    ";;", " esac", "f() { ", "; }", "f\n", "a=(", "a[", "]=", "<<<", "{a,b}", "1<2", "1<<2", "if ",
    "; then ", "; fi", "\\\n", "shopt -s extglob\n", "\t", ">", "<", "&", "-", "\x01", "\x7f", "é",
]  # fmt: skip
IN_DOUBLE_QUOTES = [
    "a", " ", "'", "\\$(X)", "\\`X\\`", "<(X)", "#", '\\"', "}", "$$(X)", "\n", "$", "\\\\", "))", "]",
]  # fmt: skip
IN_HEREDOC = [
    "it's ", "$(X)\n", "\\$(X)", "\n", "a\\\n",
    '"', "$x", "$((1+1))", "${x:-a}", "\tb\n", "\\\\\n", "\\", "E\\\n",
    "${x:-'$(X)'}", "`X`", "<(X)", "#", "\\`X\\`", "$[1]", "$((X);(X))",
]  # fmt: skip
NUMBERS = [
    "1", "x", "(2)", "1+(2)", "1<(2)", "1<<2", "$x", "${x:-1}", "$((1))", "2#1", "a[1]", '"1"', "\\\n",
]  # fmt: skip
ODD_NUMBERS = [
    "$(X)", "`X`", "'$(X)'", "\\$(X)", "'1'", '"$(X)"', "$'1'", " # 1", "a[\\$(X)]", "${x:-'$(X)'}",
]  # fmt: skip
PARAMETERS = ["z:-", "z-", "HOME#", "HOME%%", "HOME/", "HOME/a/", "HOME:", "a[", "HOME^"]
DOLLARS = ["$x", "$$", "$?", "$#", "$@", '$"a"', "${x}", "${#x}", "${a[1]}", "$-", "${a[@]}"]
PLAIN = ["a", "b1", "x", "E", "-n", "1", "a=b", "%", ".", "a,b", "é"]


class Strings:
    """Generates commands. `straight`: bash reaches every part, so a refusal without a substitution is a mistake.

    Straight commands leave out what Handrail refuses although bash would not substitute; docs/shell-text.md lists it.
    """

    def __init__(self, random: Random, *, straight: bool = False) -> None:
        self.random = random
        self.straight = straight
        self.depth = 0

    def one(self) -> str:
        if self.straight or self.random.random() < 0.3:
            return self.script()
        if self.random.random() < 0.6:
            return self.mutated()
        return "".join(self.random.choices(SOUP, k=self.random.randint(2, 12)))

    def script(self) -> str:
        lines = self.lines()
        parts = [self.choose(lines)() for _ in range(self.random.randint(1, 3))]
        separators = ["\n", "; ", "\n\n"] if self.straight else ["\n", "; ", "\n\n", " && ", " & ", " # '\n"]
        text = parts[0]
        for part in parts[1:]:
            text += ("\n" if text.endswith("\n") else self.choose(separators)) + part
        return text

    def mutated(self) -> str:
        text = self.script()
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randint(0, len(text))
            kind = self.random.random()
            if kind < 0.4:
                text = text[:at] + text[at + self.random.randint(1, 2) :]
            elif kind < 0.9:
                text = text[:at] + self.choose(SOUP) + text[at:]
            else:
                end = min(len(text), at + self.random.randint(1, 8))
                text = text[:end] + text[at:]
        return text

    def choose(self, options: Sequence[T]) -> T:
        return self.random.choice(options)

    def lines(self) -> list[Callable[[], str]]:
        common = [self.command] * 5 + [self.arithmetic_command, self.heredoc, self.array, self.group]
        if self.straight:  # a script with [[ is refused more often
            return self.choose([common, [self.command, self.conditional]])
        return [*common, self.conditional, self.case, self.function, self.branch, self.pattern]

    def command(self) -> str:
        name = self.choose(["echo", ":", "p1", "p2", "x=" + self.word() + " p3", "y=" + self.word()])
        words = " ".join(self.word() for _ in range(self.random.randint(0, 3)))
        tail = self.choose(["", "", "", " # it's " + self.text(["$(X)", "'", '"', "`X`", " "])])
        return f"{name} {words}{tail}"

    def word(self) -> str:
        return "".join(self.piece() for _ in range(self.random.randint(1, 3)))

    def piece(self) -> str:
        self.depth += 1
        pieces: list[Callable[[], str]] = [
            lambda: self.choose(PLAIN), self.single, self.double, self.ansi, self.escape,
        ]  # fmt: skip
        if self.depth < 4:
            pieces += [self.braces, self.arithmetic, self.double, self.dollar]
        if self.random.random() < 0.1:
            pieces = [lambda: self.choose(SUBSTITUTIONS)]
        piece = self.choose(pieces)()
        self.depth -= 1
        return piece

    def text(self, parts: list[str]) -> str:
        return "".join(self.random.choices(parts, k=self.random.randint(0, 3)))

    def single(self) -> str:
        return "'" + self.text(["$(X)", "`X`", '"', "a", " ", "\\", "#", "<(X)", "\n", "}", "]", "))"]) + "'"

    def double(self) -> str:
        text = self.text(IN_DOUBLE_QUOTES)
        if self.depth < 4 and self.random.random() < 0.5:
            text += self.choose([lambda: self.braces(soft=True), self.arithmetic])()
        return '"' + text + self.choose(["", "", "", "", "$(X)", "`X`"]) + self.text(IN_DOUBLE_QUOTES) + '"'

    def ansi(self) -> str:
        return "$'" + self.text(["\\'", "$(X)", "a", '"', "\\\\", "`X`", "\\n", "\\x24(X)", "\\x27"]) + "'"

    def escape(self) -> str:
        return self.choose(["\\$", "\\'", '\\"', "\\ ", "\\#", "\\<", "\\`", "\\\n", "a\\\n", "\\(", "\\\\"])

    def dollar(self) -> str:
        return self.choose(DOLLARS)

    def braces(self, *, soft: bool = False) -> str:
        self.depth += 1
        head = self.odd(PARAMETERS, ["w:="])
        if head == "a[":
            text = "${a[" + self.odd(["1", "1+1", "x", "'1'", '"$x"'], ["$(X)", "'$(X)'", "\\$(X)"]) + "]}"
        elif head == "HOME:":
            usual = ["1", "1:2", " -1", "x?1:2", "'1'"]
            text = "${HOME:" + self.odd(usual, ["1<(2)", "$(X)", "'$(X)'"]) + "}"
        elif soft:
            text = "${" + head + self.odd(["", "a", '"}"', "'a'"], ["'$(X)'", "'}'", self.piece()]) + "}"
        else:
            text = "${" + head + self.choose(["", "}", "'}'", '"}"', "'$(X)'", self.piece(), self.piece()]) + "}"
        self.depth -= 1
        return text

    def odd(self, usual: list[str], unusual: list[str]) -> str:
        return self.choose(usual if self.straight else usual + unusual)

    def numbers(self) -> str:
        text = "+".join(self.random.choices(NUMBERS, k=self.random.randint(1, 3)))
        return text + ("+" + self.choose(ODD_NUMBERS) if not self.straight and self.random.random() < 0.3 else "")

    def arithmetic(self) -> str:
        usual = [("$((", "))"), ("$(( ", " ))"), ("$[", "]"), ("$(((", ")))")]
        opening, closing = self.choose(usual if self.straight else [*usual, ("$((", ") )")])
        return opening + self.numbers() + closing

    def arithmetic_command(self) -> str:
        if self.random.random() < 0.2:
            return "for ((i=0;i<1;i++)); do " + self.command() + "\ndone"
        return self.odd(["((", "(( "], ["(\\\n("]) + self.numbers() + self.odd(["))", " ))"], [") )"])

    def heredoc(self) -> str:
        command, bodies = self.choose([":", "echo", "p4"]), ""
        for _ in range(self.choose([1, 1, 1, 2])):
            word = self.choose(["E", "'E'", '"E"', "\\E", "E", "''", "E'F'"])
            delimiter = word.translate({ord(mark): None for mark in "'\"\\"})
            command += self.choose([" <<", " <<-", " << ", " 3<<", "<<"]) + word
            bodies += self.text(IN_HEREDOC) + "\n" + self.choose(["", "", "\t"]) + delimiter + "\n"
        tail = self.choose(["", "", " # it's", " " + self.word(), "; " + self.command()])
        return command + tail + "\n" + bodies

    def array(self) -> str:
        element = self.choose(["[1]=", "", "['1']=", "[ 1 ]=", ""]) + self.word()
        whole = "a=(" + element + self.choose([" ", " # it's\n", "\n"]) + self.word() + ")"
        subscript = self.odd(["1", "1+1", " 1 ", "x", "'1'"], ["1<<2", "'$(X)'", "$(X)", "1<(2)", "1 # '\n"])
        return self.choose([whole, f"a[{subscript}]={self.word()}", f"echo a[{subscript}] b"])

    def conditional(self) -> str:
        usual = [self.word(), "(a|b)", "((a)|b)", "@(a|b)", "[[:space:]]"]
        right = self.odd(usual, ["(a| # it's\n)", "a|#b", "((a == <(X)))"])
        return f"[[ {self.word()} {self.choose(['==', '=~', '!=', '<'])} {right} ]]"

    def group(self) -> str:
        usual = [("{ ", "\n}"), ("( ", "\n)"), ("! ", "")]
        opening, closing = self.choose(usual if self.straight else [*usual, ("((", "); (:))")])
        return opening + self.command() + closing

    def case(self) -> str:
        return f"case {self.word()} in {self.choose(['', '('])}{self.word()}) {self.command()}\n;; esac"

    def function(self) -> str:
        return "f() { " + self.command() + "\n}" + self.choose(["\nf", "; f"])

    def branch(self) -> str:
        return f"if {self.command()}\nthen {self.command()}\nelse {self.command()}\nfi"

    def pattern(self) -> str:
        body = self.choose(["a|b", "a|#b", "a| # it's\n", "$(X)", "'$(X)'", "a|(b)", "a<(X)"])
        return f"shopt -s extglob\necho {self.choose('?*+@!')}({body}) {self.word()}"
