"""Rejects protected files, which no tool may reach: by name, by resolved path, and by identity.

The name is enough for most files. Identity is for files that also have another name: hard links, targets of protected
links, and files that were moved away from a protected path, in this session or an earlier one. Handrail scans the
whole tree from time to time to find them.
"""

import os
import stat
import threading
import time
from itertools import islice
from typing import TYPE_CHECKING

from handrail.kernel.fs.protection_scan import Identity, ProtectedNames, ProtectedNode, ProtectionScan, with_parents
from handrail.kernel.fs.resolver import place_of
from handrail.model.faults import ProtectedPath, SandboxUnavailable
from handrail.model.limits import Limits
from handrail.ops.glob.guarded_names import folded_path
from handrail.ops.glob.protected_names import Protection

if TYPE_CHECKING:
    from handrail.kernel.host.remembered_files import RememberedFiles

OWN_RULE = "Handrail's own files"
_DELETED = " (deleted)"
"""The text that Linux adds to the path of an open file whose name was deleted."""
_REUSE_FACTOR = 20
"""A scan result is reused for at least this many times the time that the scan took."""


class ProtectedFiles:
    """Knows the protected files of a workspace; rejects paths and files that are protected."""

    def __init__(
        self,
        root_fd: int,
        protection: Protection,
        limits: Limits,
        own: tuple[str, ...] = (),
        remembered: "RememberedFiles | None" = None,
    ) -> None:
        """`own` are paths in the root with Handrail's own files: a tool that could write there could approve calls."""
        self._root_fd, self._protection, self._limits = root_fd, protection, limits
        self._own = tuple(f"{folded_path(place)}/" for place in own)
        self._lock = threading.Lock()
        self._latest = ProtectedNames()
        self._good_until = 0.0
        self._known: dict[int, ProtectedNode] = {}
        """Every file and directory that a scan found to be protected, by inode number."""
        self._lasting: dict[int, ProtectedNode] = {}
        """The ones of `_known` that later sessions must recognize and that still exist, as far as a scan can tell."""
        self._remembered, self._kept = remembered, dict[int, ProtectedNode]()
        self._unread = self._unwritten = ""

    @property
    def trouble(self) -> str:
        """Why Handrail may not recognize a protected file after a move; empty if it does."""
        return self._unread or self._unwritten

    def check_name(self, given: str, place: str) -> None:
        """Raise `ProtectedPath` if a name is protected, whether or not the file exists."""
        rule = self._rule_for(place)
        if rule:
            raise ProtectedPath(given, rule)

    def _rule_for(self, place: str) -> str:
        if self._own and f"{folded_path(place)}/".startswith(self._own):
            return OWN_RULE
        rule = self._protection.rule_for(place)
        if rule or not (unnamed := self._scanned().unnamed):
            return rule
        return next((unnamed[each] for each in with_parents(place) if each in unnamed), "")

    def check_file(self, given: str, found: os.stat_result) -> None:
        """Raise `ProtectedPath` if a file is protected under another name."""
        rule = self._rule_by_identity(found)
        if rule:
            raise ProtectedPath(given, rule)

    def hides(self, place: str) -> bool:
        """Return whether lists and results leave out the entry at `place` in the root."""
        if self._rule_for(place):
            return True
        if not self._known:
            return False
        try:
            found = os.stat(place, dir_fd=self._root_fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError:
            return True  # the path is too long, or access is denied: the entry may be protected
        return bool(self._rule_by_identity(found))

    def hides_handle(self, fd: int) -> bool:
        """Return whether an open file is protected: by its identity, or by the place where it is now.

        A search calls this for a file that it has read. The path of that file may have led to another file when the
        path was checked, because another process can exchange directories at any moment.
        """
        if self._rule_by_identity(os.fstat(fd)):
            return True
        place = place_of(fd, self._root_fd)
        if place is None:  # moved out of the root; without /proc, the name and the identity must be enough
            return os.path.isdir("/proc/self/fd")
        names = {place, place.removesuffix(_DELETED)}
        return any(map(self._rule_for, names))

    def _rule_by_identity(self, found: os.stat_result) -> str:
        self._scanned()
        seen = self._known.get(found.st_ino)
        if seen is None or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            return ""
        if seen.is_still(found):
            return seen.rule  # under any name
        # The file has changed: a process edited it, or a new file has the inode number of a deleted one.
        fresh = self._scanned(fresh=True)
        now = fresh.lasting.get(found.st_ino) or fresh.files.get(found.st_ino)
        if now is None:
            self._known.pop(found.st_ino, None)
        return now.rule if now else ""

    def masks(self) -> dict[str, Identity]:
        """Return all protected names that exist now, and all other names of these files, for a sandbox to cover."""
        names = self._scanned(fresh=True)
        if names.missing and names.unreadable:
            where = ", ".join(names.unreadable[:3])
            why = [f"protected files may be in {where}, which cannot be read"]
            raise SandboxUnavailable("strict", why, "unreadable")
        if names.missing and names.too_deep:
            why = [f"protected files may be in {names.too_deep[0][:200]}…, which lies too deep to be covered"]
            raise SandboxUnavailable("strict", why, "too_deep")
        return dict(names.masks)

    def _scanned(self, *, fresh: bool = False) -> ProtectedNames:
        """Return the last scan result; scan again if it is too old, or with `fresh`."""
        with self._lock:
            started = time.monotonic()
            if not self._protection:
                return self._latest
            if fresh or started > self._good_until:
                if not self._good_until:
                    self._recall()
                self._latest = ProtectionScan(self._root_fd, self._protection, self._known, self._lasting).run()
                self._learn(self._latest)
                ended = time.monotonic()
                self._good_until = ended + max(self._limits.protect_seconds, _REUSE_FACTOR * (ended - started))
            return self._latest

    def _recall(self) -> None:
        """Load the files that earlier sessions knew; leave out those that no rule protects now."""
        try:
            kept = self._remembered.read() if self._remembered else {}
        except (OSError, ValueError) as error:
            self._unread = f"the list from earlier sessions is lost: {error}"
            return
        self._kept = {number: seen for number, seen in kept.items() if self._protection.has(seen.rule)}
        self._lasting = dict(self._kept)
        self._known |= self._kept

    def _learn(self, found: ProtectedNames) -> None:
        """Add the files of a scan to the known ones, and save the changes for later sessions."""
        gone = found.missing if found.is_whole else set()
        self._known |= found.files | found.lasting
        lasting = self._to_remember(found)
        self._lasting = {number: seen for number, seen in self._lasting.items() if number not in gone} | lasting
        new = any(not seen.is_kept_as(self._kept.get(number)) for number, seen in lasting.items())
        if self._remembered is None or not (new or gone & self._kept.keys()):
            return
        try:
            self._remembered.update(lasting, gone)
        except OSError as error:
            self._unwritten = error.strerror or str(error)
        else:
            self._kept, self._unwritten = dict(self._lasting), ""

    def _to_remember(self, found: ProtectedNames) -> dict[int, ProtectedNode]:
        """Return what later sessions must recognize: the outermost names, and what is in them if there is room."""
        room = max(0, self._limits.remembered_files - len(found.lasting))
        inside = (each for each in found.files.items() if each[0] not in found.lasting)
        return dict(islice(inside, room)) | found.lasting
