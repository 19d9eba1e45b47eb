"""Words the faults of fetching a page."""

from handrail.model.approval import ASK_THE_USER
from handrail.model.fetch_faults import (
    BinaryContent,
    FetchFailed,
    FetchTimeout,
    ForbiddenAddress,
    InvalidUrl,
    TooManyRedirects,
)
from handrail.tools.messages import Message, Words


def _size(size: int | None) -> str:
    return "unknown size" if size is None else f"{size} bytes"


FETCHING: Words = {
    InvalidUrl: Message("invalid_url", "Invalid URL format", "Give a full http:// or https:// address"),
    ForbiddenAddress: Message(
        "network_error",
        lambda f: f"Failed to fetch - {f['host']} is not a public address ({f['why'].replace('_', ' ')})",
        ASK_THE_USER,
        'List "{host}" under allow_hosts in the configuration',
    ),
    FetchFailed: Message("network_error", "Failed to fetch - {why}", "Check the address, or try again later"),
    FetchTimeout: Message(
        "timeout", "Request timed out after {seconds:g} seconds", "Try again with a longer timeout_seconds"
    ),
    TooManyRedirects: Message(
        "network_error", "Failed to fetch - more than {limit} redirects", "Use the final address directly"
    ),
    BinaryContent: Message(
        "network_error",
        lambda f: f"Failed to fetch - not text but {f['content_type'] or 'binary'} ({_size(f['size'])})",
        "Only text pages can be fetched",
    ),
}
