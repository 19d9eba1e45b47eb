"""Compares the rights that a model asks for with those that commands have."""

from collections.abc import Iterable
from typing import NamedTuple


class Rights(NamedTuple):
    """Holds what commands may do beyond the workspace."""

    level: str
    root: str
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()


def missing_rights(rights: Rights, *, network: bool, read: Iterable[str], write: Iterable[str]) -> list[str]:
    """Return the rights that commands do not have: `network`, `read PATH`, `write PATH`."""
    if rights.level == "off":
        return []
    inside = (rights.root, *rights.writable)
    missing = ["network"] if network and rights.level != "network" else []
    missing += [f"read {path}" for path in read if not _below(path, (*inside, *rights.readable))]
    return missing + [f"write {path}" for path in write if not _below(path, inside)]


def _below(path: str, places: Iterable[str]) -> bool:
    """Return whether a path lies in one of these places by its name alone; `..` never does."""
    if ".." in path.split("/"):
        return False
    return not path.startswith("/") or any(
        path == place or path.startswith(f"{place.rstrip('/')}/") for place in places
    )
