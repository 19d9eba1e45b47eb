"""Replaces typographic quotes, dashes and spaces by plain ones: models confuse the two."""

_FOLDED = {
    **dict.fromkeys([*range(0x2010, 0x2016), 0x2212], "-"),
    **dict.fromkeys(range(0x2018, 0x201C), "'"),
    **dict.fromkeys(range(0x201C, 0x2020), '"'),
    **dict.fromkeys([0xA0, *range(0x2002, 0x200B), 0x202F, 0x205F, 0x3000], " "),
}


def fold(text: bytes) -> bytes:
    """Return the text with plain quotes, dashes and spaces."""
    if text.isascii():
        return text
    return text.decode(errors="surrogateescape").translate(_FOLDED).encode(errors="surrogateescape")
