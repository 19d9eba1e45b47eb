"""Attacks the proxy through which commands reach the hosts that the user named, by HTTP and SOCKS.

Every server is on loopback. `allow_hosts` names the hosts that may be there, as a user does for a private host; so no
check is switched off, and an address in a request is still refused.
"""

import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from support.loopback_server import PLENTY, Site
from support.proxy_arena import ANSWER, NAMES, Arena, get, proxy_arena, tunnel


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(ANSWER) as found:
        yield found


@pytest.fixture
def arena(site: Site) -> Iterator[Arena]:
    hosts = [f"{name}:{site.port}" for name in ("page.test", "*.wild.test", "bücher.test")]
    private = ("page.test", "sub.wild.test", "xn--bcher-kva.test")
    with proxy_arena(*hosts, names=NAMES, private=private) as found:
        yield found


def socks(kind: int, host: bytes, port: int, command: int = 1) -> bytes:
    return bytes([5, command, 0, kind]) + host + struct.pack(">H", port)


# host and port, for a request through a tunnel and for a plain one; PORT is the port of the server
REACHED = ["page.test:PORT", "PAGE.Test:PORT", "page.test.:PORT", "sub.wild.test:PORT", "xn--bcher-kva.test:PORT"]
REFUSED = {
    "other.test:PORT": 403,
    "wild.test:PORT": 403,
    "page.test.evil.test:PORT": 403,
    "evilpage.test:PORT": 403,
    "page.test:1": 403,
    "page.test:80": 403,
    "rebound.wild.test:PORT": 403,
    "127.0.0.1:PORT": 403,
    "[::1]:PORT": 403,
    "[::ffff:127.0.0.1]:PORT": 403,
    "[::ffff:7f00:1]:PORT": 403,
    "[::127.0.0.1]:PORT": 403,
    "0.0.0.0:PORT": 403,
    "[::]:PORT": 403,
    "169.254.169.254:PORT": 403,
    "2130706433:PORT": 400,
    "0x7f000001:PORT": 400,
    "0x7f.1:PORT": 400,
    "0177.0.0.1:PORT": 400,
    "127.1:PORT": 400,
    "[fe80::1%25lo]:PORT": 400,
    "[::1:PORT": 400,
    "::1:PORT": 400,
    "page.test..:PORT": 400,
    ".page.test:PORT": 400,
    "page.test:PORT@other.test:PORT": 400,
    "user@page.test:PORT": 400,
    "page.test\\@other.test:PORT": 400,
    "page.test:PORT:PORT": 400,
    "page.test:0PORT": 400,
    "page.test:+80": 400,
    "page.test:65536": 400,
    "page%2etest:PORT": 400,
    "b\u00fccher.test:PORT": 400,
    "page.test\x00:PORT": 400,
    "page。test:PORT": 400,
}


@pytest.mark.parametrize("authority", REACHED)
@pytest.mark.parametrize("form", ["connect", "plain", "socks"])
def test_named_host_in_any_spelling_is_reached(arena: Arena, site: Site, authority: str, form: str) -> None:
    named = authority.replace("PORT", str(site.port))
    host = named.rpartition(":")[0]
    if form == "plain":
        answer = arena.exchange(get(f"http://{named}/x", named))
    elif form == "connect":
        answer = arena.exchange(tunnel(named), get("/x", named))
    else:
        asked = socks(3, bytes([len(host)]) + host.encode(), site.port)
        answer = arena.exchange(b"\5\1\0", asked, get("/x", named))
    assert answer.endswith(b"reached")


@pytest.mark.parametrize(("authority", "status"), REFUSED.items())
@pytest.mark.parametrize("form", ["connect", "plain"])
def test_host_not_named_is_refused_by_http(arena: Arena, site: Site, authority: str, status: int, form: str) -> None:
    named = authority.replace("PORT", str(site.port))
    asked = tunnel(named) if form == "connect" else get(f"http://{named}/", named)
    assert arena.status(asked) == status
    assert site.requests == []


@pytest.mark.parametrize("host", [each.removesuffix(":PORT") for each in REFUSED if each.endswith(":PORT")])
def test_host_not_named_is_refused_by_socks(arena: Arena, site: Site, host: str) -> None:
    raw = host.replace("PORT", str(site.port)).encode()
    answer = arena.exchange(b"\5\1\0", socks(3, bytes([len(raw)]) + raw, site.port))
    assert answer[:4] in (b"\5\0\5\2", b"\5\0\5\1")
    assert site.requests == []


