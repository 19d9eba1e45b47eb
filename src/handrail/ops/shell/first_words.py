"""What the commands of a text begin with, by bash's quoting alone: a second opinion on what a grammar says.

It errs by naming too much: patterns of `case`, words of arrays, names of functions.
"""

import re
from dataclasses import dataclass, field

from handrail.ops.shell.substitution import pieces

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)(?:\[.*\])?\+?=", re.DOTALL | re.ASCII)
_DESCRIPTOR = re.compile(r"[0-9]+|\{[A-Za-z_][A-Za-z_0-9]*\}", re.ASCII)
_PLAIN_TEXT = re.compile(r"[ \t]+|[;&|]+|[^ \t;&|]+")
_TRANSPARENT = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "fi", "done", "esac"})
_HEADS = frozenset({"for", "case", "select", "function", "[["})
"""What follows them up to the next operator is no command."""


@dataclass
class FirstWords:
    words: list[str] = field(default_factory=list)
    """As they are written, quotes and all."""
    assigns: list[str] = field(default_factory=list)
    redirects: bool = False


def first_words(command: str) -> FirstWords | None:
    """None where the command substitutes or cannot be read."""
    cut = pieces(command)
    if cut is None:
        return None
    reader = _WordReader()
    for piece in cut:
        reader.take(piece)
    reader.end_command()
    return reader.found


class _WordReader:
    def __init__(self) -> None:
        self.found = FirstWords()
        self.word = ""
        self.begins = True
        """No word of the command was seen, so that a reserved word is one."""
        self.named = False
        self.target = False
        """The next word is what a redirection names."""

    def take(self, piece: str) -> None:
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
        self.target = not piece.startswith("<<") or piece.startswith("<<<")  # << has taken its word along

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
