"""Keeps the directories of fleets on a node: one for each host, which nothing survives, and the cache of trees.

A host holds the lock of its directory as long as it lives. A directory whose lock is free belongs to a host that was
killed, and any process that works for a fleet on the node removes it.
"""

import fcntl
import os
import secrets
import shutil
import subprocess
import time
from contextlib import suppress

from handrail.kernel.host.state_dir import make_private, state_home
from handrail.kernel.sandbox.helpers.owner_mark import end_sandboxes

_LOCK = ".lock"
_TRIES = 50
_PAUSE_SECONDS = 0.1


def node_home(directory: str | None = None) -> str:
    """Return the directory of fleets on this node: below the one that the user named, or below the state directory."""
    place = os.path.join(os.path.abspath(directory) if directory else state_home(), "fleet", os.uname().nodename)
    make_private(place)
    return place


def new_host(node: str) -> str:
    """Make the directory of a new host, and remove those of killed ones."""
    hosts = os.path.join(node, "hosts")
    make_private(hosts)
    clear_killed(node)
    path = os.path.join(hosts, secrets.token_hex(6))
    os.mkdir(path, 0o700)
    return path


def hold(directory: str) -> int:
    """Take the lock of a host's directory; it is held until this process ends. Raises OSError if it is taken."""
    fd = os.open(directory + _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return fd


def clear_host(directory: str) -> None:
    """Remove the directory of a host that has ended, and end its sandboxes. Leave it alone if the host still lives."""
    try:
        fd = os.open(directory + _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:  # it never started, or it has removed its directory
        end_sandboxes(directory)
        remove_tree(directory)
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    else:
        end_sandboxes(directory)
        remove_tree(directory)
        with suppress(FileNotFoundError):
            os.unlink(directory + _LOCK)
    finally:
        os.close(fd)


def clear_killed(node: str) -> None:
    """Remove the directories of hosts that were killed."""
    hosts = os.path.join(node, "hosts")
    with suppress(FileNotFoundError):
        for name in os.listdir(hosts):
            if name.endswith(_LOCK):
                clear_host(os.path.join(hosts, name.removesuffix(_LOCK)))


def remove_tree(path: str) -> None:
    """Remove a directory with all that commands left in it, also what they protected from reading."""
    for _ in range(_TRIES):
        shutil.rmtree(path, ignore_errors=True)
        if not os.path.lexists(path):
            return
        # neither of them follows a link, and both work on a tree of any depth
        subprocess.run(
            ["/bin/sh", "-c", 'chmod -R u+rwX -- "$1"; rm -rf -- "$1"', "sh", path],
            check=False,
            stderr=subprocess.DEVNULL,
        )
        if not os.path.lexists(path):
            return
        time.sleep(_PAUSE_SECONDS)  # the last processes of a killed host still write


def left_over(node: str) -> list[str]:
    """Return the directories of hosts on this node, alive or killed."""
    hosts = os.path.join(node, "hosts")
    return sorted(os.listdir(hosts)) if os.path.isdir(hosts) else []


def private_directory(directory: str, name: str) -> str:
    """Make a private directory in the directory of a host."""
    path = os.path.join(directory, name)
    make_private(path)
    return path


def keep_pack(directory: str, pack: bytes) -> str:
    """Write a pack that came over the network next to the directory of its host; return the path."""
    path = os.path.join(private_directory(directory, "packs"), f"{secrets.token_hex(4)}.pack")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(pack)
    return path


class FleetPlace:
    """Holds the directory of the fleet itself, with the packs of its trees."""

    def __init__(self, directory: str | None) -> None:
        self._home = new_host(node_home(directory))
        self._lock = hold(self._home)
        self._number = 0

    def pack(self, root: str | None) -> tuple[str, str]:
        """Pack a directory, or nothing; return the content id and the file. Raises TreeError and OSError."""
        from handrail.kernel.fleet.tree_pack import TreeError, content_id, pack  # noqa: PLC0415  hosts only unpack

        self._number += 1
        target = os.path.join(self._home, f"{self._number}.pack")
        source = private_directory(self._home, "empty") if root is None else os.path.abspath(root)
        if not os.path.isdir(source):
            raise TreeError(f"{root} is not a directory")
        return content_id(pack(source, target)), target

    def close(self) -> None:
        """Remove everything."""
        os.close(self._lock)
        clear_host(self._home)
