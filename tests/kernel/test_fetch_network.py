"""Tests a fetch with redirects, delays, broken connections, TLS and hostile pages, and the faults that it raises."""

import contextlib
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.loopback_server import PLENTY, Handler, Site, failure, fetch, fetched, moved, page

from handrail.kernel.network.allowed_sites import system_resolver
from handrail.kernel.web import html_worker
from handrail.kernel.web.fetcher import Fetcher
from handrail.model.faults import Cancelled
from handrail.model.fetch_faults import FetchFailed, FetchTimeout, TooManyRedirects
from handrail.model.limits import KIB, MIB, Limits

CERTIFICATE = Path(__file__).with_name("page.test.pem")
BRIEF = 0.3


def by_path(pages: dict[str, bytes]) -> Handler:
    return lambda to, request: to.sendall(pages[request.split()[1].decode()])


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
def test_redirect_is_followed_to_page(status: str) -> None:
    with Site(by_path({"/old": moved("/new", status), "/new": page(b"here")})) as site:
        found = fetch(site, "/old")
        assert (found.url, found.final_url, found.text) == (site.url("/old"), site.url("/new"), "here")


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("next", "/a/next"),
        ("../next?q=1#f", "/next?q=1"),
        ("?q", "/a/b?q"),
        ("./", "/a/"),
        ("ü/x y", "/a/%C3%BC/x%20y"),
    ],
)
def test_relative_redirect_starts_from_page_that_sent_it(location: str, path: str) -> None:
    with Site(by_path({"/a/b": moved(location), path: page(b"here")})) as site:
        assert fetch(site, "/a/b").text == "here"


def test_five_redirects_are_followed_and_sixth_is_an_error() -> None:
    steps = {f"/{step}": moved(f"/{step + 1}") for step in range(6)} | {"/6": page(b"end")}
    with Site(by_path(steps)) as site:
        assert fetch(site, "/1").text == "end"
        with pytest.raises(TooManyRedirects) as caught:
            fetch(site, "/0")
        assert caught.value.facts() == {"url": site.url("/0"), "limit": 5}


def test_circular_redirect_is_an_error() -> None:
    with Site(by_path({"/a": moved("/b"), "/b": moved("/a")})) as site:
        with pytest.raises(TooManyRedirects):
            fetch(site, "/a")
        assert len(site.requests) == 6


def test_redirect_without_location_is_a_page() -> None:
    assert fetched(page(b"lost", status="302 Found")).text == "lost"


def test_fetch_keeps_no_cookies_and_sends_no_credentials() -> None:
    pages = {"/a": page(status="302 Found", kind=None, Location="/b", Set_Cookie="id=1; Path=/"), "/b": page(b"x")}
    with Site(by_path(pages)) as site:
        fetch(site, "/a")
        assert not any(b"cookie" in each.lower() or b"authorization" in each.lower() for each in site.requests)


def drip(start: bytes, drop: bytes) -> tuple[Handler, threading.Event]:
    over = threading.Event()

    def answer(to: socket.socket, _: bytes) -> None:
        to.sendall(start)
        while not over.wait(0.02):
            to.sendall(drop)

    return answer, over


@pytest.mark.parametrize(
    ("start", "drop"),
    [
        pytest.param(b"", b"", id="silence"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"X", id="header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", id="headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", b"x", id="body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x", id="length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", id="chunks"),
        pytest.param(b"", b"HTTP/1.1 100 Continue\r\n\r\n", id="interim answers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n", b"X: y\r\n", id="binary"),
    ],
)
def test_slow_drip_ends_at_deadline(start: bytes, drop: bytes) -> None:
    answer, over = drip(start, drop)
    with Site(answer) as site:
        with pytest.raises(FetchTimeout) as caught:
            fetch(site, seconds=BRIEF)
        over.set()
    assert caught.value.facts() == {"url": site.url(), "seconds": BRIEF}


def test_deadline_covers_all_redirects_together() -> None:
    def answer(to: socket.socket, request: bytes) -> None:
        over.wait(BRIEF * 0.4)
        to.sendall(moved("/again"))

    over = threading.Event()
    with Site(answer) as site:
        with pytest.raises(FetchTimeout):
            fetch(site, seconds=BRIEF)
        over.set()


def test_name_lookup_without_answer_ends_at_deadline() -> None:
    over = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        over.wait()
        return []

    with pytest.raises(FetchTimeout):
        Fetcher(Limits(), resolve=resolve).fetch("http://slow.test/", BRIEF)
    over.set()


