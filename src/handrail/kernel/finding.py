"""Searching, as one call may use it: from a directory beneath the root, through its handle."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from handrail.faults import NoEngine
from handrail.kernel.call import Call
from handrail.kernel.query import FindRequest, FindResult, SearchRequest, SearchResult, Skipped


class Finder:
    def __init__(self, call: Call) -> None:
        self._call, self._kernel = call, call.session.kernel

    def search(self, directory: str, request: SearchRequest) -> SearchResult:
        with self._opened(directory) as fd:
            result = self._kernel.searcher.search(fd, request, self._call.cancel)
        self._call.metadata["engine"] = result.engine
        return result

    def find(self, directory: str, request: FindRequest) -> FindResult:
        with self._opened(directory) as fd:
            return self._kernel.searcher.find(fd, request, self._call.cancel)

    @contextmanager
    def _opened(self, directory: str) -> Iterator[int]:
        fd = self._kernel.boundary.open_directory(directory)
        try:
            if self._kernel.searcher.engine.name == "builtin" and not self._kernel.powers.builtin_search:
                raise NoEngine
            yield fd
        finally:
            os.close(fd)


def skipped_notes(skipped: Skipped, limits_depth: int | None) -> list[str]:
    """What a search passed over, a line each."""
    notes = []
    kinds = (
        (skipped.too_large, "larger than the size limit"),
        (skipped.unreadable, "not readable"),
        (skipped.abandoned, "abandoned: the pattern took too long"),
    )
    for named, why in kinds:
        notes += [f"Skipped {name}: {why}" for name in named.names]
        if named.count > len(named.names):
            notes.append(f"Skipped {named.count - len(named.names)} more files: {why}")
    if skipped.too_deep.count:
        depth = f" of {limits_depth} levels" if limits_depth else ""
        notes.append(f"Stopped at the depth limit{depth}: {skipped.too_deep.count} directories were not entered")
    return notes
