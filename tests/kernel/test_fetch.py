"""Fetches pages of every kind from servers on loopback. For faults of the network see test_fetch_network.py."""

import gzip
import socket
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis.strategies import binary, integers, sampled_from
from support.loopback_server import Site, failure, fetch, fetched, page

from handrail.kernel.web.content import unpacked
from handrail.kernel.web.fetcher import Fetched
from handrail.model.fetch_faults import BinaryContent, FetchTimeout
from handrail.model.limits import MIB


def test_fetch_returns_page_with_all_facts() -> None:
    with Site(page("grüße\n".encode(), "text/plain; charset=utf-8")) as site:
        assert fetch(site, "/a?b=c#d") == Fetched(
            url=site.url("/a?b=c#d"),
            final_url=site.url("/a?b=c#d"),
            status_code=200,
            content_type="text/plain",
            content_length=8,
            text="grüße\n",
            truncated=False,
        )
        assert site.requests == [
            b"GET /a?b=c HTTP/1.1\r\n"
            b"Host: " + site.netloc.encode() + b"\r\n"
            b"User-Agent: handrail\r\n"
            b"Accept: text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5\r\n"
            b"Accept-Encoding: gzip, deflate\r\n"
            b"Connection: close\r\n\r\n"
        ]


@pytest.mark.parametrize("status", ["404 Not Found", "500 Oops", "403 Forbidden", "204 No Content", "300 Choices"])
def test_fetch_returns_page_with_error_status(status: str) -> None:
    body = b"" if status.startswith("204") else b"what happened"
    found = fetched(page(body, status=status))
    assert (found.status_code, found.text) == (int(status[:3]), body.decode())


HTML = """<!doctype html><html><head><title>T</title><style>p { color: red }</style><script>steal()</script></head>
<body><h1>Hello</h1><p>A <a href="next?x=1">link</a>, <b>bold</b>.</p><script>more()</script><noscript>x</noscript>
<pre><code class="language-py">def f():
    return 1
</code></pre><ul><li>a<li>b</ul><table><tr><th>A<th>B<tr><td>1<td>2</table>
<img src="data:image/png;base64,AAAA" alt="dot"></body></html>"""
MARKDOWN = """# Hello

A [link](BASE/docs/next?x=1), **bold**.

```py
def f():
    return 1
```

- a
- b

| A | B |
| --- | --- |
| 1 | 2 |

dot
"""


@pytest.mark.parametrize("kind", ["text/html", "TEXT/HTML; charset=utf-8", "application/xhtml+xml", None])
def test_html_becomes_markdown_without_scripts_and_styles(kind: str | None) -> None:
    with Site(page(HTML.encode(), kind)) as site:
        found = fetch(site, "/docs/start")
        assert found.text == MARKDOWN.replace("BASE", site.url(""))
        assert found.content_length == len(HTML)


TEXT_TYPES = [
    *("text/plain", "text/markdown", "text/css", "text/csv", "text/x-python", "image/svg+xml"),
    "application/json",
    "application/ld+json",
    "application/vnd.api+json",
    "application/xml",
    "application/rss+xml",
    "application/atom+xml",
    "application/javascript",
    "application/x-javascript",
    "application/x-ndjson",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/x-sh",
    "application/x-www-form-urlencoded",
    "application/graphql",
    "application/sql",
]


@pytest.mark.parametrize("kind", TEXT_TYPES)
def test_other_text_types_stay_unchanged(kind: str) -> None:
    text = '<p>{"a": "ü"}</p>\r\n'
    found = fetched(page(text.encode(), kind))
    assert (found.text, found.content_type) == (text, kind)


@pytest.mark.parametrize(
    "kind", ["image/png", "application/octet-stream", "application/pdf", "application/zip", "video/mp4", "font/woff2"]
)
def test_binary_type_is_refused_with_its_size_and_not_read(kind: str) -> None:
    head = page(b"", kind, Content_Length=str(500 * MIB))
    with Site(head) as site, pytest.raises(BinaryContent) as caught:
        fetch(site)
    assert caught.value.facts() == {"url": site.url(), "content_type": kind, "size": 500 * MIB}


def test_binary_content_has_unknown_size_without_usable_length() -> None:
    for answer in (
        b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n\x89PNG",
        page(b"\x89PNG", "image/png", Content_Encoding="gzip"),
    ):
        with Site(answer) as site, pytest.raises(BinaryContent) as caught:
            fetch(site)
        assert caught.value.size is None


@pytest.mark.parametrize(("kind", "said"), [("text/plain", "text/plain"), (None, "application/octet-stream")])
def test_binary_content_with_text_type_is_refused(kind: str | None, said: str) -> None:
    with Site(page(b"\x7fELF\x02\x00\x00\x01", kind)) as site, pytest.raises(BinaryContent) as caught:
        fetch(site)
    assert caught.value.facts() == {"url": site.url(), "content_type": said, "size": 8}


