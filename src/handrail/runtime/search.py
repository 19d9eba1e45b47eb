"""Searches for one call, from a directory in the workspace, without protected files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.kernel.search.ranking import RankRequest, RankResult
from handrail.model.faults import NoEngine, PathFault
from handrail.model.files import FileEntry
from handrail.model.hints import AbsoluteGlob, SlashedGlob
from handrail.model.paths import is_absolute, quote
from handrail.model.warnings import (
    DepthReached,
    FileSkipped,
    HiddenMatches,
    HiddenUnsearched,
    LinesCut,
    MoreFilesSkipped,
    SearchIncomplete,
    ToolWarning,
)
from handrail.ops.glob.globs import literal_glob
from handrail.ops.search.results import Counts, FindResult, SearchResult
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest

if TYPE_CHECKING:
    from handrail.runtime.call import Call
    from handrail.runtime.session import Services


class Finder:
    """Searches by content, by name and by relevance, and adds warnings about skipped files to the call."""

    def __init__(self, call: "Call") -> None:
        self._call, self._services = call, call.session.services
        searcher = self._services.searcher
        self._searcher = searcher.without_time() if call.trial else searcher

    def search(self, directory: str, request: SearchRequest) -> SearchResult:
        """Return the lines that match."""
        with self._opened(directory) as fd:
            within = request._replace(scope=self._permitted(request.scope, directory))
            result = self._searcher.search(fd, within, self._call.cancel)
        self._call.metadata["engine"] = result.engine
        self._warn(result, directory, request.scope)
        return result

    def count(self, directory: str, request: SearchRequest) -> Counts:
        """Return the number of matching lines of every file that has one."""
        with self._opened(directory) as fd:
            within = request._replace(scope=self._permitted(request.scope, directory))
            result = self._searcher.count(fd, within, self._call.cancel)
        self._warn(result, directory, request.scope)
        return result

    def find(self, directory: str, request: FindRequest) -> FindResult:
        """Return the files whose names match."""
        with self._opened(directory) as fd:
            within = request._replace(
                scope=self._permitted(request.scope, directory), leads_to_file=self._link_test(directory)
            )
            result = self._searcher.find(fd, within, self._call.cancel)
        self._warn(result, directory, request.scope)
        return result

    def within(self, path: str) -> tuple[str, tuple[str, ...]]:
        """Return the directory to search for a path, and, if the path names a file, the glob of that file."""
        if self._services.reader.stat(path).is_directory:
            return path, ()
        directory, _, name = self._call.files.target(path).rpartition("/")
        return quote(directory) or ".", (literal_glob(name),)

    def relative_glob(self, glob: str) -> str | None:
        """Return an absolute glob relative to the root; None if it is relative, or does not lead below the root."""
        return self._services.boundary.relative_glob(glob)

    def rank(self, directory: str, request: RankRequest) -> RankResult:
        """Return the files that fit a query best."""
        with self._opened(directory) as fd:
            within = request._replace(scope=self._permitted(request.scope, directory))
            result = self._searcher.rank(fd, within, self._call.cancel)
        self._call.metadata["engine"] = result.engine
        self._warn(result, directory, request.scope)
        return result

    def entries(self, directory: str, pattern: str) -> list[FileEntry]:
        """Return the files that a glob matches, with size and time; without a slash, those of the directory only.

        Ignore files hide nothing here: a listing shows what is there.
        """
        scope = Scope((pattern,), anywhere=False, ignore_files=False)
        within = self._permitted(scope, directory)
        request = FindRequest(within, limit=self._call.limits.listed_files, leads_to_file=self._link_test(directory))
        with self._opened(directory) as fd:
            result = self._searcher.find(fd, request, self._call.cancel)
            self._warn(result, directory, scope)
            return [entry for name in result.files if (entry := self._entry(fd, directory, name))]

    def _entry(self, fd: int, directory: str, name: str) -> FileEntry | None:
        """Return the size and time of a file; of a link, those of its target; None if it was deleted."""
        entry = self._services.reader.entry_at(fd, name)
        if entry is None or entry.kind != "link":
            return entry
        with suppress(PathFault):
            return self._services.reader.stat(quote(self._call.files.stem(directory) + name))._replace(name=name)
        return None

    def _link_test(self, directory: str) -> Callable[[str], bool]:
        """Return a test whether a link in a directory leads to a file inside the root that is not protected."""
        stem, reader = self._call.files.stem(directory), self._services.reader

        def leads_to_file(path: str) -> bool:
            try:
                return reader.kind(quote(stem + path)) == "file"
            except PathFault:
                return False

        return leads_to_file

    def _warn(self, result: SearchResult | FindResult | RankResult | Counts, directory: str, scope: Scope) -> None:
        self._call.warnings += _notes(result, self._call.files.stem(directory), scope)
        if not (result.lines if isinstance(result, Counts) else result.total):
            self._call.warnings += _glob_hints(scope)
        if (hidden := result.hidden) is None:
            return
        if not hidden.count:
            self._call.warnings.append(HiddenUnsearched(self._call.limits.hidden_seconds))
            return
        what = "lines" if isinstance(result, SearchResult | Counts) else "files"
        example = quote(self._call.files.stem(directory) + hidden.example)
        self._call.warnings.append(HiddenMatches(hidden.count, what, hidden.by, example, hidden.complete))

    def _permitted(self, scope: Scope, directory: str) -> Scope:
        """Return the scope without protected files, and with globs relative to the directory."""
        absolute = any(map(is_absolute, scope.include))
        stem = self._call.files.stem(directory) if absolute or self._services.boundary.protected is not None else ""
        if absolute:
            scope = replace(scope, include=tuple(self._relative(glob, stem) for glob in scope.include))
        return permitted(scope, self._services, stem)

    def _relative(self, glob: str, stem: str) -> str:
        """Return an absolute glob below the searched directory as an anchored one; another glob as it is."""
        inside = self.relative_glob(glob)
        return f"/{inside[len(stem) :]}" if inside is not None and inside.startswith(stem) else glob

    @contextmanager
    def _opened(self, directory: str) -> Iterator[int]:
        with self._services.boundary.directory(directory) as fd:
            if self._searcher.engine.name == "builtin" and not self._services.powers.builtin_search:
                raise NoEngine
            yield fd


def _glob_hints(scope: Scope) -> Iterator[ToolWarning]:
    """Yield a hint for each glob that cannot match anything as it is written."""
    for glob in scope.include:
        if is_absolute(glob) or glob.startswith("~/"):
            yield AbsoluteGlob(glob, f"**/{glob.rpartition('/')[2] or '*'}")
        elif "\\" in glob and "/" not in glob:
            yield SlashedGlob(glob, glob.replace("\\", "/"))


def permitted(scope: Scope, services: "Services", stem: str) -> Scope:
    """Return the scope without protected files, and with ignored files if the settings say so."""
    if not services.powers.ignore_files:
        scope = scope.unhidden()
    protected = services.boundary.protected
    if protected is None:
        return scope
    return replace(scope, protected=lambda path: protected.hides(stem + path), protected_handle=protected.hides_handle)


def _notes(result: SearchResult | FindResult | RankResult | Counts, stem: str, scope: Scope) -> Iterator[ToolWarning]:
    """Yield warnings about what a search skipped, and why it may be incomplete. `stem` goes before each name."""
    skipped, limit = result.skipped, scope.max_file_bytes or 0
    for why in ("too_large", "unreadable", "abandoned", "rules"):
        named = getattr(skipped, why)
        yield from (FileSkipped(quote(stem + name), why, limit) for name in named.names)
        if named.count > len(named.names):
            yield MoreFilesSkipped(named.count - len(named.names), why, limit)
    if skipped.too_deep.count and scope.max_depth is not None:
        yield DepthReached(skipped.too_deep.count, quote(stem + skipped.too_deep.names[0]), scope.max_depth)
    if not result.complete:
        yield SearchIncomplete()
    if isinstance(result, SearchResult) and (cut := sum(match.cut for match in result.matches)):
        yield LinesCut(cut)
