"""Resolves paths that the user configured, and rejects every path that an agent could redirect."""

import os
import pwd
import stat
from collections.abc import Iterable

from handrail.model.limits import Limits

_LINKS = Limits().links


def resolved(path: str, agents: tuple[str, ...]) -> str | None:
    """Return an absolute path with links resolved; None if it does not exist or a name on the way lies in `agents`.

    `agents` are the directories that commands can write: a command could have created, renamed or linked any name
    there, so no such name is trusted.
    """
    place, rest, links = "/", path.split("/")[::-1], 0
    while rest:
        name = rest.pop()
        if name in ("", ".", ".."):
            place = os.path.dirname(place) if name == ".." else place
            continue
        if in_any(place, agents):
            return None
        entry = os.path.join(place, name)
        try:
            target = os.readlink(entry) if stat.S_ISLNK(os.lstat(entry).st_mode) else None
        except OSError:
            return None
        if target is None:
            place = entry
            continue
        links += 1
        if links > _LINKS:
            return None
        place = "/" if target.startswith("/") else place
        rest += target.split("/")[::-1]
    return place


def in_any(path: str, directories: Iterable[str]) -> bool:
    """Return whether a path is one of the directories, or lies in one of them."""
    return f"{path}/".startswith(tuple(f"{directory.rstrip('/')}/" for directory in directories))


def agents_directories(root: str, writable: Iterable[str]) -> tuple[str, ...]:
    """Return the directories that commands can write, links resolved."""
    return tuple(map(os.path.realpath, (root, *writable)))


def account_home() -> str:
    """Return the home directory in the account of the user; empty if the user has no account, as in a container."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""
