"""Attacks the proxy of commands by TLS for another server, and by protocols that are neither TLS nor HTTP."""

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from support.loopback_server import PLENTY, Site
from support.proxy_arena import (
    ANSWER,
    CERTIFICATE,
    NAMES,
    Arena,
    get,
    hello_for,
    opened,
    proxy_arena,
    rest_of,
    tls_site,
)


@pytest.fixture
def secure() -> Iterator[Site]:
    with tls_site(ANSWER) as found:
        yield found


@pytest.fixture
def secure_arena(secure: Site) -> Iterator[Arena]:
    with proxy_arena(f"page.test:{secure.port}", names=NAMES, private=("page.test",)) as found:
        yield found


def handshake(sock: socket.socket, name: str | None, context: ssl.SSLContext | None = None) -> bytes:
    """Speak TLS for a server name over a socket; return the page."""
    if context is None:
        context = ssl.create_default_context(cafile=str(CERTIFICATE))
        context.check_hostname = False
    with context.wrap_socket(sock, server_hostname=name) as secured:
        secured.sendall(get("/", "page.test"))
        return rest_of(secured)


def test_tls_to_named_server_is_reached(secure: Site, secure_arena: Arena) -> None:
    with opened(secure_arena, f"page.test:{secure.port}") as sock:
        assert handshake(sock, "page.test").endswith(b"reached")


