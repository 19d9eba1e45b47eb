"""Tells which program tried to reach the network, from the counters of the sandbox's own network namespace.

The namespace has no route but the one to itself, and its name server has no route either. So whatever tries to leave
it, a lookup of a name included, counts as a packet without a route. Connections within the sandbox do not.

All programs of a sandbox share the counters. So the counters are read whenever a program begins, and whenever a call
asks about one: what was counted in between belongs to the program that ran, if only one did.
"""

import threading

from handrail.kernel.sandbox.supervisor_link import Channel, Link
from handrail.model.record import record

NAME_SERVER = b"nameserver 192.0.2.1\n"
"""An address for documentation, which leads nowhere: without it, lookups would go to the sandbox's own loopback."""
LOCAL_HOSTS = b"127.0.0.1 localhost sandbox\n::1 localhost\n"
"""Knows the sandbox's own name: a program that only asks for it does not try to reach the network."""


@record
class Attempts:
    """Holds what is known about the attempts of one program."""

    counted: "NetworkAttempts"
    link: Link
    channel: Channel | None = None
    """The channel of the program; it ends when the last process of the program has ended."""
    idle: bool = False
    """True for a program that has ended, or a shell that waits for a command, without a process left behind."""
    made: bool = False
    unsure: bool = False
    """True if several programs ran when an attempt was counted."""

    @property
    def ended(self) -> bool:
        return self.channel is not None and self.channel.ended

    def take(self, *, idle: bool = False) -> bool | None:
        """Return whether the program made an attempt since the last time; None if that is not known.

        `idle` says whether the program can make none until the next time.
        """
        return self.counted.take(self, idle=idle)


class NetworkAttempts:
    """Assigns the attempts that a sandbox counts to the programs that run in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._count = 0
        self._all: list[Attempts] = []
        self._active: list[Attempts] = []
        """The programs that ran when the counters were last read."""

    def enter(self, link: Link) -> Attempts:
        """Add a program that is about to begin in a sandbox, or that has begun together with it."""
        with self._lock:
            if link is not self._link:  # a new sandbox counts from zero, and its first program may run already
                self._link, self._count, self._all, self._active = link, 0, [], []
            else:
                self._settle()
            entered = Attempts(self, link)
            self._all.append(entered)
            self._active.append(entered)
            return entered

    def take(self, attempts: Attempts, *, idle: bool = False) -> bool | None:
        """Return what `Attempts.take` returns."""
        with self._lock:
            known = attempts.link is self._link and self._settle()
            made = None if not known or (attempts.unsure and not attempts.made) else attempts.made
            attempts.made = attempts.unsure = False
            attempts.idle = idle
            self._look()
            return made

    def _settle(self) -> bool:
        """Assign what was counted since the last time. Return False if the sandbox has ended."""
        count = None if self._link is None else unrouted(self._link)
        if count is not None and count > self._count:
            self._count = count
            for each in self._active:
                if len(self._active) == 1:
                    each.made = True
                else:
                    each.unsure = True
        self._look()
        return count is not None

    def _look(self) -> None:
        """See which programs run."""
        self._all = [each for each in self._all if not each.ended]
        self._active = [each for each in self._all if not each.idle]


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
