"""Fetches one page with a bounded GET, only from checked addresses.

Every response is a page, also one with status 404 or 500: the status is part of the result. The fetcher uses no
proxy, no cookie and no credential.
"""

import re
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from handrail.kernel.deadline import Deadline, DeadlineExceeded
from handrail.kernel.network.allowed_sites import Resolver, system_resolver
from handrail.kernel.web import content
from handrail.kernel.web.markdown import NotConverted, to_markdown
from handrail.model.fetch_faults import (
    BinaryContent,
    FetchFailed,
    FetchTimeout,
    ForbiddenAddress,
    InvalidUrl,
    TooManyRedirects,
)
from handrail.model.limits import Limits
from handrail.model.record import record
from handrail.ops.network import addresses

if TYPE_CHECKING:
    import httpcore2
    import httpx2

_PORTS = {"http": 80, "https": 443}
_REDIRECTS = (301, 302, 303, 307, 308)
_REQUEST_HEADERS = (
    (b"User-Agent", b"handrail"),
    (b"Accept", b"text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5"),
    (b"Accept-Encoding", b"gzip, deflate"),
    (b"Connection", b"close"),
)


class Fetched(NamedTuple):
    """Holds one fetched page as text."""

    url: str
    """The URL that the caller gave."""
    final_url: str
    """The URL after all redirects."""
    status_code: int
    content_type: str
    """The media type without parameters; guessed if the server gave none."""
    content_length: int
    """The number of bytes that were read of the page, after decompression."""
    text: str
    """Markdown if the page is HTML."""
    truncated: bool


