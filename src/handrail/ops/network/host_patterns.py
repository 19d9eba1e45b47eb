"""Decides which hosts a list such as `["github.com", "*.python.org", "db.test:5432"]` names.

An item is a name, a name after `*.` (which stands for one or more labels), `*` for every name, or an address. Without a
port, an item means the ports 80 and 443. Names are compared in lower case, in their ASCII form, without a final dot.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from handrail.ops.network.addresses import is_name, literal

USUAL_PORTS = (80, 443)
_LONGEST = 300
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\[\]:@/?#\\]+)(?::([1-9][0-9]{0,4}))?")
_ANY = "*"


class Site(NamedTuple):
    """Names one place to connect to: a canonical name or address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port in USUAL_PORTS else f"{host}:{self.port}"


class HostPattern(NamedTuple):
    """Names the sites that one item of the list covers."""

    host: str
    port: int | None
    """None for the usual ports."""

    def covers(self, site: Site) -> bool:
        """Return whether the pattern names a site; only its own spelling names an address."""
        return self._covers_port(site.port) and self._covers_host(site.host)

    def includes(self, other: "HostPattern") -> bool:
        """Return whether the pattern names every site that another one names."""
        port_fits = self.port == other.port or (self.port is None and other.port in USUAL_PORTS)
        wider = self.host == _ANY or self.host.startswith("*.") or not other.host.startswith("*")
        return port_fits and (self.host == other.host or (wider and self._covers_host(other.host.removeprefix("*."))))

    def _covers_port(self, port: int) -> bool:
        return port in USUAL_PORTS if self.port is None else port == self.port

    def _covers_host(self, host: str) -> bool:
        if self.host == _ANY:
            return literal(host) is None and host != _ANY
        return host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host


def canonical_host(text: str) -> str | None:
    """Return a host in the one spelling that is compared; None for what some programs read as another host."""
    host = text.lower()
    host = host.removesuffix(".") if not host.endswith("..") else host
    return literal(host.removeprefix("[").removesuffix("]")) or (host if is_name(host) else None)


def parse_authority(text: str, default_port: int | None) -> Site | None:
    """Return the site that `host`, `host:port` or `[address]:port` names; None if it is none, or lacks its port."""
    found = _AUTHORITY.fullmatch(text) if text.isascii() and len(text) <= _LONGEST else None
    host = canonical_host(found[1]) if found else None
    if found is None or host is None or found[1].startswith("[") != (":" in host):
        return None
    port = int(found[2]) if found[2] else default_port
    return Site(host, port) if port is not None and port < 65536 else None


def parse_pattern(text: str) -> HostPattern:
    """Return the pattern that an item of the list means. Raises ValueError with the reason."""
    if "://" in text or "/" in text:
        raise ValueError("write only the host, such as github.com or *.python.org, without a scheme or a path")
    if "@" in text:
        raise ValueError("a host has no user name")
    if not text.isascii():
        text = _ascii(text)
    if ":" in text and literal(text.lower()):
        text = f"[{text}]"
    wild = "*." if text.startswith("*.") else ""
    if text == _ANY or text.startswith("*:"):
        found = parse_authority(text.replace(_ANY, "any", 1), 0)
        host = _ANY
    else:
        found = parse_authority(text.removeprefix("*."), 0)
        host = "" if found is None else wild + found.host
    if found is None or (wild and literal(found.host)):
        raise ValueError("write a name, `*.` and a name, or an address, and a port if it is not 80 or 443")
    return HostPattern(host, found.port or None)


def _ascii(text: str) -> str:
    try:
        return text.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise ValueError(f"the name has no ASCII form: {error}") from None


class HostPatterns:
    """Holds a list of patterns."""

    def __init__(self, items: Iterable[str]) -> None:
        self._patterns = tuple(map(parse_pattern, items))

    def names(self, site: Site) -> bool:
        """Return whether the list names a site."""
        return any(each.covers(site) for each in self._patterns)

    def names_port(self, site: Site) -> bool:
        """Return whether the list names a site together with its port, so that any protocol may be spoken there."""
        return any(each.port is not None and each.covers(site) for each in self._patterns)


def common_patterns(ours: Iterable[str], theirs: Iterable[str]) -> tuple[str, ...]:
    """Return the items of both lists that name only what the other list names, too."""
    mine, others = list(ours), list(theirs)
    first, second = list(map(parse_pattern, mine)), list(map(parse_pattern, others))
    kept = [text for text, each in zip(mine, first, strict=True) if any(other.includes(each) for other in second)]
    kept += [text for text, each in zip(others, second, strict=True) if any(other.includes(each) for other in first)]
    return tuple(dict.fromkeys(kept))
