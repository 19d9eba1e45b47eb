"""Makes the Landlock rules of the level `reduced`, which `inside/confine.py` applies.

Landlock only grants rights: a rule for a directory can have no exception inside it.
"""

import errno
import itertools
import os
import platform
from typing import Any

from handrail.kernel.sandbox import seccomp
from handrail.kernel.sandbox.helpers.landlock_exec import abi
from handrail.kernel.sandbox.view import visible_paths
from handrail.kernel.sandbox.view.command_user import identity
from handrail.kernel.sandbox.view.workspace_view import WorkspaceView

LOWEST_ABI = 3  # the first version that can forbid to truncate files

EXECUTE, WRITE, READ, LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TRUNCATE, IOCTL = 1 << 14, 1 << 15
ALL_RIGHTS = {3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
SCOPES_SINCE, ABSTRACT_SOCKETS_AND_SIGNALS = 6, 3

DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")


def options(view: WorkspaceView, private: str) -> dict[str, Any]:
    """Return the options for `confine.main`; rules are (handle or path, rights).

    `private` is the directory for temporary files and home. Raises OSError if the kernel's Landlock is too old.
    """
    version = abi()
    if version < LOWEST_ABI:
        raise OSError(errno.ENOSYS, "the kernel has no Landlock, or too old a one")
    everything = ALL_RIGHTS[min(version, 5)]
    read_and_run = EXECUTE | READ | LIST
    use_device = (READ | WRITE | LIST | TRUNCATE | IOCTL) & everything
    user = identity(view.root_fd).drop_to
    system = [
        *(name for name, target in visible_paths.system_directories() if not target),
        *itertools.chain(*visible_paths.etc_names(network=view.network)),
        "/proc",
        *(f"/etc/{name}" for name in ("passwd", "group", "hosts")),
    ]
    shown = [*((path, path) for path in system), *view.toolchains(), *view.trusted(view.settings.readable)]
    writable = visible_paths.within_reach(view.trusted(view.settings.writable), user)
    rules: list[tuple[int | str, int]] = [(real, read_and_run) for _, real in visible_paths.within_reach(shown, user)]
    rules += [(f"/dev/{name}", use_device) for name in DEVICES if os.path.exists(f"/dev/{name}")]
    rules += [(view.root_fd, everything)]
    rules += [(path, everything) for path in (private, *(real for _, real in writable))]
    families = (seccomp.UNIX, seccomp.INET, seccomp.INET6, seccomp.NETLINK) if view.network else (seccomp.NETLINK,)
    return {
        "rights": everything,
        "scopes": ABSTRACT_SOCKETS_AND_SIGNALS if version >= SCOPES_SINCE else 0,
        "rules": rules,
        "filter": seccomp.assemble(platform.machine(), families),
    }
