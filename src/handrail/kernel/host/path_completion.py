"""Names for a shell to complete."""

import os


def paths_beginning(root: str, start: str) -> list[str]:
    """The paths beneath a directory that begin like this, a directory with a slash; hidden ones only if meant."""
    above, beginning = os.path.split(start)
    try:
        with os.scandir(os.path.join(root, above)) as entries:
            found = {entry.name: "/" * entry.is_dir() for entry in entries}
    except (OSError, ValueError):
        return []
    stem = start[: len(start) - len(beginning)]
    names = [name for name in found if name.startswith(beginning) and (beginning or not name.startswith("."))]
    return [f"{stem}{name}{found[name]}" for name in sorted(names)]
