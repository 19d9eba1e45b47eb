"""Sorts, filters and formats directory listings."""

import re
from collections.abc import Callable, Iterator
from unicodedata import normalize

from handrail.model.files import Listing

# Punctuation in the order of the en-US collation; other symbols follow, then digits, then letters.
_PUNCTUATION = {char: rank for rank, char in enumerate(" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$")}


def collation_key(name: str) -> tuple[list[tuple[int, int, str]], str, str]:
    """Return the sort key of the en-US collation.

    Punctuation comes first, then digits, then letters without case; a tie is broken by accents, then lower case first.
    """
    plain = normalize("NFD", name)
    base = "".join(char for char in plain if not "\u0300" <= char <= "\u036f")
    return [_weight(char) for char in base.casefold()], plain.casefold(), name.swapcase()


def _weight(char: str) -> tuple[int, int, str]:
    if char in _PUNCTUATION:
        return 0, _PUNCTUATION[char], ""
    return (2 if char.isdigit() else 3 if char.isalpha() else 1), 0, char


def name_filter(patterns: list[str]) -> Callable[[str], bool]:
    """Return a test for bare names: it accepts a name that fits one of the patterns (special: only `*` and `?`)."""
    words = ["".join({"*": ".*", "?": "."}.get(char) or re.escape(char) for char in each) for each in patterns]
    fits = re.compile("|".join(words) or r"(?!)", re.DOTALL)
    return lambda name: fits.fullmatch(name) is not None


def breadth_first(listing: Callable[[str], Listing], depth: int) -> Iterator[list[str]]:
    """Yield the names of each directory, level by level: first its directories with a slash, then the rest.

    Links are not followed. `listing` returns the entries of a directory: its argument is `""` for the top, else a name
    that was yielded, slash included.
    """
    level = [""]
    while level and depth:
        depth -= 1
        below: list[str] = []
        for stem in level:
            listed = listing(stem)
            directories = [f"{stem}{name}/" for name in listed.directories]
            others = sorted([*listed.files, *(each.name for each in listed.others)]) if listed.others else listed.files
            yield directories
            yield [f"{stem}{name}" for name in others] if stem else others
            below += directories
        level = below


def hex_rows(data: bytes) -> str:
    """Format bytes as rows of sixteen: offset, hexadecimal digits, printable characters."""
    rows = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{at:08x}  {row.hex(' '):<47}  {shown}")
    return "\n".join(rows)


def looks_binary(head: bytes) -> bool:
    """Return whether the start of a file has a NUL, unless a byte order mark says that it is UTF-16 or UTF-32 text."""
    return b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))
