"""Level `reduced`, our side: what `confine.py` is told to allow. Landlock grants; it has no exceptions."""

import errno
import itertools
import os
import platform
from typing import Any

from handrail.kernel.sandbox import seccomp
from handrail.kernel.sandbox.landlock_exec import abi
from handrail.kernel.sandbox.launch import WorkspaceView, identity
from handrail.kernel.sandbox.view import visible_paths

LOWEST_ABI = 3  # the first that can refuse to truncate

EXECUTE, WRITE, READ, LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL = 1 << 14, 1 << 15
ALL_RIGHTS = {3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
SCOPES_SINCE, ABSTRACT_SOCKETS_AND_SIGNALS = 6, 3

DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


def options(place: WorkspaceView, private: str) -> dict[str, Any]:
    """Rules as (handle or path, rights). `private` is the directory for temporary files and home."""
    version = abi()
    if version < LOWEST_ABI:
        raise OSError(errno.ENOSYS, "the kernel has no Landlock, or too old a one")
    everything = ALL_RIGHTS[min(version, 5)]
    look = EXECUTE | READ | LIST
    use = (READ | WRITE | LIST | TRUNCATE | IOCTL) & everything
    who = identity(place.root_fd).drop_to
    system = [
        *(name for name, target in visible_paths.system_directories() if not target),
        *itertools.chain(*visible_paths.etc_names(network=place.network)),
        "/proc",
        *(f"/etc/{name}" for name in ("passwd", "group", "hosts")),
    ]
    shown = [*((path, path) for path in system), *place.toolchains(), *place.led(place.settings.readable)]
    writable = visible_paths.within_reach(place.led(place.settings.writable), who)
    rules: list[tuple[int | str, int]] = [(real, look) for _, real in visible_paths.within_reach(shown, who)]
    rules += [(f"/dev/{name}", use) for name in DEVICES if os.path.exists(f"/dev/{name}")]
    rules += [(place.root_fd, everything)]
    rules += [(path, everything) for path in (private, *(real for _, real in writable))]
    families = (seccomp.UNIX, seccomp.INET, seccomp.INET6, seccomp.NETLINK) if place.network else (seccomp.NETLINK,)
    return {
        "rights": everything,
        "scopes": ABSTRACT_SOCKETS_AND_SIGNALS if version >= SCOPES_SINCE else 0,
        "rules": rules,
        "filter": seccomp.assemble(platform.machine(), families),
    }
