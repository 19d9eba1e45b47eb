"""The first word of every command in a text, by bash's quoting alone: a second opinion on what a grammar says.

It errs by naming too much: patterns of `case`, words of arrays, names of functions.
"""

import re

from handrail.ops.shellscan import pieces

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:\[.*\])?\+?=", re.DOTALL | re.ASCII)
_DESCRIPTOR = re.compile(r"[0-9]+|\{[A-Za-z_][A-Za-z_0-9]*\}", re.ASCII)
_PLAIN_TEXT = re.compile(r"[ \t]+|[;&|]+|[^ \t;&|]+")
_TRANSPARENT = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{", "}", "fi", "done", "esac"})
_HEADS = frozenset({"for", "case", "select", "function", "[["})
"""What follows them up to the next operator is no command."""


def first_words(command: str) -> list[str] | None:
    """As they are written, quotes and all; None where the command substitutes or cannot be read."""
    cut = pieces(command)
    if cut is None:
        return None
    reader = _Reader()
    for piece in cut:
        reader.take(piece)
    reader.end_command()
    return reader.found


class _Reader:
    def __init__(self) -> None:
        self.found: list[str] = []
        self.word = ""
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
        self.target = not piece.startswith("<<") or piece.startswith("<<<")  # << has taken its word along

    def end_word(self) -> None:
        word, self.word = self.word, ""
        if not word:
            return
        if self.target:
            self.target = False
        elif not self.named and word not in _TRANSPARENT and not _ASSIGNMENT.match(word):
            self.named = True
            if word not in _HEADS:
                self.found.append(word)

    def end_command(self) -> None:
        self.end_word()
        self.named = self.target = False
