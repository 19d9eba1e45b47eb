"""Interprets the bytes of a response: decompresses them in bounded pieces, detects text, and decodes its charset."""

import codecs
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator

PIECE = 64 * 1024
CODINGS_AT_MOST = 3

_WINDOWS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}

_MEDIA_TYPE = re.compile(r"\s*([a-z0-9!#$&^_.+-]{1,80}/[a-z0-9!#$&^_.+-]{1,80})\s*(?:[;,]|$)", re.IGNORECASE)
_CHARSET = re.compile(r""";\s*charset\s*=\s*["']?\s*([a-z0-9_.:-]{1,40})""", re.IGNORECASE)
_DECLARED = (
    re.compile(rb"""<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([a-z0-9_.:-]{1,40})""", re.IGNORECASE),
    re.compile(rb"""^\s*<\?xml\b[^>]*?\bencoding\s*=\s*["']\s*([a-z0-9_.:-]{1,40})""", re.IGNORECASE),
)
_SNIFFED = 1024

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(
    r"text/.+|.+\+(json|xml|yaml)|(application|message)/(x-)?(json|json5|jsonl|ndjson|json-seq|xml|xml-dtd|javascript"
    r"|ecmascript|typescript|yaml|toml|sh|shellscript|python|perl|php|ruby|httpd-php|sql|graphql|tex|latex|troff|subrip"
    r"|www-form-urlencoded|pem-file|pgp-signature|pgp-keys|rfc822|mpegurl|vnd.apple.mpegurl|wsdl|rtf)"
)

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

# The codec that web pages mean by a label, and the codecs of Python that are charsets at all.
_WEB_MEANING = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_CHARSETS = {
    *("utf-8", "utf-16", "utf-16-le", "utf-16-be", "cp866", "koi8-r", "koi8-u", "mac-roman", "mac-cyrillic", "cp874"),
    *(f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
    *(f"cp{page}" for page in range(1250, 1259)),
    *("gb18030", "big5", "big5hkscs", "euc_jp", "iso2022_jp", "cp932", "cp949"),
}


def media_type(header: str) -> str:
    """Return `text/html` for `text/HTML; charset=x`; an empty string if the header has no type."""
    found = _MEDIA_TYPE.match(header)
    return found[1].lower() if found else ""


def sniffed_type(data: bytes) -> str:
    """Guess the type of a page that came without one."""
    start = data[:_SNIFFED].lstrip().lower()
    return "text/html" if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")) else "text/plain"


def is_html(media: str) -> bool:
    return media in _HTML


def is_text(media: str) -> bool:
    """Return True for a media type whose content is text."""
    return _TEXT.fullmatch(media) is not None


def content_codings(header: str) -> list[str]:
    """Return the codings of a Content-Encoding header, in the order in which the server applied them."""
    names = [name.strip().lower() for name in header.split(",")]
    return [name for name in names if name not in ("", "identity")]


def can_unpack(codings: list[str]) -> bool:
    """Return True if every coding is known and there are not too many."""
    return len(codings) <= CODINGS_AT_MOST and all(name in _WINDOWS for name in codings)


def unpacked(chunks: Iterable[bytes], codings: list[str]) -> Iterator[bytes]:
    """Yield the decompressed content. Raises zlib.error.

    With codings, a piece has at most PIECE bytes and may be empty, so that the reader can stop at any time.
    """
    pieces = iter(chunks)
    for name in reversed(codings):
        pieces = _inflated(pieces, _WINDOWS[name])
    return pieces


def _inflated(chunks: Iterator[bytes], window: int) -> Iterator[bytes]:
    start = b""
    while len(start) < 2 and (chunk := next(chunks, b"")):
        start += chunk
    if not start:
        return
    if window == zlib.MAX_WBITS and (start[0] & 0x0F != 8 or int.from_bytes(start[:2]) % 31):
        window = -zlib.MAX_WBITS  # many servers omit the zlib header that "deflate" requires
    engine = zlib.decompressobj(window)
    for chunk in itertools.chain([start], chunks):
        rest, more = chunk, True
        while more:
            if engine.eof:
                if window <= zlib.MAX_WBITS or not rest.startswith(b"\x1f"):
                    break  # the rest is padding
                engine = zlib.decompressobj(window)  # a gzip file may have several members
            piece = engine.decompress(rest, PIECE)
            yield piece
            rest = engine.unconsumed_tail or engine.unused_data
            more = bool(rest) or len(piece) == PIECE
    if not engine.eof:
        raise zlib.error("the data ends too early")


def text_of(data: bytes, header: str, *, cut: bool) -> str:
    """Decode by the charset of the Content-Type header, else of the BOM, else as declared in the page, else UTF-8.

    If the data was cut, drop a character that was cut in two; other invalid bytes become U+FFFD.
    """
    named = _CHARSET.search(header)
    codec = _codec(named[1]) if named else None
    if codec == "utf-16":  # the label has no byte order: use the BOM; the default on the web is little-endian
        codec = "utf-16-be" if data.startswith(codecs.BOM_UTF16_BE) else "utf-16-le"
    text = codecs.getincrementaldecoder(codec or _guessed_codec(data))("replace").decode(data, final=not cut)
    return text.removeprefix("\ufeff")


def _guessed_codec(data: bytes) -> str:
    for bom, marked in _BOMS:
        if data.startswith(bom):
            return marked
    for pattern in _DECLARED:
        if (found := pattern.search(data[:_SNIFFED])) and (codec := _codec(found[1].decode())):
            # The declaration could be read as ASCII, so the page cannot be UTF-16.
            return "utf-8" if codec.startswith("utf-16") else codec
    return "utf-8"


def _codec(label: str) -> str | None:
    try:
        name = codecs.lookup(re.sub("^windows-", "cp", label.lower().removeprefix("x-"))).name
    except (LookupError, ValueError):
        return None
    name = _WEB_MEANING.get(name, name)
    return name if name in _CHARSETS else None
