"""Searches for one call, from a directory in the workspace, without protected files."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.kernel.search.ranking import RankRequest, RankResult
from handrail.model.faults import NoEngine
from handrail.model.files import FileEntry
from handrail.model.warnings import (
    AllHidden,
    DepthReached,
    FileSkipped,
    LinesCut,
    MoreFilesSkipped,
    Note,
    SearchIncomplete,
)
from handrail.ops.search.results import FindResult, SearchResult
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest

if TYPE_CHECKING:
    from handrail.runtime.call import Call


class Finder:
    """Searches by content, by name and by relevance, and adds warnings about skipped files to the call."""

    def __init__(self, call: "Call") -> None:
        self._call, self._services = call, call.session.services

    def search(self, directory: str, request: SearchRequest) -> SearchResult:
        """Return the lines that match."""
        with self._opened(directory) as fd:
            within = request._replace(scope=self._permitted(request.scope, directory))
            result = self._services.searcher.search(fd, within, self._call.cancel)
        self._call.metadata["engine"] = result.engine
        self._call.warnings += _notes(result)
        return result

    def find(self, directory: str, request: FindRequest) -> FindResult:
        """Return the files whose names match."""
        with self._opened(directory) as fd:
            within = request._replace(scope=self._permitted(request.scope, directory))
            result = self._services.searcher.find(fd, within, self._call.cancel)
        self._call.warnings += _notes(result)
        return result

    def beneath_root(self, glob: str) -> str | None:
        """Return an absolute glob relative to the root; None if it is relative, or does not begin with the root."""
        return self._services.boundary.beneath(glob)

    def rank(self, directory: str, request: RankRequest) -> RankResult:
        """Return the files that fit a query best."""
        with self._opened(directory) as fd:
            within = request._replace(scope=self._permitted(request.scope, directory))
            result = self._services.searcher.rank(fd, within, self._call.cancel)
        self._call.metadata["engine"] = result.engine
        self._call.warnings += _notes(result)
        return result

    def entries(self, directory: str, pattern: str) -> list[FileEntry]:
        """Return the files that a glob matches, with size and time; without a slash, those of the directory only."""
        scope = self._permitted(Scope((pattern,), anywhere=False), directory)
        request = FindRequest(scope, limit=self._call.limits.listed_files)
        with self._opened(directory) as fd:
            result = self._services.searcher.find(fd, request, self._call.cancel)
            self._call.warnings += _notes(result)
            return [entry for name in result.files if (entry := self._services.reader.entry_at(fd, name))]

    def _permitted(self, scope: Scope, directory: str) -> Scope:
        """Return the scope without protected files, and with ignored files if the settings say so."""
        if not self._services.powers.ignore_files:
            scope = scope.unhidden()
        protected = self._services.boundary.protected
        if protected is None:
            return scope
        stem = self._call.files.stem(directory)
        return replace(scope, protected=lambda path: protected.hides(stem + path))

    @contextmanager
    def _opened(self, directory: str) -> Iterator[int]:
        with self._services.boundary.directory(directory) as fd:
            if self._services.searcher.engine.name == "builtin" and not self._services.powers.builtin_search:
                raise NoEngine
            yield fd


def _notes(result: SearchResult | FindResult | RankResult) -> Iterator[Note]:
    """Yield warnings about what a search skipped, and why it may be incomplete."""
    skipped = result.skipped
    for why in ("too_large", "unreadable", "abandoned", "rules"):
        named = getattr(skipped, why)
        yield from (FileSkipped(name, why) for name in named.names)
        if named.count > len(named.names):
            yield MoreFilesSkipped(named.count - len(named.names), why)
    if skipped.too_deep.count:
        yield DepthReached(skipped.too_deep.count, skipped.too_deep.names)
    if not result.complete:
        yield SearchIncomplete()
    if not isinstance(result, RankResult) and result.all_hidden:
        yield AllHidden()
    if isinstance(result, SearchResult) and (cut := sum(match.cut for match in result.matches)):
        yield LinesCut(cut)
