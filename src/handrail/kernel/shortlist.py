"""The files that a find answers with: the first ones in order are kept, the others are only counted."""

import os
from heapq import nsmallest

from handrail.kernel.query import FindRequest, FindResult, Named, Skipped


class Shortlist:
    def __init__(self, dir_fd: int, request: FindRequest, skipped: Skipped) -> None:
        self._dir_fd, self._request, self._skipped = dir_fd, request, skipped
        self._kept: list[tuple[int, str]] = []
        self._deep: set[str] = set()
        self.total = 0

    def add(self, paths: list[str]) -> None:
        depth = self._request.scope.max_depth
        if depth is not None:
            self._deep.update("/".join(path.split("/")[:depth]) for path in paths if path.count("/") >= depth)
            paths = [path for path in paths if path.count("/") < depth]
        self.total += len(paths)
        self._kept += [(self._rank(path), path) for path in paths]
        if len(self._kept) > 4 * self._request.limit + 1000:
            self._kept = nsmallest(self._request.limit, self._kept)

    def _rank(self, path: str) -> int:
        """Newer files come before older ones; where the path alone decides, all are equal."""
        if self._request.sort == "path":
            return 0
        try:
            return -os.stat(path, dir_fd=self._dir_fd, follow_symlinks=False).st_mtime_ns
        except OSError:  # gone since it was listed, or too deep to name
            return 0

    def result(self, engine: str, *, complete: bool, unreadable: Named) -> FindResult:
        files = [path for _, path in nsmallest(self._request.limit, self._kept)]
        for path in self._deep:
            self._skipped.too_deep.add(path)
        self._skipped.unreadable = unreadable
        return FindResult(files, self.total, self._skipped.settle(), engine, complete)
