"""Recognises text that is not in UTF-8; converts file contents for searches."""

BOM_8 = b"\xef\xbb\xbf"
_BOMS_16 = (b"\xff\xfe", b"\xfe\xff")
_MARKS = {
    b"\xff\xfe\0\0": "UTF-32LE",
    b"\0\0\xfe\xff": "UTF-32BE",
    b"\xff\xfe": "UTF-16LE",
    b"\xfe\xff": "UTF-16BE",
}
_LEAST_PAIRS, _MOST_ZEROS = 4, 0.6
"""Without a mark: the fewest pairs of bytes, and the share of them whose one half must be zero."""


def other_encoding(head: bytes) -> str:
    """Return the encoding of the start of a text if it is UTF-16 or UTF-32; empty for every other content.

    Without a byte order mark, text is UTF-16 if most pairs have a zero in the same half, and none in the other.
    """
    marked = next((name for mark, name in _MARKS.items() if head.startswith(mark)), "")
    if marked or len(head) < 2 * _LEAST_PAIRS:
        return marked
    first, second = head[0::2].count(0), head[1::2].count(0)
    if first + second < _MOST_ZEROS * (len(head) // 2) or (first and second):
        return ""
    return "UTF-16BE" if first else "UTF-16LE"


def is_utf_16(head: bytes) -> bool:
    """Return whether the start of a file is a byte order mark of UTF-16."""
    return head.startswith(_BOMS_16)


def to_utf_8(data: bytes) -> bytes:
    """Return the content without a byte order mark, UTF-16 converted to UTF-8."""
    if is_utf_16(data):
        return data.decode("utf-16", errors="replace").encode()
    return data.removeprefix(BOM_8)
