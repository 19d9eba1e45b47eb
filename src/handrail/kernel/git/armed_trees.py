"""Finds out what git would run in a repository that no mount guards."""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress

from handrail.kernel.git.repositories import (
    GitDirectory,
    below,
    common_of,
    is_covered,
    kind_at,
    names_in,
    place_of,
    read_plain,
)
from handrail.kernel.git.sweep import Sweep, fingerprint
from handrail.model.limits import MIB
from handrail.ops.git_names import is_plain_config

Armed = dict[str, tuple[str, str]]
"""By tree: the kind of thing that git would run in it, and its mark."""
_MISSING = ("absent", "unreachable")
_PARTS = ("HEAD", "commondir", "objects", "refs")


class ArmedTrees:
    """Reads settings, hooks and unfinished operations of the repositories in a workspace."""

    def __init__(self, root_fd: int, root: str, sweep: Sweep) -> None:
        self._root_fd, self._root, self._sweep = root_fd, root, sweep

    def among(self, trees: Iterable[str], guarded: Collection[str]) -> Armed:
        """Return the trees in which git would run something; `guarded` are the `.git` that commands cannot change."""
        found: Armed = {}
        for tree in dict.fromkeys(trees):
            armed = self._arms(tree, guarded)
            if armed is not None:
                found[tree] = armed
        return found

    def _arms(self, tree: str, guarded: Collection[str]) -> tuple[str, str] | None:
        """Return what git would run in a tree, if its `.git` is not guarded or the tree is itself a git directory."""
        dot_git = below(tree, ".git")
        kind = kind_at(self._root_fd, dot_git)
        if kind == "directory":
            return None if dot_git in guarded else self._arms_of(dot_git)
        if kind in ("file", "link"):
            place = place_of(self._root_fd, tree, self._root)
            return None if is_covered(place, guarded) else ("redirection", self._mark_of_redirection(dot_git, place))
        if kind != "absent" or tree in guarded:
            return None  # git accepts no other kind
        return self._arms_of(tree or ".") if self._looks_bare(tree or ".") else None

    def _mark_of_redirection(self, dot_git: str, place: str) -> str:
        """Return a mark for a `.git` file or link: where it leads, and what git would run there."""
        content = read_plain(self._root_fd, dot_git, MIB)
        if content is None:
            with suppress(OSError):  # not a link, or deleted meanwhile
                content = os.fsencode(os.readlink(dot_git, dir_fd=self._root_fd))
        return f"{fingerprint(content or b'')} {place} {self._arms_of(place) if place else None}"

    def _looks_bare(self, tree: str) -> bool:
        """Return whether git takes a directory without a `.git` for a repository."""
        present = {name for name in _PARTS if kind_at(self._root_fd, f"{tree}/{name}") not in _MISSING}
        return "HEAD" in present and ("commondir" in present or {"objects", "refs"} <= present)

    def _arms_of(self, directory: str, *, alone: bool = False) -> tuple[str, str] | None:
        """Return the first kind of thing that git would run in a git directory, and one mark for all of them.

        `alone` leaves out the common directory: git follows only one `commondir`.
        """
        found: list[tuple[str, str]] = []
        config = read_plain(self._root_fd, f"{directory}/config", MIB)
        if config is None and kind_at(self._root_fd, f"{directory}/config") not in _MISSING:
            found.append(("configuration", "unreadable"))
        if config is not None and not is_plain_config(config):
            found.append(("configuration", fingerprint(config)))
        if not alone and kind_at(self._root_fd, f"{directory}/commondir") not in _MISSING:
            common = common_of(self._root_fd, self._root, directory)
            found.append(("redirection", f"{common} {self._arms_of(common, alone=True) if common else None}"))
        hooks = [name for name in names_in(self._root_fd, f"{directory}/hooks") if not name.endswith(".sample")]
        if hooks or kind_at(self._root_fd, f"{directory}/hooks") in ("link", "file"):
            found.append(("hooks", _mark_of_files(self._root_fd, f"{directory}/hooks", hooks)))
        offences = [each for each in self._sweep.search([GitDirectory(directory)]) if each.why in ("link", "orders")]
        if offences:
            found.append(("orders", "".join(sorted(each.path + each.mark for each in offences))))
        return (found[0][0], "|".join(mark for _, mark in found)) if found else None


def _mark_of_files(root_fd: int, directory: str, names: list[str]) -> str:
    """Return one mark for some files: inode, size and times of each."""
    known = []
    for name in names:
        with suppress(OSError):  # deleted meanwhile
            about = os.stat(f"{directory}/{name}", dir_fd=root_fd, follow_symlinks=False)
            known.append(f"{name} {about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}")
    return "|".join(known)
