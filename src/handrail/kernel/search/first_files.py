"""Keeps the first files of a find in order, and only counts the others."""

import os
from heapq import nsmallest

from handrail.ops.search.results import FindResult, Named, Skipped
from handrail.ops.search.scope import FindRequest


class FirstFiles:
    """Collects found paths in batches; keeps `request.limit` of them, sorted by path or by time."""

    def __init__(self, dir_fd: int, request: FindRequest, skipped: Skipped) -> None:
        self._dir_fd, self._request, self._skipped = dir_fd, request, skipped
        self._kept: list[str] = []
        self._ages: dict[str, int] = {}
        self._deep: set[str] = set()
        self.total = 0

    def add(self, paths: list[str]) -> None:
        """Count these paths and keep those that can still be among the first."""
        depth = self._request.scope.max_depth
        if depth is not None:
            self._deep.update("/".join(path.split("/")[:depth]) for path in paths if path.count("/") >= depth)
            paths = [path for path in paths if path.count("/") < depth]
        self.total += len(paths)
        self._kept += paths
        if self._request.sort == "time":
            self._ages.update((path, self._age(path)) for path in paths)
        if len(self._kept) > 4 * self._request.limit + 1000:
            self._drop_surplus()

    def _drop_surplus(self) -> None:
        ages = self._ages
        newest_first = (lambda path: (ages[path], path)) if self._request.sort == "time" else None
        self._kept = nsmallest(self._request.limit, self._kept, key=newest_first)
        self._ages = {path: ages[path] for path in self._kept} if ages else ages

    def _age(self, path: str) -> int:
        try:
            return -os.stat(path, dir_fd=self._dir_fd, follow_symlinks=False).st_mtime_ns
        except OSError:  # the file was removed after it was listed, or its path is too long
            return 0

    def result(self, engine: str, *, complete: bool, unreadable: Named) -> FindResult:
        """Return the first files in order, with the total number and the directories that were too deep."""
        self._drop_surplus()
        for path in self._deep:
            self._skipped.too_deep.add(path)
        self._skipped.unreadable = unreadable
        return FindResult(self._kept, self.total, self._skipped.settle(), engine, complete)
