"""Finds the first words of all commands in a text by bash's quoting alone, to check the result of a grammar.

If it errs, it names too much: patterns of `case`, words of arrays, names of functions.
"""

import re
from dataclasses import field

from handrail.model.record import record
from handrail.ops.shell.substitution import pieces

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)(?:\[.*\])?\+?=", re.DOTALL | re.ASCII)
_DESCRIPTOR = re.compile(r"[0-9]+|\{[A-Za-z_][A-Za-z_0-9]*\}", re.ASCII)
_PLAIN_TEXT = re.compile(r"[ \t]+|[;&|]+|[^ \t;&|]+")
_TRANSPARENT = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "fi", "done", "esac"})
_HEADS = frozenset({"for", "case", "select", "function", "[["})
"""Words after which no command follows up to the next operator."""


@record
class FirstWords:
    """Holds the first words of the commands in a text."""

    words: list[str] = field(default_factory=list)
    """The words as they are written, quotes included."""
    assigns: list[str] = field(default_factory=list)
    redirects: bool = False


def first_words(command: str) -> FirstWords | None:
    """Return the first word of each command in a text; None if the text has substitutions or cannot be read."""
    cut = pieces(command)
    if cut is None:
        return None
    reader = _WordReader()
    for piece in cut:
        reader.take(piece)
    reader.end_command()
    return reader.found


class _WordReader:
    """Collects the first words from the pieces of a command."""

    def __init__(self) -> None:
        self.found = FirstWords()
        self.word = ""
        self.begins = True
        """True if no word of the command was read yet, so that a reserved word counts as one."""
        self.named = False
        """True if the first word of the command was read."""
        self.target = False
        """True if the next word is the target of a redirection."""

    def take(self, piece: str) -> None:
        """Read the next piece."""
        char = piece[0]
        if piece == "\\\n" or (char == "#" and not self.word):
            return
        if char in "\n()":
            self.end_command()
        elif char in "<>":
            self.redirect(piece)
        elif char in "\\'\"$[#":
            self.word += piece
        else:
            self.take_plain(piece)

    def take_plain(self, text: str) -> None:
        """Read a piece without quotes: words, blanks and operators."""
        if self.target and not self.word and text[0] in "&|":
            text = text[1:]  # >&file, >|file
        for part in _PLAIN_TEXT.findall(text):
            if part[0] in ";&|":
                self.end_command()
            elif part[0] in " \t":
                self.end_word()
            else:
                self.word += part

    def redirect(self, piece: str) -> None:
        if _DESCRIPTOR.fullmatch(self.word):
            self.word = ""
        self.end_word()
        self.begins = False
        self.found.redirects = True
        self.target = not piece.startswith("<<") or piece.startswith("<<<")  # the piece of << includes its word

    def end_word(self) -> None:
        word, self.word = self.word, ""
        if not word or (self.begins and word in _TRANSPARENT):
            return
        if self.target:
            self.target = False
        elif not self.named:
            self.first(word)
        self.begins = False

    def first(self, word: str) -> None:
        """Collect an assignment before the program, or the program itself."""
        if assignment := _ASSIGNMENT.match(word):
            self.found.assigns.append(assignment[1])
            return
        self.named = True
        if not (self.begins and word in _HEADS):
            self.found.words.append(word)

    def end_command(self) -> None:
        self.end_word()
        self.begins = True
        self.named = self.target = False
