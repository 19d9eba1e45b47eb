"""Files that no tool may reach: by name, by the place that a path leads to, and by identity.

A name says enough for most. Identity is for files that have another name as well: hard links, targets of protected
links, and what was moved out of a protected place, in this session or an earlier one. These are known from looking over
the whole tree from time to time.
"""

import os
import stat
import threading
import time
from typing import TYPE_CHECKING

from handrail.kernel.fs.protection_scan import Identity, ProtectedNames, ProtectedNode, ProtectionScan, with_parents
from handrail.model.faults import ProtectedPath, SandboxUnavailable
from handrail.model.limits import Limits
from handrail.ops.glob.guarded_names import folded_path
from handrail.ops.glob.protected_names import Protection

if TYPE_CHECKING:
    from handrail.kernel.host.remembered_files import RememberedFiles

OWN_RULE = "Handrail's own files"
_CALM = 20
"""How many times as long as a look takes it stays good."""


class ProtectedFiles:
    def __init__(
        self,
        root_fd: int,
        protection: Protection,
        limits: Limits,
        own: tuple[str, ...] = (),
        remembered: "RememberedFiles | None" = None,
    ) -> None:
        """`own` are places beneath the root where our own files lie: a tool that could write there could approve."""
        self._root_fd, self._protection, self._limits = root_fd, protection, limits
        self._own = tuple(f"{folded_path(place)}/" for place in own)
        self._lock = threading.Lock()
        self._latest = ProtectedNames()
        self._good_until = 0.0
        self._known: dict[int, ProtectedNode] = {}
        """Every file and directory that was ever seen to be protected, by its inode number."""
        self._lasting: dict[int, ProtectedNode] = {}
        """Those of them that are outermost and still there, as far as a look can tell."""
        self._remembered, self._kept = remembered, dict[int, ProtectedNode]()
        self._lost = self._unkept = ""

    @property
    def trouble(self) -> str:
        """Why a protected file that is moved may not be known any more; empty where it is."""
        return self._lost or self._unkept

    def check_name(self, given: str, place: str) -> None:
        """Refuse a name. Whether there is such a file is not told."""
        rule = self._rule_for(place)
        if rule:
            raise ProtectedPath(given, rule)

    def _rule_for(self, place: str) -> str:
        if self._own and f"{folded_path(place)}/".startswith(self._own):
            return OWN_RULE
        rule = self._protection.rule_for(place)
        if rule or not (unnamed := self._look().unnamed):
            return rule
        return next((unnamed[each] for each in with_parents(place) if each in unnamed), "")

    def check_file(self, given: str, found: os.stat_result) -> None:
        rule = self._rule_by_identity(found)
        if rule:
            raise ProtectedPath(given, rule)

    def hides(self, place: str) -> bool:
        """Whether what lies beneath the root at `place` is in no list and no result."""
        if self._rule_for(place):
            return True
        if not self._known:
            return False
        try:
            found = os.stat(place, dir_fd=self._root_fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError:
            return True  # too deep to name, or closed: it may be anything that is protected
        return bool(self._rule_by_identity(found))

    def _rule_by_identity(self, found: os.stat_result) -> str:
        self._look()
        seen = self._known.get(found.st_ino)
        if seen is None or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            return ""
        if seen.is_still(found):
            return seen.rule  # by whatever name
        # Changed since: the same file edited, or a new one under the number of one that is gone.
        fresh = self._look(fresh=True)
        now = fresh.lasting.get(found.st_ino) or fresh.files.get(found.st_ino)
        if now is None:
            self._known.pop(found.st_ino, None)
        return now.rule if now else ""

    def masks(self) -> dict[str, Identity]:
        """Every protected name that is there now, for a sandbox to cover; with it, all other names of such files."""
        look = self._look(fresh=True)
        if look.missing and look.blind:
            where = ", ".join(look.blind[:3])
            raise SandboxUnavailable("strict", [f"protected files may lie in {where}, which cannot be looked into"])
        return dict(look.masks)

    def _look(self, *, fresh: bool = False) -> ProtectedNames:
        with self._lock:
            started = time.monotonic()
            if not self._protection:
                return self._latest
            if fresh or started > self._good_until:
                if not self._good_until:
                    self._recall()
                self._latest = ProtectionScan(self._root_fd, self._protection, self._known, self._lasting).look()
                self._learn(self._latest)
                ended = time.monotonic()
                self._good_until = ended + max(self._limits.protect_seconds, _CALM * (ended - started))
            return self._latest

    def _recall(self) -> None:
        """Begin with what earlier sessions knew. What no rule protects any more is left alone."""
        try:
            kept = self._remembered.read() if self._remembered else {}
        except (OSError, ValueError) as error:
            self._lost = f"what earlier ones knew is lost: {error}"
            return
        self._kept = {number: seen for number, seen in kept.items() if self._protection.has(seen.rule)}
        self._lasting = dict(self._kept)
        self._known |= self._kept

    def _learn(self, look: ProtectedNames) -> None:
        gone = set() if look.blind else look.missing
        self._known |= look.files
        self._known |= look.lasting
        self._lasting = {number: seen for number, seen in self._lasting.items() if number not in gone} | look.lasting
        new = {number: seen for number, seen in look.lasting.items() if not seen.is_kept_as(self._kept.get(number))}
        if self._remembered is None or not (new or gone & self._kept.keys()):
            return
        try:
            self._remembered.update(look.lasting, gone)
        except OSError as error:
            self._unkept = error.strerror or str(error)
        else:
            self._kept, self._unkept = dict(self._lasting), ""
