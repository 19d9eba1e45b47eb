"""Decides whether a site may be reached, looks its name up, and connects to the addresses that it has checked."""

import socket
from collections.abc import Callable, Sequence

from handrail.kernel.network.refusals import Refused
from handrail.model.limits import Limits
from handrail.ops.network.addresses import literal, why_refused
from handrail.ops.network.host_patterns import HostPatterns, Site

Resolver = Callable[[str, int], list[str]]
"""Returns the addresses of a host name. Raises OSError if there are none."""


def system_resolver(host: str, port: int) -> list[str]:
    """Return the addresses of a host name, as the system's resolver finds them."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Destinations:
    """Connects to the sites that a list names.

    An address that is not public is refused, unless the list names the address itself, or `allow_hosts` the host.
    """

    def __init__(
        self,
        hosts: Sequence[str],
        limits: Limits,
        allow_hosts: Sequence[str] = (),
        resolve: Resolver = system_resolver,
    ) -> None:
        self._named, self._private = HostPatterns(hosts), {host.lower() for host in allow_hosts}
        self._limits, self._resolve = limits, resolve

    def speaks_anything(self, site: Site) -> bool:
        """Return whether any protocol may be spoken to a site, because the list names its port, too."""
        return self._named.names_port(site)

    def check(self, site: Site) -> None:
        """Raise Refused if the list does not name a site."""
        if not self._named.names(site):
            raise Refused("not_named")

    def connect(self, site: Site) -> tuple[socket.socket, str]:
        """Look a site up once, and connect to the first of its allowed addresses that answers. Raises Refused."""
        error: OSError | None = None
        for address in self._addresses(site):
            try:
                return self._connected(address, site.port), address
            except OSError as caught:
                error = caught
        raise Refused("unreachable", (error.strerror if error else "") or "no answer in time")

    def _addresses(self, site: Site) -> list[str]:
        if literal(site.host):
            return [site.host]
        try:
            found = list(dict.fromkeys(self._resolve(site.host, site.port)))
        except (OSError, UnicodeError):
            raise Refused("unresolved") from None
        why = {address: why_refused(address) for address in found}
        allowed = [address for address in found if not why[address] or self._may_be_private(site, address)]
        if not allowed:
            raise Refused("address" if found else "unresolved", ", ".join(sorted({str(each) for each in why.values()})))
        return allowed

    def _may_be_private(self, site: Site, address: str) -> bool:
        named = {site.host, f"{site.host}:{site.port}"} & self._private
        return bool(named) or self._named.names(Site(address, site.port))

    def _connected(self, address: str, port: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.settimeout(self._limits.network_connect_seconds)
            sock.connect((address, port))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except BaseException:
            sock.close()
            raise
        return sock