@contextlib.contextmanager
def full_port() -> Iterator[int]:
    """Open a port whose queue is full: a connection to it neither succeeds nor fails."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def test_connection_that_is_never_accepted_ends_at_deadline() -> None:
    with full_port() as port, pytest.raises(FetchTimeout):
        Fetcher(Limits(), ["127.0.0.1"]).fetch(f"http://127.0.0.1:{port}/", BRIEF)


def test_next_address_is_tried_when_one_does_not_answer() -> None:
    with full_port() as port, Site(page(b"second"), host="127.0.0.2", port=port) as site:
        fetcher = Fetcher(Limits(), ["two.test"], resolve=lambda host, port: ["127.0.0.1", "127.0.0.2"])
        assert fetcher.fetch(site.url(host="two.test"), 4).text == "second"


def test_next_address_is_tried_when_one_refuses() -> None:
    with Site(page(b"third")) as site:
        resolve = lambda host, port: ["127.0.0.2", "::1", "127.0.0.1"]  # noqa: E731  a short function that is used once
        assert Fetcher(Limits(), ["x.test"], resolve).fetch(site.url(host="x.test"), PLENTY).text == "third"


@pytest.mark.parametrize("place", ["headers", "body", "name", "markdown"])
def test_cancelled_fetch_ends_at_once(place: str) -> None:
    cancel, over = threading.Event(), threading.Event()

    def answer(to: socket.socket, _: bytes) -> None:
        to.sendall(
            page(b"<p>x", "text/html") if place == "markdown" else b"HTTP/1.1 200 OK\r\n\r\n" * (place == "body")
        )
        cancel.set()
        if place != "markdown":
            over.wait()

    def resolve(host: str, port: int) -> list[str]:
        if place == "name":
            cancel.set()
            over.wait()
        return ["127.0.0.1"]

    with Site(answer) as site:
        with pytest.raises(Cancelled):
            Fetcher(Limits(), ["x.test"], resolve).fetch(site.url(host="x.test"), PLENTY, cancel)
        over.set()


def test_refused_connection_is_a_failed_fetch() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}/"
    with pytest.raises(FetchFailed) as caught:
        Fetcher(Limits(), ["127.0.0.1"]).fetch(url, PLENTY)
    assert caught.value.facts() == {"url": url, "why": "connection refused"}


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "host name not found"),
        (
            socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
            "temporary failure in name resolution",
        ),
        (TimeoutError("slow"), "slow"),
    ],
)
def test_failed_name_lookup_is_a_failed_fetch(error: OSError, why: str) -> None:
    def resolve(host: str, port: int) -> list[str]:
        raise error

    with pytest.raises(FetchFailed) as caught:
        Fetcher(Limits(), resolve=resolve).fetch("http://nowhere.test/", PLENTY)
    assert caught.value.facts() == {"url": "http://nowhere.test/", "why": why}


def test_system_resolver_returns_addresses() -> None:
    assert system_resolver("127.0.0.1", 80) == ["127.0.0.1"]


def reset(to: socket.socket, _: bytes) -> None:
    to.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    to.close()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(b"", "Server disconnected without sending a response.", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX-Unfin", "Server disconnected without sending a response.", id="headers"),
        pytest.param(HEAD + b"Content-Length: 10\r\n\r\nshort", "peer closed connection", id="too short"),
        pytest.param(HEAD + b"Content-Length: -1\r\n\r\nx", "bad Content-Length", id="negative"),
        pytest.param(
            HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "conflicting Content-Length", id="two"
        ),
        pytest.param(HEAD + b"Content-Length: 9" + b"9" * 30 + b"\r\n\r\nx", "", id="huge"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "illegal status line", id="not http"),
        pytest.param(b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n", "illegal header line", id="bad header"),
        pytest.param(
            HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\nx", "headers of more than 65536 bytes", id="long header"
        ),
        pytest.param(HEAD + b"X: y\r\n" * 12_000 + b"\r\nx", "headers of more than 65536 bytes", id="many headers"),
        pytest.param(b"HTTP/1.1 100 Go on\r\n\r\n" * 4000, "headers of more than 65536 bytes", id="many interims"),
        pytest.param(reset, "connection reset by peer", id="reset"),
    ],
)
def test_broken_answer_is_a_failed_fetch(answer: Handler | bytes, why: str) -> None:
    assert failure(answer).startswith(why)


def test_endless_header_is_a_failed_fetch_at_its_limit() -> None:
    def flood(to: socket.socket, _: bytes) -> None:
        while True:
            to.sendall(b"HTTP/1.1 200 OK\r\nX: ".ljust(64 * KIB, b"y"))

    assert failure(flood) == "headers of more than 65536 bytes"


def test_bytes_after_declared_length_are_ignored() -> None:
    assert fetched(HEAD + b"Content-Length: 4\r\n\r\npage and more").text == "page"


@pytest.fixture
def secured() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


def to_loopback(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


def test_self_signed_certificate_is_refused(secured: ssl.SSLContext) -> None:
    with Site(page(b"x"), tls=secured) as site:
        with pytest.raises(FetchFailed) as caught:
            Fetcher(Limits(), ["page.test"], to_loopback).fetch(site.url(host="page.test"), PLENTY)
        assert (caught.value.why, site.requests) == ("certificate not trusted: self-signed certificate", [])


def test_certificate_must_match_host_of_url(secured: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    secured.sni_callback = lambda sock, name, context: asked.append(name)
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    with Site(page(b"trusted" * 10_000), tls=secured) as site:
        fetcher = Fetcher(Limits(), ["page.test", "other.test", "127.0.0.1"], to_loopback)
        assert fetcher.fetch(site.url(host="page.test"), PLENTY).text == "trusted" * 10_000
        for host, why in (("other.test", "Hostname mismatch"), ("127.0.0.1", "IP address mismatch")):
            with pytest.raises(FetchFailed) as caught:
                fetcher.fetch(site.url(host=host), PLENTY)
            assert caught.value.why.startswith(f"certificate not trusted: {why}")
        assert (asked, len(site.requests)) == (["page.test", "other.test", None], 1)


def test_server_without_tls_is_a_failed_fetch() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with listener.accept()[0] as to:
                to.sendall(b"220 mail ready\r\n")
                to.recv(4096)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(FetchFailed) as caught:
            Fetcher(Limits(), ["127.0.0.1"]).fetch(f"https://127.0.0.1:{listener.getsockname()[1]}/", PLENTY)
        thread.join()
    assert caught.value.why == "TLS failed: wrong version number"


def test_endless_tls_handshake_ends_at_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(FetchTimeout):
        Fetcher(Limits(), ["127.0.0.1"]).fetch(f"https://127.0.0.1:{listener.getsockname()[1]}/", BRIEF)


@pytest.mark.parametrize(
    "html",
    [
        pytest.param("<div>" * 200_000, id="deep"),
        pytest.param("<b>" * 300_000, id="formatting"),
        pytest.param("<table><tr><td>" * 60_000, id="tables"),
        pytest.param("<ul><li>x" * 100_000, id="lists"),
        pytest.param("<a href=x>" * 100_000, id="links"),
        pytest.param("<!--" * 250_000, id="comments"),
    ],
)
def test_html_that_overloads_converter_gives_text_within_limit(html: str) -> None:
    assert len(fetched(page(html.encode(), "text/html")).text) <= Limits().fetch_bytes


def test_markdown_beyond_limit_is_cut() -> None:
    html = "<table><tr><td colspan=9999>x</td></tr></table>" * 2000
    found = fetched(page(html.encode(), "text/html"))
    assert (len(found.text), found.content_length, found.truncated) == (Limits().fetch_bytes, len(html), True)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds a process's memory reliably")
def test_html_that_needs_gigabytes_is_a_failed_fetch() -> None:
    html = "<blockquote>" * 100 + "<pre>" + "x\n" * 400_000
    assert failure(page(html.encode(), "text/html")) == "the HTML could not be converted"


def test_endless_conversion_ends_at_deadline_or_when_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = tmp_path / "endless.py"
    endless.write_text("import time\nwhile True: time.sleep(1000)\n")
    monkeypatch.setattr(html_worker, "__file__", str(endless))
    with Site(page(b"<p>x", "text/html")) as site:
        with pytest.raises(FetchTimeout):
            fetch(site, seconds=BRIEF)
        cancel = threading.Event()
        threading.Timer(BRIEF, cancel.set).start()
        with pytest.raises(Cancelled):
            Fetcher(Limits(), [site.netloc]).fetch(site.url(), PLENTY, cancel)


def test_html_worker_writes_no_more_than_requested_bytes() -> None:
    argv = [sys.executable, "-P", html_worker.__file__, "http://page.test/", str(512 * MIB), "60", "5", ""]
    done = subprocess.run(argv, input="<h1>grüße</h1>".encode(), capture_output=True, check=True)
    assert done.stdout == "# grü".encode()


def test_importing_fetcher_does_not_import_http_library() -> None:
    code = (
        "import sys, handrail.kernel.web.fetcher; print({'httpx2', 'httpcore2', 'html_to_markdown'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
