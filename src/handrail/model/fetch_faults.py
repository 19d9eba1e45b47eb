"""Declares the errors of a fetch: kinds and facts, no sentences, like those in `model/faults.py`.

FetchFault             holds the URL of the redirect hop that failed
├── InvalidUrl         syntax, too_long, scheme, userinfo, host, port
├── ForbiddenAddress   loopback, private, metadata … (see ops/network/addresses.py)
├── FetchFailed        unknown host, connection refused, TLS error, broken answer
└── FetchTimeout · TooManyRedirects · BinaryContent
"""

from handrail.model.faults import Fault


class FetchFault(Fault):
    url: str


class InvalidUrl(FetchFault):
    why: str
    """One of: syntax, too_long, scheme, userinfo, host, port."""


class ForbiddenAddress(FetchFault):
    """The host of the URL has an address that must not be contacted."""

    host: str
    address: str
    why: str


class FetchFailed(FetchFault):
    why: str


class FetchTimeout(FetchFault):
    seconds: float


class TooManyRedirects(FetchFault):
    limit: int


class BinaryContent(FetchFault):
    content_type: str
    size: int | None
    """The size in bytes; None if the server did not say and the content was not read to its end."""
