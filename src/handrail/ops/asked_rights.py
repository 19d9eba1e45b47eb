"""Compares the rights that a model asks for with those that commands have, and with those that a rule names."""

from collections.abc import Iterable
from typing import NamedTuple

from handrail.model.rights import EVERY_HOST, Rights


class HeldRights(NamedTuple):
    """Holds what all commands may do beyond the workspace."""

    level: str
    root: str
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


def missing_rights(held: HeldRights, *, network: bool, read: Iterable[str], write: Iterable[str]) -> Rights:
    """Return the rights that commands do not have."""
    if held.level == "off":
        return Rights()
    inside = (held.root, *held.writable)
    return Rights(
        hosts=(EVERY_HOST,) if network and held.level != "network" else (),
        read=tuple(path for path in read if not _below(path, (*inside, *held.readable))),
        write=tuple(path for path in write if not _below(path, inside)),
    )


def rights_by_rule(asked: Rights, named: Rights) -> Rights | None:
    """Return the rights that a rule grants for a question; None if the rule does not name all that is asked.

    If a command asks for every host, a rule grants the hosts that it names. No rule grants a guarded name.
    """
    if asked.guarded or not all(_below(path, (*named.read, *named.write)) for path in asked.read):
        return None
    if not all(_below(path, named.write) for path in asked.write):
        return None
    hosts: list[str] = []
    for host in asked.hosts:
        granted = named.hosts if host == EVERY_HOST else (host,) if _names(named.hosts, host) else ()
        if not granted:
            return None
        hosts += granted
    return asked._replace(hosts=tuple(dict.fromkeys(hosts)))


def _names(patterns: tuple[str, ...], host: str) -> bool:
    from handrail.ops.network.host_patterns import parse_pattern  # noqa: PLC0415  few calls ask for hosts

    return any(parse_pattern(each).includes(parse_pattern(host)) for each in patterns)


def _below(path: str, places: Iterable[str]) -> bool:
    """Return whether a path lies in one of these places by its name alone; `..` never does."""
    if ".." in path.split("/"):
        return False
    return not path.startswith("/") or any(
        path == place or path.startswith(f"{place.rstrip('/')}/") for place in places
    )
