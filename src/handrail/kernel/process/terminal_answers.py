"""Answers the questions that programs ask a terminal, so that a program which waits for the answer does not hang.

Prompts of gh, npm and inquirer ask where the cursor is; others ask for the kind of the terminal or for its colours. A
real terminal answers on the keyboard. The answers here follow a simple screen: the cursor's column and row are counted,
without what programs draw by moving the cursor upwards.
"""

import re
from collections.abc import Callable

_QUERY = re.compile(
    rb"\x1b(?:"
    rb"\[(?P<status>[56])n"
    rb"|\[\?(?P<extended>6)n"
    rb"|\[(?P<primary>0?)c"
    rb"|\[>(?P<secondary>0?)c"
    rb"|\[=(?P<tertiary>0?)c"
    rb"|Z"
    rb"|\](?P<colour>1[0-2])(?:;\?)(?:\x07|\x1b\\)"
    rb"|\[\?(?P<mode>\d+)\$p"
    rb"|\[\?(?P<keys>u)"
    rb"|\[(?P<size>1[468])t"
    rb"|\[>(?P<version>0?)q"
    rb")"
)
_OTHER_SEQUENCE = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()*+][ -~]|[ -/]*[0-~])")
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[()*+]?)?\Z")
_POSITION = re.compile(rb"\x1b\[(\d*)(?:;(\d*))?[Hf]")
_COLOURS = {b"10": b"cccc/cccc/cccc", b"11": b"0000/0000/0000", b"12": b"cccc/cccc/cccc"}
_LONGEST_UNFINISHED = 256
_CELL = 16, 8
"""Height and width of a character in pixels."""


class TerminalAnswers:
    """Follows what a program prints and answers its queries through `reply`."""

    def __init__(self, size: tuple[int, int], reply: Callable[[bytes], None]) -> None:
        self._rows, self._columns = size
        self._row = self._column = 1
        self._reply = reply
        self._rest = b""
        """The beginning of a sequence whose end has not arrived yet."""

    def take(self, chunk: bytes) -> None:
        """Follow a chunk of output, and answer the queries in it."""
        data = self._rest + chunk
        unfinished = _UNFINISHED.search(data)
        cut = unfinished.start() if unfinished and len(data) - unfinished.start() < _LONGEST_UNFINISHED else len(data)
        data, self._rest = data[:cut], data[cut:]
        at = 0
        while (found := data.find(b"\x1b", at)) >= 0:
            self._print(data[at:found])
            at = self._escape(data, found)
        self._print(data[at:])

    def _escape(self, data: bytes, at: int) -> int:
        """Handle one sequence; return where the text continues."""
        query = _QUERY.match(data, at)
        if query is not None:
            answer = self._answer(query)
            if answer:
                self._reply(answer)
            return query.end()
        position = _POSITION.match(data, at)
        if position is not None:
            self._row = min(int(position[1] or 1) or 1, self._rows)
            self._column = min(int(position[2] or 1) or 1, self._columns)
        other = _OTHER_SEQUENCE.match(data, at)
        return other.end() if other else at + 1

    def _answer(self, query: re.Match[bytes]) -> bytes:
        kind = query.lastgroup
        if kind == "status":
            return b"\x1b[0n" if query["status"] == b"5" else b"\x1b[%d;%dR" % (self._row, self._column)
        if kind == "extended":
            return b"\x1b[?%d;%dR" % (self._row, self._column)
        if kind == "colour":
            return b"\x1b]%s;rgb:%s\x1b\\" % (query["colour"], _COLOURS[query["colour"]])
        if kind == "mode":
            return b"\x1b[?%s;0$y" % query["mode"]  # 0: a mode that this terminal does not know
        if kind == "size":
            return self._size(query["size"])
        return _FIXED.get(kind, _FIXED[None])

    def _size(self, asked: bytes) -> bytes:
        """Return the size of the screen in pixels (14) or characters (18), or of a character in pixels (16)."""
        height, width = _CELL
        answers = {
            b"14": (4, self._rows * height, self._columns * width),
            b"16": (6, height, width),
            b"18": (8, self._rows, self._columns),
        }
        return b"\x1b[%d;%d;%dt" % answers[asked]

    def _print(self, text: bytes) -> None:
        """Move the cursor as printed text does."""
        lines = text.count(b"\n")
        self._row = min(self._row + lines, self._rows)
        last = max(text.rfind(b"\r"), text.rfind(b"\n"))
        if last >= 0:
            self._column = 1
        shown = text[last + 1 :].replace(b"\x07", b"")
        back = shown.count(b"\b")
        self._column += sum(byte & 0xC0 != 0x80 for byte in shown) - 2 * back
        self._column = max(1, self._column)
        if self._column > self._columns:
            self._row = min(self._row + (self._column - 1) // self._columns, self._rows)
            self._column = (self._column - 1) % self._columns + 1


_FIXED: dict[str | None, bytes] = {
    None: b"\x1b[?1;2c",  # ESC Z, the old form of the query for device attributes
    "primary": b"\x1b[?1;2c",  # a VT100 with advanced video
    "secondary": b"\x1b[>0;0;0c",
    "tertiary": b"\x1bP!|00000000\x1b\\",
    "keys": b"\x1b[?0u",
    "version": b"\x1bP>|handrail\x1b\\",
}
