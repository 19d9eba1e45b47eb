"""Redoes the commits of the log after a loss of power (`redo_log.py`). Every step can be repeated.

After a loss of power a file may have its new content, an old one, any part of either, zeros, or no name. So contents
say nothing. Times do: what the loss of power left is not newer than the last record of the file. A file that another
process changed after that is newer, and stays.
"""

import os
from collections.abc import Callable, Iterable

from handrail.kernel.fs.reader import Reader
from handrail.kernel.fs.trees import Trees
from handrail.kernel.write.intent_log import Intent
from handrail.kernel.write.recovery import Recovery
from handrail.kernel.write.redo_log import LoggedCommit, LoggedFile
from handrail.model.faults import PathFault
from handrail.model.files import Change, File, Put, Remove
from handrail.model.limits import Limits
from handrail.model.paths import quote

_PUBLISHING_NS = 2_000_000_000
"""A commit gives its files their names in this time after its record: that changes the status of the files."""
_Commit = Callable[[list[Change], list[str]], object]


class LogRecovery:
    """Brings the files of a log to the state that their last record describes."""

    def __init__(self, trees: Trees, recovery: Recovery, limits: Limits, commit: _Commit) -> None:
        self._workspace, self._recovery, self._commit = trees.workspace, recovery, commit
        self._reader = Reader(trees.workspace, limits)

    def run(self, commits: Iterable[LoggedCommit]) -> list[str]:
        """Redo all commits. Returns the files that stay as they are, because they changed later."""
        last: dict[str, tuple[LoggedFile, LoggedCommit]] = {}
        marks: dict[str, set[tuple[int, int]]] = {}
        commits = list(commits)
        for commit in commits:
            intent = Intent.of(commit.intent)
            for file, step in zip(commit.files, intent.steps, strict=True):
                last[file.target] = file, commit
                known = marks.setdefault(file.target, set())
                known.update((mark[1], mark[2]) for mark in (step.found, step.identity) if mark)
        newer = [target for target, (file, commit) in last.items() if not self._redo(file, commit, marks[target])]
        for commit in commits:
            self._recovery.finish(Intent.of(commit.intent))
        return newer

    def _redo(self, file: LoggedFile, commit: LoggedCommit, marks: set[tuple[int, int]]) -> bool:
        """Redo one file. Returns False if it stays as it is, because it changed later."""
        path = quote(file.target)
        try:
            now = self._reader.read_if_there(path)
            if (now.data if now else None) == file.data:
                return True
            if not self._is_older(path, now, commit.time_ns, marks):
                return False
            change = Put(path, file.data, now, file.mode) if file.data is not None else Remove(path, now)
            self._commit([change], [file.target])
        except PathFault:  # a directory or a link has taken its place, or it is too large to be ours
            return False
        return True

    def _is_older(self, path: str, now: File | None, time_ns: int, marks: set[tuple[int, int]]) -> bool:
        """Return whether no process changed the file after its last record."""
        if now is None:
            return self._directory_time(path) <= time_ns + _PUBLISHING_NS
        version = now.version
        untouched = version.mtime_ns <= time_ns and version.ctime_ns <= time_ns + _PUBLISHING_NS
        return untouched or (version.size, version.mtime_ns) in marks

    def _directory_time(self, path: str) -> int:
        """Return when names in the directory of a path changed; of the nearest directory that exists."""
        place = self._workspace.locate(path, follow=False, future=True)
        try:
            return os.fstat(place.dir_fd).st_mtime_ns
        finally:
            place.close()
