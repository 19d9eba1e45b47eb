"""Lists paths for the completion of a shell."""

import os


def paths_beginning(root: str, start: str) -> list[str]:
    """Return the paths below `root` that begin with `start`, directories with a slash.

    Hidden names are listed only if the last name of `start` is not empty.
    """
    above, beginning = os.path.split(start)
    try:
        with os.scandir(os.path.join(root, above)) as entries:
            found = {entry.name: "/" * entry.is_dir() for entry in entries}
    except (OSError, ValueError):
        return []
    stem = start[: len(start) - len(beginning)]
    names = [name for name in found if name.startswith(beginning) and (beginning or not name.startswith("."))]
    return [f"{stem}{name}{found[name]}" for name in sorted(names)]
