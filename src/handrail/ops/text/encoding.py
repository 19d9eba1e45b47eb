"""What a file's bytes are searched as: a byte order mark is left out, and UTF-16 that has one becomes UTF-8."""

BOM_8 = b"\xef\xbb\xbf"
_BOMS_16 = (b"\xff\xfe", b"\xfe\xff")


def is_utf_16(head: bytes) -> bool:
    return head.startswith(_BOMS_16)


def to_utf_8(data: bytes) -> bytes:
    if is_utf_16(data):
        return data.decode("utf-16", errors="replace").encode()
    return data.removeprefix(BOM_8)