@pytest.mark.parametrize(
    ("kind", "address"),
    [(1, "127.0.0.1"), (4, "::1"), (4, "::ffff:127.0.0.1"), (1, "169.254.169.254"), (1, "10.0.0.1")],
)
def test_socks_address_is_refused(arena: Arena, site: Site, kind: int, address: str) -> None:
    raw = socket.inet_pton(socket.AF_INET if kind == 1 else socket.AF_INET6, address)
    assert arena.exchange(b"\5\1\0", socks(kind, raw, site.port))[2:4] == b"\5\2"
    assert site.requests == []


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ((b"\5\1\0", socks(3, b"\x09page.test", 80, command=2)), b"\5\0\5\7"),
        ((b"\5\1\0", socks(3, b"\x09page.test", 80, command=3)), b"\5\0\5\7"),
        ((b"\5\1\2",), b"\5\xff"),
        ((b"\5\1\0", socks(9, b"", 80)), b"\5\0\5\1"),
    ],
)
def test_other_socks_commands_are_refused(arena: Arena, sent: tuple[bytes, ...], answered: bytes) -> None:
    assert arena.exchange(*sent).startswith(answered)


ADDRESSES = {
    "loopback": ["127.0.0.1", "::1"],
    "metadata": ["169.254.169.254", "fd00:ec2::254"],
    "private": ["10.1.2.3", "192.168.0.1", "fc00::1"],
    "link_local": ["169.254.1.1", "fe80::1"],
    "embedded_ipv4": ["::ffff:127.0.0.1", "2002:7f00:1::"],
    "unspecified": ["0.0.0.0", "::"],
}


@pytest.mark.parametrize(("why", "address"), [(why, each) for why, listed in ADDRESSES.items() for each in listed])
def test_name_with_private_address_is_refused(why: str, address: str) -> None:
    with proxy_arena("evil.test", names={"evil.test": [address]}) as arena:
        answer = arena.exchange(tunnel("evil.test:443"))
    assert answer.startswith(b"HTTP/1.1 403 evil.test has no public address (" + why.encode())


def test_name_is_looked_up_once_and_that_address_is_used(site: Site) -> None:
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    with proxy_arena(f"page.test:{site.port}", f"127.0.0.1:{site.port}", names={"page.test": answers[0]}) as arena:
        answer = arena.exchange(tunnel(f"page.test:{site.port}"), get("/", f"page.test:{site.port}"))
        assert answer.endswith(b"reached")
        assert arena.looked_up == ["page.test"]


def test_private_address_that_list_names_is_reached(site: Site) -> None:
    with proxy_arena(f"127.0.0.1:{site.port}") as arena:
        named = f"127.0.0.1:{site.port}"
        assert arena.exchange(tunnel(named), get("/", named)).endswith(b"reached")
        assert arena.exchange(get(f"http://{named}/", named)).endswith(b"reached")
        assert arena.status(tunnel(f"[::ffff:127.0.0.1]:{site.port}")) == 403


def test_unnamed_hosts_are_not_looked_up(arena: Arena, site: Site) -> None:
    arena.exchange(tunnel(f"secret-data.evil.test:{site.port}"))
    arena.exchange(get(f"http://secret-data.evil.test:{site.port}/", f"secret-data.evil.test:{site.port}"))
    assert arena.looked_up == []


# requests that a proxy and a server may read in different ways; HOST is the named host with its port
SMUGGLED = {
    "another Host": b"GET http://HOST/ HTTP/1.1\r\nHost: other.test\r\n\r\n",
    "two Hosts": b"GET http://HOST/ HTTP/1.1\r\nHost: HOST\r\nHost: other.test\r\n\r\n",
    "no Host": b"GET http://HOST/ HTTP/1.1\r\n\r\n",
    "empty Host": b"GET http://HOST/ HTTP/1.1\r\nHost:\r\n\r\n",
    "origin form": b"GET / HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "https form": b"GET https://HOST/ HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "ftp form": b"GET ftp://HOST/ HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "two lengths": b"POST http://HOST/ HTTP/1.1\r\nHost: HOST\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\n1234",
    "length list": b"POST http://HOST/ HTTP/1.1\r\nHost: HOST\r\nContent-Length: 4, 4\r\n\r\n1234",
    "signed length": b"POST http://HOST/ HTTP/1.1\r\nHost: HOST\r\nContent-Length: +4\r\n\r\n1234",
    "length and chunks": b"POST http://HOST/ HTTP/1.1\r\nHost: HOST\r\nContent-Length: 4\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "odd coding": b"POST http://HOST/ HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": b"POST http://HOST/ HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "coding twice": b"POST http://HOST/ HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n"
    b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "chunks in 1.0": b"POST http://HOST/ HTTP/1.0\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "space before colon": b"GET http://HOST/ HTTP/1.1\r\nHost : other.test\r\nHost: HOST\r\n\r\n",
    "folded header": b"GET http://HOST/ HTTP/1.1\r\nX: a\r\n Host: other.test\r\nHost: HOST\r\n\r\n",
    "bare LF": b"GET http://HOST/ HTTP/1.1\nHost: HOST\r\n\r\n",
    "LF in header": b"GET http://HOST/ HTTP/1.1\r\nX: a\nHost: other.test\r\nHost: HOST\r\n\r\n",
    "CR in header": b"GET http://HOST/ HTTP/1.1\r\nX: a\rHost: other.test\r\nHost: HOST\r\n\r\n",
    "NUL in header": b"GET http://HOST/ HTTP/1.1\r\nX: a\0b\r\nHost: HOST\r\n\r\n",
    "space in target": b"GET http://HOST/ http://other.test/ HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "version": b"GET http://HOST/ HTTP/1.9\r\nHost: HOST\r\n\r\n",
    "lower-case method": b"get http://HOST/ HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "backslash": b"GET http://HOST\\@other.test/ HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "fragment": b"GET http://HOST/#@other.test HTTP/1.1\r\nHost: HOST\r\n\r\n",
    "CONNECT with a body": b"CONNECT HOST HTTP/1.1\r\nHost: HOST\r\nContent-Length: 4\r\n\r\n1234",
}


