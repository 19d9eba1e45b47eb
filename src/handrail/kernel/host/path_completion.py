"""Lists paths for the completion of a shell. The names are untrusted: the authors of the repository chose them."""

import os
import re
from itertools import islice

VARIABLE = "_HANDRAIL_COMPLETE"
"""The variable in which a shell says that it wants completions, and which shell it is."""
_LITERAL = re.compile(r"[\w./+@%:,=-]*")
"""A word that bash reads as it is written: it inserts a completion without quotes, so `$(x)` in a name would run."""
_MOST = 10_000
"""The most paths that are offered."""


def paths_beginning(root: str, start: str) -> list[str]:
    """Return the paths below `root` that begin with `start`, directories with a slash.

    Hidden names are listed only if the last name of `start` is not empty, and names with special characters only for
    shells that quote what they insert.
    """
    above, beginning = os.path.split(start)
    try:
        with os.scandir(os.path.join(root, above)) as entries:
            offered = (each for each in entries if each.name.startswith(beginning) and _may_be_offered(each.name))
            found = {entry.name: "/" * entry.is_dir() for entry in islice(offered, _MOST)}
    except (OSError, ValueError):
        return []
    stem = start[: len(start) - len(beginning)]
    names = [name for name in found if beginning or not name.startswith(".")]
    return [f"{stem}{name}{found[name]}" for name in sorted(names)]


def _may_be_offered(name: str) -> bool:
    in_bash = os.environ.get(VARIABLE, "").startswith("bash")
    return _LITERAL.fullmatch(name) is not None if in_bash else name.isprintable()
