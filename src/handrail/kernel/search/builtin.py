"""The built-in engine: the same answers as ripgrep's, where there is no ripgrep."""

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from handrail.kernel.fs.small_files import FILE, open_file
from handrail.kernel.search.engine import Watch
from handrail.kernel.search.first_files import Shortlist
from handrail.kernel.search.walk import Walk
from handrail.model.limits import Limits
from handrail.ops.search.excerpt import excerpt
from handrail.ops.search.matcher import Hits, LineMatcher
from handrail.ops.search.regex import Pattern
from handrail.ops.search.results import Counts, FindResult, Match, SearchResult, Skipped
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest
from handrail.ops.text.encoding import is_utf_16, to_utf_8

_FIRST_READ = 64 * 1024
_BATCH = 1000
_GONE = {errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EISDIR}


class Searched(NamedTuple):
    path: str
    data: bytes
    hits: Hits


@dataclass(slots=True)
class _Pass:
    """One pass over all files in scope."""

    scope: Scope
    matcher: LineMatcher
    watch: Watch
    limits: Limits
    skipped: Skipped
    searched: int = 0
    complete: bool = True

    def files(self, dir_fd: int, keep: "LineBudget") -> Iterator[Searched]:
        """The files with matches, in path order. `keep` says how many lines of the next one are wanted."""
        walk = Walk(self.scope, self.watch, self.skipped, self.limits, sizes=self.scope.max_file_bytes is not None)
        for found in walk.files(dir_fd):
            self.watch.check()
            if self.watch.expired():
                break
            try:
                fd = os.open(found.name, FILE, dir_fd=found.dir_fd)
            except OSError as error:
                if error.errno not in _GONE:
                    self.skipped.unreadable.add(found.path)
                continue
            searched = self.file(fd, found.path, keep.lines)
            if searched is not None:
                yield searched
        self.complete = not self.watch.expired()

    def file(self, fd: int, path: str, keep: int) -> Searched | None:
        """Search one open file, and close it."""
        try:
            data = self._text(fd, path)
        except OSError:
            self.skipped.unreadable.add(path)
            return None
        finally:
            os.close(fd)
        if data is None:
            return None
        self.searched += 1
        try:
            hits = self.matcher.hits(data, keep, self.limits.regex_seconds)
        except TimeoutError:
            self.skipped.abandoned.add(path)
            return None
        return Searched(path, data, hits) if hits.total else None

    def _text(self, fd: int, path: str) -> bytes | None:
        """What is searched of a file; None where it is binary or too large."""
        data = os.read(fd, _FIRST_READ)
        if b"\0" in data and not is_utf_16(data):
            return None
        if len(data) == _FIRST_READ:
            size = os.fstat(fd).st_size
            if size > self.limits.search_read_bytes:
                self.skipped.too_large.add(path)
                return None
            pieces = [data]
            while size > len(data) and pieces[-1]:
                pieces.append(os.read(fd, size - len(data)))
                size -= len(pieces[-1])
            data = b"".join(pieces)
        data = to_utf_8(data)
        return None if b"\0" in data else data


@dataclass(slots=True)
class LineBudget:
    lines: int


class Builtin:
    name = "builtin"

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def _pass(self, pattern: Pattern, request: SearchRequest, watch: Watch) -> _Pass:
        matcher = LineMatcher(pattern, case_sensitive=request.case_sensitive)
        return _Pass(request.scope, matcher, watch, self._limits, Skipped.none(self._limits))

    def search(self, dir_fd: int, pattern: Pattern, request: SearchRequest, watch: Watch) -> SearchResult:
        matches: list[Match] = []
        total = files = 0
        keep = LineBudget(request.limit)
        one = self._pass(pattern, request, watch)
        for searched in one.files(dir_fd, keep):
            total += searched.hits.total
            files += 1
            matches += self._matches(searched, request.context)
            keep.lines = request.limit - len(matches)
            if total > request.limit and not request.exact:
                break
        number = one.searched if request.count_searched else None
        return SearchResult(matches, total, files, one.skipped, self.name, one.complete, number)

    def count(self, dir_fd: int, pattern: Pattern, request: SearchRequest, watch: Watch) -> Counts:
        one = self._pass(pattern, request, watch)
        lines = {searched.path: searched.hits.total for searched in one.files(dir_fd, LineBudget(0))}
        return Counts(lines, one.skipped, one.searched, one.complete)

    def lines(
        self, dir_fd: int, pattern: Pattern, request: SearchRequest, paths: list[str], watch: Watch
    ) -> list[Match]:
        one = self._pass(pattern, request, watch)
        matches: list[Match] = []
        for path in paths:
            watch.check()
            if watch.expired():
                break
            try:
                fd = open_file(dir_fd, path)
            except OSError:  # it has gone since it was counted
                continue
            searched = one.file(fd, path, request.limit)
            if searched is not None:
                matches += self._matches(searched, request.context)
        return matches

    def find(self, dir_fd: int, request: FindRequest, watch: Watch, *, any_one: bool = False) -> FindResult:
        skipped = Skipped.none(self._limits)
        shortlist = Shortlist(dir_fd, request, skipped)
        batch: list[str] = []
        for found in Walk(replace(request.scope, max_depth=None), watch, skipped, self._limits).files(dir_fd):
            batch.append(found.path)
            if any_one or len(batch) == _BATCH:
                shortlist.add(batch)
                batch = []
                watch.check()
                if watch.expired() or (any_one and shortlist.total):
                    break
        shortlist.add(batch)
        return shortlist.result(self.name, complete=not watch.expired(), unreadable=skipped.unreadable)

    def _matches(self, searched: Searched, context: int) -> Iterator[Match]:
        data, width = searched.data, self._limits.line_bytes
        for number, start, end, column in searched.hits.lines:
            content, cut = excerpt(data[start:end], column, width)
            before = tuple(excerpt(line, 0, width)[0] for line in _lines_before(data, start, context))
            after = tuple(excerpt(line, 0, width)[0] for line in _lines_after(data, end, context))
            yield Match(searched.path, number, content, before, after, cut)


def _lines_before(data: bytes, start: int, count: int) -> list[bytes]:
    lines: list[bytes] = []
    while start and len(lines) < count:
        end = start - 1
        start = data.rfind(b"\n", 0, end) + 1
        lines.append(data[start:end])
    return lines[::-1]


def _lines_after(data: bytes, end: int, count: int) -> list[bytes]:
    lines: list[bytes] = []
    while end + 1 < len(data) and len(lines) < count:
        start = end + 1
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        lines.append(data[start:end])
    return lines
