"""Floods the proxy of commands: too many, too slow, too long and half-closed connections."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest
from support.loopback_server import PLENTY, Site
from support.proxy_arena import ANSWER, NAMES, get, opened, proxy_arena, rest_of

from handrail.model.limits import Limits


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(ANSWER) as found:
        yield found


def test_thousand_connections_are_bounded_and_end(site: Site) -> None:
    limits = Limits()._replace(network_connections=20)
    before = threading.active_count()
    with proxy_arena(f"page.test:{site.port}", names=NAMES, private=("page.test",), limits=limits) as arena:
        with contextlib.ExitStack() as stack:
            opened_first = [stack.enter_context(arena.connect()) for _ in range(20)]
            for each in opened_first:
                each.sendall(b"GET")  # the proxy serves these, and waits
            for _ in range(980):  # one after the other: this process may be allowed few handles
                with arena.connect() as refused:
                    assert rest_of(refused) == b""
            assert threading.active_count() <= before + 30
            for each in opened_first:
                each.shutdown(socket.SHUT_WR)
                assert rest_of(each).startswith(b"HTTP/1.1 400")
        named = f"page.test:{site.port}"
        while not (answer := arena.exchange(get(f"http://{named}/", named))):
            pass  # the places of the connections that have ended become free
        assert answer.endswith(b"reached")


@pytest.mark.parametrize("sent", [b"", b"GET http://page.test/ HTTP/1.1\r\nX: ", b"\5\1", b"CONNECT page.test:1"])
def test_slow_head_ends_connection(site: Site, sent: bytes) -> None:
    limits = Limits()._replace(network_header_seconds=0.2)
    with proxy_arena(f"page.test:{site.port}", names=NAMES, limits=limits) as arena, arena.connect() as sock:
        sock.sendall(sent)
        answer = rest_of(sock)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 408")


def test_overlong_head_is_refused() -> None:
    with proxy_arena("page.test") as arena:
        assert arena.status(b"GET http://page.test/ HTTP/1.1\r\nX: " + b"a" * 70_000) == 431


def test_silent_tunnel_and_silent_relay_end(site: Site) -> None:
    limits = Limits()._replace(network_header_seconds=0.2, network_idle_seconds=0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        named = f"page.test:{listener.getsockname()[1]}"
        with proxy_arena(named, names=NAMES, private=("page.test",), limits=limits) as arena:
            with opened(arena, named) as sock:
                assert rest_of(sock).startswith(b"HTTP/1.1 408")
            with opened(arena, named) as sock:
                sock.sendall(b"\0opaque")
                assert rest_of(sock) == b""


def test_half_closed_connection_still_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        named = f"page.test:{listener.getsockname()[1]}"
        with proxy_arena(named, names=NAMES, private=("page.test",)) as arena, opened(arena, named) as sock:
            sock.sendall(b"\0question")
            sock.shutdown(socket.SHUT_WR)
            with listener.accept()[0] as peer:
                assert rest_of(peer) == b"\0question"
                peer.sendall(b"answer" * 100_000)
            assert rest_of(sock) == b"answer" * 100_000


def test_both_sides_sending_without_reading_do_not_block() -> None:
    """Sends 4 MiB each way at once: neither side reads before it has sent everything."""
    size = 4 << 20
    with socket.create_server(("127.0.0.1", 0)) as listener:
        named = f"page.test:{listener.getsockname()[1]}"
        with proxy_arena(named, names=NAMES, private=("page.test",)) as arena, opened(arena, named) as sock:
            sock.sendall(b"\0")
            with listener.accept()[0] as peer:
                peer.settimeout(PLENTY)
                counts: list[int] = []
                readers = [threading.Thread(target=lambda s=s: counts.append(len(rest_of(s)))) for s in (sock, peer)]
                writers = [
                    threading.Thread(target=lambda s=s: (s.sendall(b"\0" * size), s.shutdown(socket.SHUT_WR)))
                    for s in (sock, peer)
                ]
                for each in (*writers, *readers):
                    each.start()
                for each in (*writers, *readers):
                    each.join(PLENTY)
    assert sorted(counts) == [size, size + 1]


def test_close_ends_every_connection(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        named = f"page.test:{listener.getsockname()[1]}"
        with proxy_arena(named, names=NAMES, private=("page.test",)) as arena:
            sock = opened(arena, named)
            sock.sendall(b"\0")
            peer = listener.accept()[0]
        with sock, peer:
            assert (rest_of(sock), rest_of(peer)) in ((b"", b""), (b"", b"\0"))
        with pytest.raises(ConnectionRefusedError):
            arena.connect()
