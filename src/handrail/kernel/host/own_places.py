"""Finds Handrail's own files in the workspace, and makes temporary directories."""

import os
import sys
from contextlib import suppress

import handrail
from handrail.kernel.host.state_dir import config_home, state_home


def own_places(root: str) -> tuple[str, ...]:
    """Return Handrail's own paths in the workspace: a command that could change them could leave the sandbox."""
    return inside(root, sys.prefix, os.path.dirname(handrail.__file__), config_home(), state_home())


def make_own_directories(reachable: tuple[str, ...]) -> None:
    """Make Handrail's own directories below directories that commands can write: a sandbox can cover only what exists.

    A command that could make such a directory itself could write rules into it.
    """
    for place in (config_home(), state_home()):
        if any(inside(os.path.realpath(directory), place) for directory in reachable):
            with suppress(OSError):  # then a command of the same user cannot make it either
                os.makedirs(place, 0o700, exist_ok=True)


def inside(root: str, *places: str) -> tuple[str, ...]:
    """Return those of these paths that lie below the root, relative to the root."""
    return tuple(
        os.path.relpath(place, root)
        for place in {os.path.realpath(each) for each in places}
        if os.path.commonpath([place, root]) == root and place != root
    )


def random_token() -> str:
    """Return six random hexadecimal digits."""
    return os.urandom(3).hex()


def make_temporary_directory() -> str:
    """Make a private directory in the system's temporary directory."""
    import tempfile  # noqa: PLC0415  saves start-up time: most sessions need none

    return tempfile.mkdtemp(prefix="handrail-")


def remove_directory(path: str) -> None:
    """Remove one of Handrail's directories with its content, as far as possible; ignore errors."""
    import shutil  # noqa: PLC0415  saves start-up time: most sessions need none

    shutil.rmtree(path, ignore_errors=True)
