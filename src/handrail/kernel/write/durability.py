"""Decides what a commit waits for: syncs of its files and directories, or of the log (`redo_log.py`)."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from handrail.kernel.fs.trees import Trees
from handrail.kernel.host.state_dir import State
from handrail.kernel.write.planned_change import PlannedChange
from handrail.kernel.write.recovery import Recovery
from handrail.model.files import Change
from handrail.model.limits import Limits

if TYPE_CHECKING:
    from handrail.kernel.write.intent_log import Intent
    from handrail.kernel.write.redo_log import RedoLog

_SYNCS = {"none": (False, False), "log": (True, True), "rename": (True, False), "full": (True, True)}
"""Whether a commit syncs its files and its directories; at `log`, only a commit that the log does not take."""


class Durability:
    """Holds the level of one writer. Use it only under the lock of the workspace, except for `close`."""

    def __init__(self, trees: Trees, state: State, limits: Limits, level: str) -> None:
        self._trees, self._state, self._limits, self._level = trees, state, limits, level
        self.files, self.directories = _SYNCS[level]
        """Whether the current commit syncs its files, and its directories."""
        self._path = os.path.join(state.path, "redo.log")
        self._known_log: RedoLog | None = None
        self.changed_later: list[str] = []
        """The files that a redo after a loss of power left as they were, because they changed later."""

    @property
    def _log(self) -> "RedoLog | None":
        """The log; None if there is none. A process with another level may have made it."""
        if self._level != "log" and not os.path.exists(self._path):
            return None
        if self._known_log is None:
            from handrail.kernel.write.redo_log import RedoLog  # noqa: PLC0415  most workspaces have no log

            self._known_log = RedoLog(self._path, self._trees.workspace, self._limits.redo_log_bytes)
        return self._known_log

    def begin(self, works: Sequence[PlannedChange]) -> bool:
        """Choose the syncs of a commit. Returns whether the log takes it; if not, the log is emptied first.

        Otherwise a redo could replace the files of this commit by older ones.
        """
        log = self._log
        logged = log is not None and self._level == "log" and log.takes(works)
        if log is not None and not logged:
            log.checkpoint()
        self.files, self.directories = _SYNCS["none" if logged else self._level]
        return logged

    def append(self, intent: "Intent", works: Sequence[PlannedChange]) -> None:
        """Add a commit to the log, and wait until it is on the disk. Raises OSError."""
        if self._log is not None:
            self._log.append(intent.facts(), works)

    def end(self) -> None:
        """Empty the log when it is full, or after some time: a redo should not meet files that users work on."""
        log = self._log
        if log is not None and log.is_full:
            with suppress(OSError):  # the log keeps its records: the next commit tries again
                log.checkpoint()
        elif log is not None:
            log.checkpoint_after(self._limits.redo_log_seconds, self._checkpoint_alone)

    def _checkpoint_alone(self) -> None:
        with suppress(OSError), self._state.lock():  # a disk that fails leaves the records in the log
            self.checkpoint()

    def checkpoint(self) -> None:
        """Sync what the log holds, and empty it. Raises OSError."""
        if (log := self._log) is not None:
            log.checkpoint()

    def redo(self, recovery: Recovery, commit: Callable[[list[Change], list[str]], object]) -> None:
        """Redo the commits of the log after a loss of power. Raises OSError."""
        log = self._log
        if log is not None and log.state() == "lost":
            from handrail.kernel.write.log_recovery import LogRecovery  # noqa: PLC0415  the power rarely fails

            self.changed_later += LogRecovery(self._trees, recovery, self._limits, commit).run(log.commits())
            log.checkpoint(redone=True)

    def close(self) -> None:
        """Empty and remove the log. If the disk fails, it stays for the next open."""
        if self._known_log is not None:
            self._known_log.stop()
            with suppress(OSError), self._state.lock():
                self._known_log.remove()
