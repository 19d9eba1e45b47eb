"""Rights that one command may have beyond the sandbox of its session."""

from collections.abc import Iterable
from typing import NamedTuple

EVERY_HOST = "*"
"""In place of a host: every host with a public address."""


class Rights(NamedTuple):
    """Holds what one command may do beyond the sandbox. False if there is nothing."""

    hosts: tuple[str, ...] = ()
    """Hosts to reach, as in the setting `network`."""
    read: tuple[str, ...] = ()
    """Paths outside the workspace to read."""
    write: tuple[str, ...] = ()
    """Paths outside the workspace to read and change."""
    guarded: tuple[str, ...] = ()
    """Guarded names in the workspace to change."""

    def __bool__(self) -> bool:
        return any((self.hosts, self.read, self.write, self.guarded))

    @property
    def words(self) -> tuple[str, ...]:
        """The rights as a question shows them and as a rule names them: `network HOST`, `read PATH`, `write PATH`."""
        kinds = (("network", self.hosts), ("read", self.read), ("write", (*self.write, *self.guarded)))
        return tuple(f"{kind} {each}" for kind, listed in kinds for each in listed)


def parse_rights(words: Iterable[str]) -> Rights:
    """Return the rights that a rule names. Raises ValueError for other words; a rule cannot name guarded names."""
    found: dict[str, list[str]] = {"network": [], "read": [], "write": []}
    for each in words:
        kind, _, what = each.partition(" ")
        if kind not in found or not what or (kind != "network" and not what.startswith("/")):
            raise ValueError(f"{each!r} is not a right: write `network HOST`, `read /PATH` or `write /PATH`")
        found[kind].append(what)
    return Rights(*map(tuple, found.values()))