def test_tls_with_retry_is_reached(secure: Site) -> None:
    """Makes the server ask for a second ClientHello: it accepts a group for which the first one has no key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    context.set_ecdh_curve("secp521r1")
    with Site(ANSWER, tls=context) as site:
        named = f"page.test:{site.port}"
        with proxy_arena(named, names=NAMES, private=("page.test",)) as arena, opened(arena, named) as sock:
            assert handshake(sock, "page.test").endswith(b"reached")


@pytest.mark.parametrize("name", ["other.test", "sub.page.test", None])
def test_tls_for_another_server_name_is_refused(secure: Site, secure_arena: Arena, name: str | None) -> None:
    with opened(secure_arena, f"page.test:{secure.port}") as sock, pytest.raises(ssl.SSLError):
        handshake(sock, name)
    assert secure.requests == []


def with_extension(hello: bytes, kind: int, value: bytes) -> bytes:
    """Return a ClientHello in one record with one more extension."""
    body = hello[9:]
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at : at + 2], "big")
    at += 1 + body[at]
    extensions = body[at + 2 :] + struct.pack(">HH", kind, len(value)) + value
    body = body[:at] + struct.pack(">H", len(extensions)) + extensions
    return records(b"\1" + len(body).to_bytes(3, "big") + body)


def records(message: bytes, size: int = 1 << 14) -> bytes:
    parts = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(part)) + part for part in parts)


def named_extension(name: bytes) -> bytes:
    return struct.pack(">HBH", len(name) + 3, 0, len(name)) + name


HELLOS = {
    "encrypted name": lambda: with_extension(hello_for("page.test"), 0xFE0D, b"\0" * 64),
    "old encrypted name": lambda: with_extension(hello_for("page.test"), 0xFFCE, b"\0" * 64),
    "two names": lambda: with_extension(hello_for("page.test"), 0, named_extension(b"other.test")),
    "name with NUL": lambda: with_extension(hello_for(None), 0, named_extension(b"page.test\0.evil")),
    "name that ends early": lambda: with_extension(hello_for(None), 0, b"\0\xff\0\0\x09page.test"),
    "other name in pieces": lambda: records(hello_for("other.test")[5:], 7),
    "no handshake": lambda: b"\x16\x03\x01\0\4\2\0\0\0",
    "empty record": lambda: b"\x16\x03\x01\0\0" + hello_for("page.test"),
    "more in the record": lambda: records(hello_for("page.test")[5:] + b"\1\0\0\0"),
    "too many records": lambda: records(hello_for("page.test")[5:] + b"\0" * 600, 1),
    "huge message": lambda: records(b"\1\xff\xff\xff" + b"\0" * 100),
    "huge record": lambda: b"\x16\x03\x01\xff\xff",
    "version 2": lambda: b"\x16\x02\x00\0\4\1\0\0\0",
}


@pytest.mark.parametrize("hello", HELLOS.values(), ids=HELLOS)
def test_odd_client_hello_is_refused(secure: Site, secure_arena: Arena, hello: Callable[[], bytes]) -> None:
    with opened(secure_arena, f"page.test:{secure.port}") as sock:
        sock.sendall(hello())
        assert rest_of(sock) == b"\x15\x03\x03\0\2\2\x31"
    assert secure.requests == []


def test_client_hello_in_many_pieces_is_reached(secure: Site, secure_arena: Arena) -> None:
    """Sends the message in records of seven bytes, and each byte in a packet of its own."""
    with opened(secure_arena, f"page.test:{secure.port}") as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in records(hello_for("page.test")[5:], 7):
            sock.sendall(bytes([byte]))
        assert sock.recv(3) in (b"\x16\x03\x03", b"\x16\x03\x01")


def test_second_client_hello_for_another_name_is_refused() -> None:
    """Plays a server that asks for a retry, and a client that then names another server."""
    retry = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
    body = b"\2\0\0\x26\3\3" + retry + b"\0\0\0\0"
    seen: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        peer = listener.accept()[0]
        with peer:
            peer.settimeout(PLENTY)
            seen.append(peer.recv(65536))
            peer.sendall(records(body))
            with contextlib.suppress(OSError):
                seen.append(rest_of(peer))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        named = f"page.test:{listener.getsockname()[1]}"
        with proxy_arena(named, names=NAMES, private=("page.test",)) as arena:
            with opened(arena, named) as sock:
                # the second message is sent before the answer comes, as an attacker would do
                sock.sendall(hello_for("page.test") + b"\x14\3\3\0\1\1" + hello_for("other.test"))
                rest_of(sock)
            thread.join(PLENTY)
    assert b"other.test" not in b"".join(seen)
    assert b"page.test" in seen[0]


def test_early_data_follows_once_the_server_has_answered() -> None:
    answer = records(b"\2\0\0\x26\3\3" + b"\7" * 36)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        named = f"page.test:{listener.getsockname()[1]}"
        with proxy_arena(named, names=NAMES, private=("page.test",)) as arena, opened(arena, named) as sock:
            hello, early = hello_for("page.test"), b"\x17\3\3\0\5early"
            sock.sendall(hello + early)
            with listener.accept()[0] as peer:
                peer.settimeout(PLENTY)
                assert peer.recv(65536) == hello
                peer.sendall(answer)
                assert peer.recv(65536) == early


def test_other_protocol_passes_only_at_a_named_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        named = f"page.test:{port}"
        with proxy_arena(named, names=NAMES, private=("page.test",)) as arena, opened(arena, named) as sock:
            peer = listener.accept()[0]
            peer.sendall(b"220 ready\r\n")
            assert sock.recv(100) == b"220 ready\r\n"
            sock.sendall(b"SSH-2.0-x\r\n")
            assert peer.recv(100) == b"SSH-2.0-x\r\n"
            peer.close()


@pytest.mark.root
@pytest.mark.parametrize("first", [b"SSH-2.0-x\r\n", b"\0\0\0\x08", b"get / HTTP/1.1\r\n\r\n", b"\x80\x2e\x01\0\2"])
def test_other_protocol_at_usual_port_is_refused(first: bytes) -> None:
    try:
        site = Site(ANSWER, host="127.0.0.77", port=443)
    except PermissionError:
        pytest.skip("the port needs privileges")
    with site, proxy_arena("page.test", names={"page.test": ["127.0.0.77"]}, private=("page.test",)) as arena:
        with opened(arena, "page.test:443") as sock:
            sock.sendall(first)
            rest_of(sock)
        assert site.requests in ([], [b""])
        assert arena.record().refused == "protocol"
