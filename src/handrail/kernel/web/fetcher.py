"""One bounded, guarded GET.

A page is whatever the server answers, also with 404 or 500: the status is a fact of the page. No proxy, cookie or
credential is ever used.
"""

import re
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handrail.kernel.deadline import Deadline
from handrail.kernel.web import addresses, content
from handrail.kernel.web.markdown import NotConverted, to_markdown
from handrail.model.faults import BinaryContent, FetchFailed, ForbiddenAddress, InvalidUrl, TooManyRedirects
from handrail.model.limits import Limits

if TYPE_CHECKING:
    import httpcore2
    import httpx2

Resolver = Callable[[str, int], list[str]]

_PORTS = {"http": 80, "https": 443}
_REDIRECTS = (301, 302, 303, 307, 308)
_ASKED = (
    (b"User-Agent", b"handrail"),
    (b"Accept", b"text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.9, */*;q=0.5"),
    (b"Accept-Encoding", b"gzip, deflate"),
    (b"Connection", b"close"),
)


@dataclass(frozen=True, slots=True)
class Fetched:
    url: str
    """As it was asked for."""
    final_url: str
    """Where the redirects led."""
    status_code: int
    content_type: str
    """Without parameters; guessed if the server gave none."""
    content_length: int
    """The bytes of the page that were read, unpacked."""
    text: str
    """Markdown if the page is HTML."""
    truncated: bool


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that was understood, and whom it leads to: `host` is an address in its usual form, or an ASCII name."""

    url: "httpx2.URL"
    host: str
    port: int

    @property
    def netloc(self) -> str:
        return f"{self._site}:{self.port}"

    @property
    def normal(self) -> str:
        """The one way to write what is asked for: no other spelling of the host, no port that goes without saying."""
        site = self._site if self.port == _PORTS[self.url.scheme] else self.netloc
        return f"{self.url.scheme}://{site}{self.url.raw_path.decode()}"

    @property
    def _site(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


def system_resolver(host: str, port: int) -> list[str]:
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Fetcher:
    """`allow_hosts` names whom to trust although the address is not a public one: `host` or `host:port`, exactly as
    a `Target` gives them.
    """

    def __init__(self, limits: Limits, allow_hosts: Sequence[str] = (), resolve: Resolver = system_resolver) -> None:
        self._limits, self._resolve = limits, resolve
        self._allowed = {host.lower() for host in allow_hosts}

    def target(self, url: str) -> Target:
        """Understand a URL without touching the network. Raises InvalidUrl."""
        import httpx2  # noqa: PLC0415  100 ms, for those who fetch

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
        """`allow` is asked about every page that a redirect leads to, and raises where it is not to be fetched."""
        deadline = Deadline(url, seconds, cancel)
        target = self.target(url)
        for _ in range(self._limits.fetch_redirects + 1):
            answer = self._answer(target, deadline)
            if answer.location is None:
                return self._page(url, target, answer, deadline)
            target = self._next(target, answer.location)
            allow(target)
        raise TooManyRedirects(url, self._limits.fetch_redirects)

    def _next(self, target: Target, location: str) -> Target:
        import httpx2  # noqa: PLC0415  loaded when first used

        try:
            return self.target(str(target.url.join(location)))
        except (httpx2.InvalidURL, ValueError):
            raise InvalidUrl(location[: self._limits.fetch_url_chars], "syntax") from None

    def _answer(self, target: Target, deadline: Deadline) -> "_Answer":
        import httpcore2  # noqa: PLC0415  loaded when first used

        from handrail.kernel.web.connection import Dialer  # noqa: PLC0415  imports httpcore2

        dialer = Dialer(self._checked(target, deadline), deadline, self._limits.fetch_header_bytes)
        url = httpcore2.URL(
            scheme=target.url.raw_scheme,
            host=target.host.encode(),
            port=target.port,
            target=target.url.raw_path,
        )
        headers = [(b"Host", target.url.netloc), *_ASKED]
        with (
            _as_faults(str(target.url)),
            closing(httpcore2.HTTPConnection(url.origin, network_backend=dialer)) as connection,
            connection.stream("GET", url, headers=headers) as response,
        ):
            response.extensions["network_stream"].headers_are_in()
            return self._read(target, response, deadline)

    def _checked(self, target: Target, deadline: Deadline) -> list[str]:
        """The addresses to connect to: looked up once, and every one of them allowed."""
        literal = addresses.literal(target.host)
        found = [literal] if literal else self._looked_up(target, deadline)
        if self._allowed.isdisjoint({target.host, f"[{target.host}]", target.netloc}):
            for address in found:
                why = addresses.why_refused(address)
                if why is not None:
                    raise ForbiddenAddress(str(target.url), target.host, address, why)
        return found

    def _looked_up(self, target: Target, deadline: Deadline) -> list[str]:
        answer: Future[list[str]] = Future()

        def look_up() -> None:
            try:
                answer.set_result(self._resolve(target.host, target.port))
            except BaseException as error:  # noqa: BLE001  raised again by result()
                answer.set_exception(error)

        # The system's resolver cannot be interrupted: past the deadline the thread is left to end by itself.
        threading.Thread(target=look_up, name="handrail-resolve", daemon=True).start()
        while not wait([answer], timeout=deadline.glance()).done:
            pass
        with _as_faults(str(target.url)):
            found = answer.result()
        if not found:
            raise FetchFailed(str(target.url), "host name not found")
        return found

    def _read(self, target: Target, response: "httpcore2.Response", deadline: Deadline) -> "_Answer":
        headers: dict[str, str] = {}
        for name, value in response.headers:
            key, text = name.decode("latin-1").lower(), value.decode("utf-8", "replace")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        answer = _Answer(response.status, headers)
        if answer.location is not None or not answer.may_be_text:
            return answer
        codings = content.content_codings(headers.get("content-encoding", ""))
        if not content.can_unpack(codings):
            raise FetchFailed(str(target.url), f"unknown content encoding: {', '.join(codings)[:80]}")
        for piece in content.unpacked(response.iter_stream(), codings):
            deadline.left()
            answer.body += piece
            if len(answer.body) > self._limits.fetch_bytes:
                del answer.body[self._limits.fetch_bytes :]
                answer.cut = True
                break
        return answer

    def _page(self, url: str, target: Target, answer: "_Answer", deadline: Deadline) -> Fetched:
        final_url, body = str(target.url), bytes(answer.body)
        if not answer.may_be_text:
            raise BinaryContent(final_url, answer.media, answer.declared_size)
        text, cut = content.text_of(body, answer.headers.get("content-type", ""), cut=answer.cut), answer.cut
        if "\0" in text:
            size = answer.declared_size if cut else len(body)
            raise BinaryContent(final_url, answer.media or "application/octet-stream", size)
        media = answer.media or content.sniffed_type(body)
        if content.is_html(media):
            try:
                text, shortened = to_markdown(text, final_url, deadline, self._limits)
            except NotConverted:
                raise FetchFailed(final_url, "the HTML could not be converted") from None
            cut = cut or shortened
        return Fetched(url, final_url, answer.status, media, len(body), text, cut)


@dataclass(slots=True)
class _Answer:
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


@contextmanager
def _as_faults(url: str) -> Iterator[None]:
    import httpcore2  # noqa: PLC0415  loaded when first used

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
