"""Names the reasons for which the proxy refuses a connection, and the record of each connection."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from handrail.ops.network.host_patterns import Site


class Refused(Exception):  # noqa: N818  the proxy answers with it
    """Ends a connection. `why` is a key of STATUS; `detail` says more about it."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why)
        self.why, self.detail = why, detail


STATUS = {
    "not_named": 403,
    "address": 403,
    "server_name": 403,
    "protocol": 403,
    "host": 400,
    "malformed": 400,
    "too_long": 431,
    "slow": 408,
    "ended": 400,
    "unresolved": 502,
    "unreachable": 502,
}
"""The HTTP status for each reason."""
_SAYS = {
    "not_named": "{site} is not in `network`, the list of hosts that commands may reach; ask the user",
    "address": "{site} has no public address ({detail}); ask the user",
    "server_name": "the TLS server name is not {site} ({detail})",
    "protocol": "only HTTP and TLS may be spoken to {site} ({detail})",
    "host": "the request names no host that is a name or an address ({detail})",
    "malformed": "the request is malformed ({detail})",
    "too_long": "the request has too long a head",
    "slow": "the request took too long",
    "ended": "the request ended too early",
    "unresolved": "the name {site} was not found",
    "unreachable": "{site} did not answer ({detail})",
}


class ConnectionRecord(NamedTuple):
    """Says what became of one connection of a command."""

    site: "Site | None"
    """None if the command named none."""
    via: str
    """`connect`, `http` or `socks5`; empty if the command spoke none of these."""
    refused: str
    """The reason; empty if the connection was allowed."""
    detail: str
    address: str
    """The address that was connected to."""
    sent: int
    received: int

    @property
    def facts(self) -> dict[str, Any]:
        """The record for the session log, without what is empty."""
        found = self._asdict() | {"site": str(self.site or "")}
        return {name: value for name, value in found.items() if value}


def says(why: str, detail: str, site: "Site | None") -> str:
    """Return the sentence for a reason."""
    return _SAYS[why].format(site=site or "the host", detail=detail or "no detail")
