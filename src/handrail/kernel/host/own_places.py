"""Says where Handrail's own files lie, and makes temporary ones."""

import os
import sys

import handrail
from handrail.kernel.host.state_dir import config_home, state_home


def own_places(root: str) -> tuple[str, ...]:
    """Return what is ours and lies in the workspace: a command that could change it would leave the sandbox."""
    return inside(root, sys.prefix, os.path.dirname(handrail.__file__), config_home(), state_home())


def inside(root: str, *places: str) -> tuple[str, ...]:
    """Return those of these places that lie below the root, relative to it."""
    return tuple(
        os.path.relpath(place, root)
        for place in {os.path.realpath(each) for each in places}
        if os.path.commonpath([place, root]) == root and place != root
    )


def random_token() -> str:
    """Return six random hexadecimal digits."""
    return os.urandom(3).hex()


def make_temporary_directory() -> str:
    """Make a private directory in the system's temporary one."""
    import tempfile  # noqa: PLC0415  most sessions need none

    return tempfile.mkdtemp(prefix="handrail-")


def remove_directory(path: str) -> None:
    """Remove a directory of ours with all that is in it; what cannot be removed stays."""
    import shutil  # noqa: PLC0415  most sessions need none

    shutil.rmtree(path, ignore_errors=True)
