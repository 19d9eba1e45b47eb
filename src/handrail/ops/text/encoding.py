"""Converts file contents for searches: removes a byte order mark, and converts UTF-16 that has one to UTF-8."""

BOM_8 = b"\xef\xbb\xbf"
_BOMS_16 = (b"\xff\xfe", b"\xfe\xff")


def is_utf_16(head: bytes) -> bool:
    """Return whether the start of a file is a byte order mark of UTF-16."""
    return head.startswith(_BOMS_16)


def to_utf_8(data: bytes) -> bytes:
    """Return the content without a byte order mark, UTF-16 converted to UTF-8."""
    if is_utf_16(data):
        return data.decode("utf-16", errors="replace").encode()
    return data.removeprefix(BOM_8)
