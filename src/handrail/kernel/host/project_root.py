"""Finds the workspace of a command: upwards from the current directory, and never the home of the user."""

import os
import stat
from collections.abc import Iterator
from itertools import takewhile
from typing import Literal, NamedTuple

from handrail.kernel.fs.trusted_paths import account_home
from handrail.ops.glob.guarded_names import OWN_FILES

MARKERS = (OWN_FILES[0], ".git")
"""The names that make a directory a workspace, the strongest first."""
_PUBLIC = stat.S_IWOTH | stat.S_ISVTX
"""The mode of directories such as /tmp, where every user may put a marker."""


class FoundRoot(NamedTuple):
    """Holds the root that was chosen, and the marker that decided."""

    path: str
    """`.` for the current directory."""
    marker: str = ""
    """Empty if no marker was found and the current directory was chosen."""


class RootRefused(Exception):  # noqa: N818  the surface words it for the user
    """Says why a directory that the user did not name cannot be the workspace."""

    def __init__(self, path: str, why: Literal["gone", "home", "other_user"]) -> None:
        super().__init__(path, why)
        self.path, self.why = path, why


def place_in(root: str) -> str:
    """Return the current directory relative to a root; `.` if it lies outside."""
    place = os.path.relpath(os.path.realpath("."), os.path.realpath(root))
    return "." if place.split("/")[0] == ".." else place


def find_root() -> FoundRoot:
    """Return the nearest directory with a `.handrail.toml`, else with a `.git`, else the current directory.

    The search ends below the home directory, a directory of another user and a public one such as /tmp. Markers of
    other users do not count.
    """
    try:
        here = os.getcwd()
    except FileNotFoundError:
        raise RootRefused(".", "gone") from None
    refuse_root(here)
    homes, user = _homes_and_above(), os.geteuid()

    def is_allowed(directory: str) -> bool:
        return _owner(directory) == user and _identity(directory) not in homes and not _is_public(directory)

    candidates = [here, *takewhile(is_allowed, _above(here))]
    for marker in MARKERS:
        for directory in candidates:
            if _owner(os.path.join(directory, marker)) == user:
                return FoundRoot("." if directory == here else directory, marker)
    return FoundRoot(".")


def refuse_root(directory: str) -> None:
    """Raise RootRefused for a home directory, a directory above one, a directory of another user, and a missing one."""
    real = os.path.realpath(directory)
    if (identity := _identity(real)) is None:
        raise RootRefused(directory, "gone")
    if identity in _homes_and_above():
        raise RootRefused(directory, "home")
    if _owner(real) != os.geteuid():
        raise RootRefused(directory, "other_user")


def _above(directory: str) -> Iterator[str]:
    while (parent := os.path.dirname(directory)) != directory:
        yield (directory := parent)


def _homes_and_above() -> set[tuple[int, int] | None]:
    """Return the identities of the home in HOME, of the account's home, and of every directory above them."""
    homes = {os.path.realpath(home) for home in (os.environ.get("HOME", ""), account_home()) if os.path.isabs(home)}
    return {_identity(directory) for home in homes for directory in (home, *_above(home))} - {None}


def _identity(path: str) -> tuple[int, int] | None:
    found = _lstat(path)
    return (found.st_dev, found.st_ino) if found else None


def _owner(path: str) -> int | None:
    found = _lstat(path)
    return found.st_uid if found else None


def _is_public(directory: str) -> bool:
    found = _lstat(directory)
    return found is not None and found.st_mode & _PUBLIC == _PUBLIC


def _lstat(path: str) -> os.stat_result | None:
    """Return the status of the path itself, not of its target: a link of another user must not count as our own."""
    try:
        return os.lstat(path)
    except OSError:
        return None


def sibling_directories(path: str) -> list[str]:
    """Return the names of the directories beside a path, to suggest one to a user who mistyped it."""
    try:
        with os.scandir(os.path.dirname(os.path.abspath(path))) as entries:
            return [each.name for each in entries if each.is_dir()]
    except OSError:
        return []