class Target(NamedTuple):
    """Holds a parsed URL with its host and port. `host` is an address in its usual form, or an ASCII name."""

    url: "httpx2.URL"
    host: str
    port: int

    @property
    def netloc(self) -> str:
        return f"{self._site}:{self.port}"

    @property
    def normal(self) -> str:
        """The canonical form of the URL: one spelling of the host, and no default port."""
        return f"{self.url.scheme}://{self.shown_host}{self.url.raw_path.decode()}"

    @property
    def shown_host(self) -> str:
        """The host, with the port unless it is the usual one of the scheme."""
        return self._site if self.port == _PORTS[self.url.scheme] else self.netloc

    @property
    def _site(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


class Fetcher:
    """Fetches pages within limits.

    `allow_hosts` lists hosts whose address may be non-public: `host` or `host:port`, spelled as in `Target`.
    """

    def __init__(self, limits: Limits, allow_hosts: Sequence[str] = (), resolve: Resolver = system_resolver) -> None:
        self._limits, self._resolve = limits, resolve
        self._allowed = {host.lower() for host in allow_hosts}

    def target(self, url: str) -> Target:
        """Parse a URL without using the network. Raises InvalidUrl."""
        import httpx2  # noqa: PLC0415  takes 100 ms, and few sessions fetch

        if len(url) > self._limits.fetch_url_chars:
            raise InvalidUrl(url[: self._limits.fetch_url_chars], "too_long")
        try:
            parsed = httpx2.URL(url)
            host = parsed.raw_host.decode("ascii")
        except (httpx2.InvalidURL, UnicodeError):
            raise InvalidUrl(url, "syntax") from None
        if parsed.scheme not in _PORTS:
            raise InvalidUrl(url, "scheme")
        if parsed.userinfo:
            raise InvalidUrl(url, "userinfo")
        port = _PORTS[parsed.scheme] if parsed.port is None else parsed.port
        if not 0 < port < 65536:
            raise InvalidUrl(url, "port")
        known = addresses.literal(host) or (host if addresses.is_name(host) else None)
        if known is None:
            raise InvalidUrl(url, "host")
        return Target(parsed, known, port)

    def fetch(
        self,
        url: str,
        seconds: float,
        cancel: threading.Event | None = None,
        allow: Callable[[Target], None] = lambda _: None,
    ) -> Fetched:
        """Fetch a page and follow its redirects. Raises FetchTimeout after `seconds`.

        `allow` is called with the target of every redirect; it raises if that page must not be fetched.
        """
        deadline = Deadline(seconds, cancel)
        try:
            return self._follow(url, deadline, allow)
        except DeadlineExceeded:
            raise FetchTimeout(url, seconds) from None

    def _follow(self, url: str, deadline: Deadline, allow: Callable[[Target], None]) -> Fetched:
        target = self.target(url)
        for _ in range(self._limits.fetch_redirects + 1):
            response = self._get(target, deadline)
            if response.location is None:
                return self._page(url, target, response, deadline)
            target = self._redirected(target, response.location)
            allow(target)
        raise TooManyRedirects(url, self._limits.fetch_redirects)

    def _redirected(self, target: Target, location: str) -> Target:
        import httpx2  # noqa: PLC0415  takes 100 ms, and few sessions fetch

        try:
            return self.target(str(target.url.join(location)))
        except (httpx2.InvalidURL, ValueError):
            raise InvalidUrl(location[: self._limits.fetch_url_chars], "syntax") from None

    def _get(self, target: Target, deadline: Deadline) -> "_Response":
        import httpcore2  # noqa: PLC0415  the same

        from handrail.kernel.web.connection import Dialer  # noqa: PLC0415  it imports httpcore2

        dialer = Dialer(self._checked_addresses(target, deadline), deadline, self._limits.fetch_header_bytes)
        url = httpcore2.URL(
            scheme=target.url.raw_scheme,
            host=target.host.encode(),
            port=target.port,
            target=target.url.raw_path,
        )
        headers = [(b"Host", target.url.netloc), *_REQUEST_HEADERS]
        with (
            _as_faults(str(target.url)),
            closing(httpcore2.HTTPConnection(url.origin, network_backend=dialer)) as connection,
            connection.stream("GET", url, headers=headers) as response,
        ):
            response.extensions["network_stream"].headers_received()
            return self._read(target, response, deadline)

    def _checked_addresses(self, target: Target, deadline: Deadline) -> list[str]:
        """Look the host up once and return its addresses. Raises ForbiddenAddress if one of them is refused."""
        literal = addresses.literal(target.host)
        found = [literal] if literal else self._look_up(target, deadline)
        if self._allowed.isdisjoint({target.host, f"[{target.host}]", target.netloc}):
            for address in found:
                why = addresses.why_refused(address)
                if why is not None:
                    raise ForbiddenAddress(str(target.url), target.host, address, why)
        return found

    def _look_up(self, target: Target, deadline: Deadline) -> list[str]:
        resolved: Future[list[str]] = Future()

        def resolve() -> None:
            try:
                resolved.set_result(self._resolve(target.host, target.port))
            except BaseException as error:  # noqa: BLE001  result() raises it again
                resolved.set_exception(error)

        # The system's resolver cannot be interrupted: after the deadline its thread continues and ends by itself.
        threading.Thread(target=resolve, name="handrail-resolve", daemon=True).start()
        while not wait([resolved], timeout=deadline.wait_seconds()).done:
            pass
        with _as_faults(str(target.url)):
            found = resolved.result()
        if not found:
            raise FetchFailed(str(target.url), "host name not found")
        return found

    def _read(self, target: Target, stream: "httpcore2.Response", deadline: Deadline) -> "_Response":
        """Read the body of a page that may be text, at most `fetch_bytes`; no body of other responses."""
        response = _Response(stream.status, _joined_headers(stream.headers))
        if response.location is not None or not response.may_be_text:
            return response
        codings = content.content_codings(response.headers.get("content-encoding", ""))
        if not content.can_unpack(codings):
            raise FetchFailed(str(target.url), f"unknown content encoding: {', '.join(codings)[:80]}")
        for piece in content.unpacked(stream.iter_stream(), codings):
            deadline.check()
            response.body += piece
            if len(response.body) > self._limits.fetch_bytes:
                del response.body[self._limits.fetch_bytes :]
                response.cut = True
                break
        return response

    def _page(self, url: str, target: Target, response: "_Response", deadline: Deadline) -> Fetched:
        """Decode a response to text. Raises BinaryContent if it is not text."""
        final_url, body = str(target.url), bytes(response.body)
        if not response.may_be_text:
            raise BinaryContent(final_url, response.media, response.declared_size)
        text, cut = content.text_of(body, response.headers.get("content-type", ""), cut=response.cut), response.cut
        if "\0" in text:
            size = response.declared_size if cut else len(body)
            raise BinaryContent(final_url, response.media or "application/octet-stream", size)
        media = response.media or content.sniffed_type(body)
        if content.is_html(media):
            try:
                text, shortened = to_markdown(text, final_url, deadline, self._limits)
            except NotConverted:
                raise FetchFailed(final_url, "the HTML could not be converted") from None
            cut = cut or shortened
        return Fetched(url, final_url, response.status, media, len(body), text, cut)


@record
class _Response:
    """Holds status, headers and the bytes that were read of one response."""

    status: int
    headers: dict[str, str]
    body: bytearray = field(default_factory=bytearray)
    cut: bool = False

    @property
    def location(self) -> str | None:
        return self.headers.get("location") if self.status in _REDIRECTS else None

    @property
    def media(self) -> str:
        return content.media_type(self.headers.get("content-type", ""))

    @property
    def may_be_text(self) -> bool:
        return not self.media or content.is_text(self.media) or content.is_html(self.media)

    @property
    def declared_size(self) -> int | None:
        size = self.headers.get("content-length", "")
        return int(size) if "content-encoding" not in self.headers and re.fullmatch("[0-9]{1,18}", size) else None


def _joined_headers(pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers by lower-case name; values of a repeated header are joined by commas."""
    headers: dict[str, str] = {}
    for name, value in pairs:
        key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


@contextmanager
def _as_faults(url: str) -> Iterator[None]:
    """Turn errors of the network and of the protocol into FetchFailed."""
    import httpcore2  # noqa: PLC0415  takes 100 ms, and few sessions fetch

    try:
        yield
    except (OSError, httpcore2.ProtocolError, zlib.error) as error:
        raise FetchFailed(url, _reason(error)[:200]) from error


def _reason(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"certificate not trusted: {error.verify_message}"
        case ssl.SSLError():
            return f"TLS failed: {str(error.reason or error).lower().replace('_', ' ')}"
        case socket.gaierror(errno=socket.EAI_NONAME):
            return "host name not found"
        case OSError(strerror=str(text)):
            return text.lower()
        case zlib.error():
            return "the compressed data is damaged"
        case _:
            return str(error)