@pytest.mark.parametrize("kind", [None, "", "nonsense", "text", ";", "x" * 500 + "/y"])
def test_page_without_usable_type_gets_type_from_content(kind: str | None) -> None:
    assert fetched(page(b"plain words", kind)).content_type == "text/plain"
    found = fetched(page(b"\n <!DOCTYPE HTML><h1>x</h1>", kind))
    assert (found.content_type, found.text) == ("text/html", "# x\n")


def test_page_of_exactly_the_limit_is_whole_and_longer_page_is_cut() -> None:
    whole, over = fetched(page(b"x" * MIB)), fetched(page(b"x" * (MIB + 1)))
    assert (whole.content_length, len(whole.text), whole.truncated) == (MIB, MIB, False)
    assert (over.content_length, len(over.text), over.truncated) == (MIB, MIB, True)


def test_cut_page_ends_between_characters() -> None:
    found = fetched(page(b"x" + "é".encode() * MIB, "text/plain; charset=utf-8"))
    assert (found.text, found.truncated) == ("x" + "é" * (MIB // 2 - 1), True)


def test_endless_page_is_cut_without_waiting_for_its_end() -> None:
    def flood(to: socket.socket, _: bytes) -> None:
        to.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            to.sendall(b"x" * 65536)

    with Site(flood) as site:
        assert fetch(site).content_length == MIB


def test_chunked_page_is_joined_and_broken_chunks_fail() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert fetched(head + b"4;a=b\r\nWiki\r\n5\r\npedia\r\n0\r\nX-Trailer: y\r\n\r\n").text == "Wikipedia"
    assert failure(head + b"4\r\nWiki\r\n5\r\npe").startswith("peer closed connection")
    assert failure(head + b"zz\r\nWiki\r\n").startswith("illegal chunk header")
    assert failure(head + b"4" + b";" * 200_000 + b"\r\nWiki\r\n0\r\n\r\n") != ""


def _raw_deflate(data: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


LONG = b"to be or not to be, " * 20_000
PACKED = {
    "gzip": gzip.compress(LONG),
    "x-gzip": gzip.compress(LONG[:100]) + gzip.compress(LONG[100:]),
    "GZIP, identity": gzip.compress(LONG) + b"\0\0 padding",
    "deflate": zlib.compress(LONG),
    "Deflate": _raw_deflate(LONG),
    "deflate, gzip": gzip.compress(zlib.compress(LONG)),
    "identity": LONG,
}


@pytest.mark.parametrize("coding", PACKED)
def test_compressed_page_is_decompressed(coding: str) -> None:
    found = fetched(page(PACKED[coding], Content_Encoding=coding))
    assert (found.text, found.content_length) == (LONG.decode(), len(LONG))


def test_compressed_page_sent_byte_by_byte_is_decompressed() -> None:
    packed = zlib.compress(b"slowly")
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in packed)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert fetched(head + chunks + b"0\r\n\r\n").text == "slowly"


PACKERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", _raw_deflate),
]


@given(data=binary(max_size=300), size=integers(1, 40), packer=sampled_from(PACKERS))
@settings(max_examples=200, derandomize=True)
def test_decompression_does_not_depend_on_chunk_ends(
    data: bytes, size: int, packer: tuple[str, Callable[[bytes], bytes]]
) -> None:
    coding, pack = packer
    packed = pack(data * 100)
    chunks = [packed[start : start + size] for start in range(0, len(packed), size)]
    assert b"".join(unpacked(chunks, [coding])) == data * 100


def test_encodings_in_several_headers_are_all_applied() -> None:
    body = gzip.compress(gzip.compress(b"twice"))
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Encoding: gzip\r\n"
    kinds = b"Content-Type: text/css\r\nContent-Type: text/html\r\n\r\n"
    found = fetched(head + kinds + body)
    assert (found.text, found.content_type) == ("twice", "text/css")


def test_empty_page_with_encoding_header_is_empty() -> None:
    assert fetched(page(b"", Content_Encoding="gzip")).text == ""


@pytest.mark.parametrize("body", [b"not gzip", PACKED["gzip"][:-20], PACKED["gzip"][:-1], b"\x1f", b"\x1f\x8b\x08\xff"])
def test_damaged_compression_is_a_failed_fetch(body: bytes) -> None:
    assert failure(page(body, Content_Encoding="gzip")) == "the compressed data is damaged"


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, br", "gzip, gzip, gzip, gzip", "\u2026"])
def test_unknown_content_encoding_is_a_failed_fetch(coding: str) -> None:
    assert failure(page(b"x", Content_Encoding=coding)) == f"unknown content encoding: {coding}"


@pytest.mark.parametrize("layers", [1, 2])
def test_gzip_bomb_is_cut_at_limit_and_uses_little_memory(layers: int) -> None:
    bomb = gzip.compress(b"a" * (64 * MIB))
    for _ in range(1, layers):
        bomb = gzip.compress(bomb)
    answer = page(bomb, Content_Encoding=", ".join(["gzip"] * layers))
    fetched(page())  # imports everything before the measurement
    tracemalloc.start()
    try:
        found = fetched(answer)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (found.content_length, found.truncated) == (MIB, True)
    assert peak < 8 * MIB


def test_gzip_bomb_without_content_ends_at_deadline() -> None:
    nothing = gzip.compress(gzip.compress(b"") * 200_000)

    def feed(to: socket.socket, _: bytes) -> None:
        to.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip, gzip\r\n\r\n")
        while True:
            to.sendall(nothing)

    with Site(feed) as site, pytest.raises(FetchTimeout):
        fetch(site, seconds=0.5)


CHARSETS = {
    "utf-8": "grüße … 文字",
    "UTF-16": "grüße 文字",
    "utf-16le": "文字",
    "utf-16be": "文字",
    "iso-8859-1": "grüße … “€”",  # on the web, this label means windows-1252
    "us-ascii": "“x”",
    "windows-1252": "€",
    "windows-1251": "привет",
    "windows-874": "สวัสดี",
    "iso-8859-2": "żółć",
    "iso-8859-5": "привет",
    "iso-8859-7": "γειά",
    "iso-8859-9": "ığ",
    "iso-8859-15": "€",
    "koi8-r": "привет",
    "koi8-u": "ї",
    "ibm866": "привет",
    "macintosh": "é",
    "x-mac-cyrillic": "привет",
    "shift_jis": "日本語①",
    "x-sjis": "日本語",
    "euc-jp": "日本語",
    "iso-2022-jp": "日本語",
    "gb2312": "汉字€",
    "gbk": "汉字",
    "gb18030": "汉字😀",
    "big5": "漢字",
    "big5-hkscs": "漢字",
    "euc-kr": "한글똠",
}
PYTHONS = {
    "iso-8859-1": "cp1252", "us-ascii": "cp1252", "windows-874": "cp874", "x-mac-cyrillic": "mac-cyrillic",
    "shift_jis": "cp932", "x-sjis": "cp932", "gb2312": "gb18030", "euc-kr": "cp949", "windows-1251": "cp1251",
    "windows-1252": "cp1252", "iso-8859-9": "cp1254",
}  # fmt: skip


@pytest.mark.parametrize("label", CHARSETS)
def test_charset_of_header_is_used(label: str) -> None:
    body = CHARSETS[label].encode(PYTHONS.get(label, label))
    for form in (f'text/plain; charset="{label}"', f"text/plain;charset={label.upper()}; x=y"):
        assert fetched(page(body, form)).text == CHARSETS[label]


def test_utf_16_follows_byte_order_mark_or_is_little_endian() -> None:
    for body in ("\ufeff文字".encode("utf-16-be"), "\ufeff文字".encode("utf-16-le"), "文字".encode("utf-16-le")):
        assert fetched(page(body, "text/plain; charset=utf-16")).text == "文字"
    assert fetched(page(b"\x87eW[!", "text/plain; charset=utf-16")).text == "文字\ufffd"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"\xef\xbb\xbf" + "ü".encode(), "ü"),
        ("\ufeffü".encode("utf-16-le"), "ü"),
        ("\ufeffü".encode("utf-16-be"), "ü"),
        ("<?xml version='1.0' encoding='koi8-r'?>ы".encode("koi8-r"), "<?xml version='1.0' encoding='koi8-r'?>ы"),
        (b"<?xml encoding='zlib'?>", "<?xml encoding='zlib'?>"),
        ("ü".encode(), "ü"),
        (b"\xfc\xe4 ok", "\ufffd\ufffd ok"),
        (b"ends in \xe2\x82", "ends in \ufffd"),
    ],
)
def test_page_without_usable_charset_is_decoded_by_its_bytes(body: bytes, text: str) -> None:
    for kind in ("text/xml", "text/xml; charset=bogus", "text/xml; charset=", "text/xml; charset=utf-8-no"):
        assert fetched(page(body, kind)).text == text


@pytest.mark.parametrize(
    "label", ["zlib", "rot13", "base64", "idna", "punycode", "unicode_escape", "undefined", "../x"]
)
def test_codec_that_is_not_a_charset_is_not_used(label: str) -> None:
    assert fetched(page(b"abc-", f"text/plain; charset={label}")).text == "abc-"


@pytest.mark.parametrize(
    "tag",
    [
        "<meta charset=windows-1251>",
        "<META CHARSET='windows-1251'/>",
        '<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">',
    ],
)
def test_html_can_declare_charset_in_meta_tag(tag: str) -> None:
    body = f"<html><head>{tag}</head><p>привет</p>".encode("cp1251")
    assert fetched(page(body, "text/html")).text == "привет\n"
    assert fetched(page(body.replace(b"windows-1251", b"utf-16"), "text/html")).text.startswith("\ufffd")
    assert fetched(page(body.replace(b"windows-1251", b"nonsense"), "text/html")).text.startswith("\ufffd")
    header_wins = fetched(page(body.replace("привет".encode("cp1251"), "привет".encode()), "text/html; charset=utf-8"))
    assert header_wins.text == "привет\n"