@pytest.mark.parametrize("request_text", SMUGGLED.values(), ids=SMUGGLED)
def test_ambiguous_request_is_refused(arena: Arena, site: Site, request_text: bytes) -> None:
    assert arena.status(request_text.replace(b"HOST", f"page.test:{site.port}".encode())) == 400
    assert site.requests == []


CHUNKS = {
    "extension": b"4;a=b\r\n1234\r\n0\r\n\r\n",
    "wrong end": b"4\r\n1234XX0\r\n\r\n",
    "bare LF": b"4\n1234\r\n0\r\n\r\n",
    "trailer": b"0\r\nHost: other.test\r\n\r\n",
    "prefix": b"0x4\r\n1234\r\n0\r\n\r\n",
    "huge": b"fffffffffffffffff\r\n",
    "negative": b"-1\r\n",
    "empty size": b"\r\n0\r\n\r\n",
    "endless size": b"0" * 64,
}


@pytest.mark.parametrize("body", CHUNKS.values(), ids=CHUNKS)
def test_ambiguous_chunk_ends_request(arena: Arena, body: bytes) -> None:
    """Uses a server that never answers first, so that only the proxy can answer."""
    silence = threading.Event()

    def wait(_sock: socket.socket, _request: bytes) -> None:
        silence.wait(PLENTY)

    with Site(wait) as quiet:
        named = f"page.test:{quiet.port}"
        with proxy_arena(named, names=NAMES, private=("page.test",)) as own:
            head = f"POST http://{named}/ HTTP/1.1\r\nHost: {named}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            assert own.status(head + body) == 400
        silence.set()


@pytest.mark.parametrize("first", ["plain", "tunnel"])
def test_second_request_on_a_connection_never_arrives(site: Site, arena: Arena, first: str) -> None:
    named = f"page.test:{site.port}"
    second = get("http://other.test/stolen", "other.test") if first == "plain" else get("/stolen", "other.test")
    if first == "plain":
        arena.exchange(get(f"http://{named}/", named) + second)
    else:
        arena.exchange(tunnel(named), get("/", named) + second)
    assert [request.split()[1] for request in site.requests] == [b"/"]
    assert all(b"stolen" not in request for request in site.requests)


def test_server_learns_nothing_meant_for_proxy_and_closes(site: Site, arena: Arena) -> None:
    named = f"page.test:{site.port}"
    more = "Proxy-Authorization: secret\r\nUpgrade: h2c\r\nConnection: keep-alive, host\r\nAccept: x\r\n"
    arena.exchange(get(f"http://{named}/a?b", named, more))
    assert site.requests == [f"GET /a?b HTTP/1.1\r\nHost: {named}\r\nConnection: close\r\naccept: x\r\n\r\n".encode()]


def test_redirect_is_a_new_request(site: Site, arena: Arena) -> None:
    """Follows a redirect as a client does: the proxy sees the second host, too."""
    with Site(b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n") as moving:
        named = f"page.test:{moving.port}"
        with proxy_arena(named, names=NAMES, private=("page.test",)) as own:
            assert own.status(get(f"http://{named}/", named)) == 302
            assert own.status(get("http://169.254.169.254/", "169.254.169.254")) == 403


def test_record_names_site_way_and_bytes(site: Site, arena: Arena) -> None:
    named = f"page.test:{site.port}"
    arena.exchange(get(f"http://{named}/", named))
    arena.exchange(tunnel("other.test:443"))
    found = {(each.via, str(each.site), each.refused, each.address) for each in (arena.record(), arena.record())}
    assert found == {("http", named, "", "127.0.0.1"), ("connect", "other.test", "not_named", "")}
