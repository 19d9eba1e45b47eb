"""Parses the output of ripgrep: matching lines, counts and error messages. File names may contain line breaks."""

import re
from collections.abc import Iterator
from dataclasses import field
from typing import NamedTuple

from handrail.model.record import record

_MATCH = re.compile(rb"(\d+):(\d+):(\d+):")
_CONTEXT = re.compile(rb"(\d+)-\d+-")
_BINARY = re.compile(
    rb"(?:WARNING: stopped searching binary file after match|binary file matches) "
    rb'\(found "\\0" byte around offset \d+\)'
)
# For a file that was passed as a handle, ripgrep prints the note even if it printed no line of the file.
_BINARY_HANDLE = re.compile(rb"/proc/self/fd/\d+: " + _BINARY.pattern)
_COUNT = re.compile(r"(?:\./)?([^\0]+)\0(\d+)\r?\n")
_PASSED_OVER = re.compile(r"rg: DEBUG\|ignore::walk\|[^ ]*: ignoring (?:\./)?(.+?): Ignore\(.*", re.DOTALL)
_DEBUG = "rg: DEBUG|"
_NEXT_MESSAGE = re.compile(r"\n(?=rg: )")
_COMPLAINT = re.compile(r"rg: (?:\./)?(.+?): (PCRE2: error matching: .*|.* \(os error (\d+)\)|.*)")


class Line(NamedTuple):
    """Holds one printed line: a match or a line of context."""

    number: int
    text: bytes
    column: int
    """The byte at which the first match begins; -1 for a line of context."""
    offset: int = 0
    """The byte of the file at which the line begins."""

    @property
    def is_match(self) -> bool:
        return self.column >= 0


@record
class Block:
    """Holds the part of the output that is about one file."""

    path: bytes
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Start and end of each line in the output, without the file name in front."""
    matches: int = 0


def blocks(output: bytes, *, context: bool) -> list[Block]:
    """Return the output by file, without binary files. Drop a last line that was cut off."""
    found: list[Block] = []
    at, end = 0, output.rfind(b"\n") + 1
    while at < end:
        line_end = output.find(b"\n", at)
        nul = output.find(b"\0", at)
        if nul < 0 or line_end < nul:
            line = output[at:line_end]
            noted = bool(found) and _is_binary_note(line, found[-1].path)
            if noted:
                found.pop()
            if noted or _BINARY_HANDLE.fullmatch(line):
                at = line_end + 1
                continue
        if nul < 0:
            break
        block = Block(output[at:nul])
        at = _fill(block, output, at, end, context=context)
        found.append(block)
    return found


def _fill(block: Block, output: bytes, at: int, end: int, *, context: bool) -> int:
    name = block.path + b"\0"
    length = len(name)
    while at < end and output.startswith(name, at):
        line_end = output.find(b"\n", at + length)
        if line_end < 0:
            return end
        block.spans.append((at + length, line_end))
        block.matches += not context or _MATCH.match(output, at + length) is not None
        at = line_end + 1
    return at


def _is_binary_note(text: bytes, path: bytes) -> bool:
    return text.startswith(path + b": ") and _BINARY.fullmatch(text, len(path) + 2) is not None


def lines(output: bytes, block: Block) -> Iterator[Line]:
    """Yield the lines of one file."""
    for start, end in block.spans:
        match = _MATCH.match(output, start)
        if match:
            yield Line(int(match[1]), output[match.end() : end], int(match[2]) - 1, int(match[3]))
            continue
        context = _CONTEXT.match(output, start)
        if context:
            yield Line(int(context[1]), output[context.end() : end], -1)


def counts(output: bytes) -> list[tuple[str, int]]:
    """Return the paths and numbers that `rg --count` printed."""
    text = output.decode(errors="surrogateescape")
    return [(path, int(number)) for path, number in _COUNT.findall(text)]


class Complaint(NamedTuple):
    """Holds one error message of ripgrep about a file."""

    path: str
    about_the_pattern: bool
    """True if the file could be read, but matching the pattern in it reached PCRE2's limits."""


def complaints(errors: bytes) -> Iterator[Complaint]:
    """Yield the error messages about files."""
    for line in errors.decode(errors="surrogateescape").split("\n"):
        found = None if line.startswith(_DEBUG) else _COMPLAINT.fullmatch(line)
        if found:
            yield Complaint(found[1], found[2].startswith("PCRE2: error matching"))


def passed_over(errors: bytes) -> Iterator[str]:
    """Yield the files and directories that ripgrep passed over because of an ignore file or an exclusion."""
    for message in _NEXT_MESSAGE.split(errors.decode(errors="surrogateescape")):
        found = _PASSED_OVER.fullmatch(message.removesuffix("\n"))
        if found:
            yield found[1]
