"""Decides which addresses are public and which spellings are names. Pure functions, no DNS lookups."""

import ipaddress
import re
from typing import NamedTuple

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class AddressRefused(NamedTuple):
    """Holds networks from which nothing is fetched, and the reason."""

    why: str
    networks: tuple[Network, ...]


def _refused(why: str, *networks: str) -> AddressRefused:
    return AddressRefused(why, tuple(map(ipaddress.ip_network, networks)))


# A copy of the registries of special-purpose addresses, because `is_global` differs between Python versions.
# The first match wins, so narrow networks come before wide ones.
REFUSED = (
    _refused("metadata", "169.254.169.254", "169.254.170.2", "169.254.170.23", "100.100.100.200", "168.63.129.16"),
    _refused("metadata", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"),
    _refused("unspecified", "0.0.0.0/32", "::/128"),
    _refused("loopback", "127.0.0.0/8", "::1/128"),
    _refused("private", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    _refused("link_local", "169.254.0.0/16", "fe80::/10"),
    _refused("carrier_nat", "100.64.0.0/10"),
    _refused("multicast", "224.0.0.0/4", "ff00::/8"),
    _refused("documentation", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    _refused("benchmark", "198.18.0.0/15", "2001:2::/48"),
    _refused("embedded_ipv4", "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "2001::/32", "2002::/16"),
    _refused("reserved", "0.0.0.0/8", "192.0.0.0/24", "192.88.99.0/24"),
    _refused("reserved", "240.0.0.0/4", "2001::/23"),
    # The rest of IPv6 outside 2000::/3, the only part with public addresses.
    _refused("reserved", "::/3", "4000::/2", "8000::/1"),
)

# An IPv6-only network reaches IPv4 sites through this prefix: check the IPv4 address inside.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_LABEL = re.compile(r"[a-z0-9_-]{1,63}")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def why_refused(address: str) -> str | None:
    """Return the reason why nothing may be fetched from this address, or None for a public address."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id is not None:
            return "link_local"
        if found in _NAT64:
            found = ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)
        elif int(found) >> 32 & 0xFFFF_FFFF in _ISATAP:
            return "embedded_ipv4"
    return next((why for why, networks in REFUSED if any(found in network for network in networks)), None)


def literal(host: str) -> str | None:
    """Return the address that a URL's host spells out in the standard way, in its shortest form; None for a name."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None
    return None if isinstance(found, ipaddress.IPv6Address) and found.scope_id is not None else str(found)


def is_name(host: str) -> bool:
    """Return True for a name to look up: ASCII labels, no final dot, and a last label that is not a number.

    Some programs read 127.1, 2130706433, 0x7f000001 and 0177.0.0.1 as addresses, others as names.
    """
    labels = host.split(".")
    return len(host) <= 253 and all(map(_LABEL.fullmatch, labels)) and not _NUMBER.fullmatch(labels[-1])
