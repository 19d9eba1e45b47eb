"""Finds what changed in a layer since the last scan, by walking only its upper directory.

Takes the place of `scanner.py` in layered workspaces. Nothing has to be read or stored before a command: until a file
changes, the lower layer has its content.
"""

import os
import stat

from handrail.kernel.fs.placeholder import SPARE, is_placeholder
from handrail.kernel.fs.resolver import O_PATH
from handrail.kernel.fs.small_files import open_file
from handrail.kernel.journal.scanner import Changed, Fingerprint, fingerprint_of
from handrail.kernel.layers.upper_entries import entries, is_whiteout
from handrail.kernel.layers.workspace_layer import WorkspaceLayer
from handrail.model.limits import Limits
from handrail.ops.glob.ignore_rules import DEFAULT_EXCLUSIONS

_NAME = O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_CTIME = 4
"""The place of the ctime in a fingerprint."""
_MARKS = (".git", "HEAD")
"""The names that make git take a directory for a repository."""


class LayerScan:
    """Knows the changes of a layer as of the last scan, and finds new ones."""

    def __init__(self, layer: WorkspaceLayer, root_fd: int, limits: Limits) -> None:
        self._layer, self._fd, self._limits = layer, root_fd, limits
        self._known: dict[str, Fingerprint | None] = {}
        """What each changed path is now; None if it is deleted."""
        self._below: set[str] | None = None
        """The repositories of the lower layers; None before the first scan."""
        self._above = set[str]()
        self.cut = False
        """True if there are more changes than the limit allows."""
        self.has_ignored = False
        self.unseen: list[str] = []
        self.too_large: list[str] = []

    @property
    def repositories(self) -> list[str]:
        """The directories that have a `.git` or may be a git directory, as of the last scan."""
        found = {*(self._below or ()), *self._above}
        return sorted(path for path in found if not path or self._now(path) is not None)

    def is_ignored(self, path: str) -> bool:  # noqa: ARG002  as the other scan
        """Return False: everything that a layer holds was changed in it."""
        return False

    def changed(self) -> Changed:
        """Scan, and return all differences from the last scan; the first time, all that the layer changed."""
        before, now = self._known, self._scan()
        if self._below is None:
            self._below = self._repositories_below()
        changed: Changed = {}
        for path in before.keys() | now.keys():
            old = before[path] if path in before else self._lower(path)
            new = now[path] if path in now else self._now(path)
            if old != new:
                changed[path] = old, new
        self._known = now
        return changed

    def content_before(self, path: str, was: Fingerprint, most: int) -> bytes | None:
        """Return what was at a path before the layer changed it: a content, or the target of a link.

        None if it is too long, if the layers below do not have that state, or if it changed after the view was mounted:
        the kernel may have shown, and the command changed, what was there before.
        """
        known = was[_CTIME] <= self._layer.mounted and self._lower(path) == was
        return self._layer.content_below(path, most) if known else None

    def close(self) -> None:
        """Do nothing: this scan holds nothing open."""

    def _scan(self) -> dict[str, Fingerprint | None]:
        now: dict[str, Fingerprint | None] = {}
        self._above, self.cut = set(), False
        with self._layer.upper() as upper:
            for path, _, hides in entries(upper, self._enters, skip_unreadable=True):
                if len(now) > self._limits.scan_files:
                    self.cut = True
                    break
                if hides:
                    now.update(dict.fromkeys(self._files_below(path)))
                if path not in self._layer.own:
                    now[path] = self._now(path)
        return now

    def _enters(self, path: str, found: os.stat_result) -> bool:
        above, _, name = path.rpartition("/")
        if name in _MARKS and not is_whiteout(found):
            self._above.add(above)
        is_directory = stat.S_ISDIR(found.st_mode)
        if path.count("/") > self._limits.scan_depth:
            self.cut = True
            return False
        left_out = name in DEFAULT_EXCLUSIONS if is_directory or is_whiteout(found) else name.startswith(SPARE)
        return not left_out and not (is_directory and is_placeholder(self._fd, path))

    def _now(self, path: str) -> Fingerprint | None:
        return _fingerprint(self._fd, path)

    def _lower(self, path: str) -> Fingerprint | None:
        return _fingerprint(self._layer.below(), path)

    def _files_below(self, path: str) -> list[str]:
        """Return every path inside a directory of the lower layers, which the layer hides."""
        return list(self._layer.walk_below(path, self._limits.scan_files, DEFAULT_EXCLUSIONS))

    def _repositories_below(self) -> set[str]:
        found = set[str]()
        for path in self._layer.walk_below("", self._limits.scan_files, DEFAULT_EXCLUSIONS, shown=True):
            above, _, name = path.rpartition("/")
            if name in _MARKS:
                found.add(above)
        return found


def _fingerprint(root_fd: int, path: str) -> Fingerprint | None:
    """Return the fingerprint of what is at a path, without following a link; None if there is nothing to record."""
    try:
        fd = open_file(root_fd, path, _NAME)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
    finally:
        os.close(fd)
    if stat.S_ISDIR(found.st_mode):
        return (found.st_mode, 0, 0, 0, 0)
    return fingerprint_of(found) if stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode) else None
