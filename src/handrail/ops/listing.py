"""Orders and forms of directory listings."""

import re
from collections.abc import Callable, Iterator
from unicodedata import normalize

from handrail.model.files import Listing

# Punctuation in the order of the en-US collation; what is not in it comes after, letters and digits last of all.
_PUNCTUATION = {char: rank for rank, char in enumerate(" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$")}


def collation_key(name: str) -> tuple[list[tuple[int, int, str]], str, str]:
    """en-US: punctuation, digits, letters with case ignored; on a tie accents, then lower before upper."""
    plain = normalize("NFD", name)
    base = "".join(char for char in plain if not "\u0300" <= char <= "\u036f")
    return [_weight(char) for char in base.casefold()], plain.casefold(), name.swapcase()


def _weight(char: str) -> tuple[int, int, str]:
    if char in _PUNCTUATION:
        return 0, _PUNCTUATION[char], ""
    return (2 if char.isdigit() else 3 if char.isalpha() else 1), 0, char


def name_filter(patterns: list[str]) -> Callable[[str], bool]:
    """Whether a bare name fits one of the patterns, in which only `*` and `?` are special."""
    words = ["".join({"*": ".*", "?": "."}.get(char) or re.escape(char) for char in each) for each in patterns]
    fits = re.compile("|".join(words) or r"(?!)", re.DOTALL)
    return lambda name: fits.fullmatch(name) is not None


def breadth_first(listing: Callable[[str], Listing], depth: int) -> Iterator[list[str]]:
    """Names directory by directory, level by level; its directories first, with a slash. Links stay closed.

    `listing` gives what a directory holds: `""` for the top, else a name from here, slash included.
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
    """Sixteen bytes a row: offset, hex, and the characters that can be shown."""
    rows = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        rows.append(f"{at:08x}  {row.hex(' '):<47}  {shown}")
    return "\n".join(rows)


def looks_binary(head: bytes) -> bool:
    """NUL in the first part of a file, unless a BOM says that it is UTF-16 or UTF-32 text."""
    return b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff"))
