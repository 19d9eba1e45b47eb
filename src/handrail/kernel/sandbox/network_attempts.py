"""Tells whether a command tried to reach the network, from the counters of the sandbox's own network namespace.

The namespace has no route but the one to itself, and its name server has no route either. So whatever tries to leave
it, a lookup of a name included, counts as a packet without a route. Connections within the sandbox do not.
"""

from handrail.kernel.sandbox.supervisor_link import Link

NAME_SERVER = b"nameserver 192.0.2.1\n"
"""An address for documentation, which leads nowhere: without it, lookups would go to the sandbox's own loopback."""
LOCAL_HOSTS = b"127.0.0.1 localhost sandbox\n::1 localhost\n"
"""Knows the sandbox's own name: a program that only asks for it does not try to reach the network."""


class NetworkAttempts:
    """Compares the counters of a sandbox before a command with those after it."""

    def __init__(self, link: Link, before: int | None) -> None:
        self._link, self._before = link, before

    def made(self) -> bool | None:
        """Return whether something tried to reach the network since; None if that is not known."""
        after = unrouted(self._link)
        return None if after is None or self._before is None else after > self._before


def unrouted(link: Link) -> int | None:
    """Return how many packets found no route in a sandbox; None if the sandbox has ended."""
    process = link.first_process
    if process is None:
        return None
    try:
        with open(f"/proc/{process}/net/snmp", "rb") as file:
            names, values = (line.split() for line in file.readlines()[:2])
        count = int(values[names.index(b"OutNoRoutes")])
        return count + _unrouted_version_6(process)
    except (OSError, ValueError):  # the process has ended, or the kernel has no such counter
        return None


def _unrouted_version_6(process: int) -> int:
    try:
        with open(f"/proc/{process}/net/snmp6", "rb") as file:
            pairs = (line.split() for line in file)
            return next((int(value) for name, value in pairs if name == b"Ip6OutNoRoutes"), 0)
    except FileNotFoundError:  # a kernel without version 6
        return 0
