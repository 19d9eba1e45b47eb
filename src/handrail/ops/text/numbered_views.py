"""Numbers lines, cuts out snippets and inserts lines as the editor tools of Claude do.

Only LF ends a line here, and a text that ends with LF has one more, empty line.
"""

from handrail.ops.text.buffer import TextBuffer, numbered, to_lf

CLIPPED = (
    "<response clipped><NOTE>To save on context only part of this file has been shown to you. You should retry this "
    "tool after you have searched inside the file with `grep -n` in order to find the line numbers of what you are "
    "looking for.</NOTE>"
)


def shown_lines(data: bytes) -> list[str]:
    """Return the lines of a file as text, without CR; bytes that are no text are replaced."""
    return to_lf(data.decode(errors="replace")).split("\n")


def clipped(text: str, most: int) -> str:
    """Return a text of at most `most` characters, and a note if it was longer."""
    return text if len(text) <= most else text[:most] + CLIPPED


def cat(lines: list[str], what: str, first: int, most: int) -> str:
    """Return numbered lines under a heading, clipped to `most` characters of text."""
    text = clipped("\n".join(lines), most)
    return f"Here's the result of running `cat -n` on {what}:\n" + "\n".join(numbered(text.split("\n"), first)) + "\n"


def lines_before(data: bytes, text: str) -> int:
    """Return how many lines of a file end before the first occurrence of a text."""
    lf = TextBuffer.of(data).lf
    return lf.count("\n", 0, lf.index(to_lf(text)))


def insert_after(data: bytes, line: int, text: str) -> bytes:
    """Insert a text as lines of their own after line `line`; 0 inserts before the first line."""
    buffer = TextBuffer.of(data)
    lines = buffer.lf.split("\n")
    if line == len(lines):
        end = len(buffer.lf)
        return buffer.replace([(end, end, f"\n{text}")])
    at = sum(len(each) + 1 for each in lines[:line])
    return buffer.replace([(at, at, f"{text}\n")])
