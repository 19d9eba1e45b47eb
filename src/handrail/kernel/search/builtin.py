"""Searches without ripgrep, with the same results: the built-in engine."""

import errno
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from handrail.kernel.deadline import Deadline
from handrail.kernel.fs.small_files import FILE, open_file
from handrail.kernel.search.first_files import FirstFiles
from handrail.kernel.search.walk import Walk
from handrail.model.limits import Limits
from handrail.model.record import record
from handrail.ops.search.excerpt import excerpt
from handrail.ops.search.matcher import Hits, LineMatcher
from handrail.ops.search.regex import Pattern
from handrail.ops.search.results import Counts, FindResult, Match, SearchResult, Skipped
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest
from handrail.ops.text.encoding import is_utf_16, to_utf_8

if TYPE_CHECKING:
    from handrail.ops.search.multiline import SpanMatcher

_FIRST_READ = 64 * 1024
_BATCH = 1000
_GONE = {errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EISDIR}


class Searched(NamedTuple):
    """Holds the content of one file and its matching lines."""

    path: str
    data: bytes
    hits: Hits


@record
class _Pass:
    """Reads all files in scope once and counts what was searched and skipped."""

    scope: Scope
    matcher: "LineMatcher | SpanMatcher"
    deadline: Deadline
    limits: Limits
    skipped: Skipped
    searched: int = 0
    complete: bool = True

    def files(self, dir_fd: int, budget: "LineBudget") -> Iterator[Searched]:
        """Yield the files with matches, in path order. `budget` holds how many lines of the next file are wanted."""
        walk = Walk(self.scope, self.deadline, self.skipped, self.limits, sizes=self.scope.max_file_bytes is not None)
        for found in walk.files(dir_fd):
            self.deadline.check_cancelled()
            if self.deadline.expired():
                break
            try:
                fd = os.open(found.name, FILE, dir_fd=found.dir_fd)
            except OSError as error:
                if error.errno not in _GONE:
                    self.skipped.unreadable.add(found.path)
                continue
            searched = self.file(fd, found.path, budget.lines)
            if searched is not None:
                yield searched
        self.complete = not self.deadline.expired()

    def named(self, dir_fd: int, paths: list[str], max_lines: int) -> Iterator[Searched]:
        """Yield those of the named files that have matches."""
        for path in paths:
            self.deadline.check_cancelled()
            if self.deadline.expired():
                break
            try:
                fd = open_file(dir_fd, path)
            except OSError:  # the file was removed after it was named
                continue
            if searched := self.file(fd, path, max_lines):
                yield searched

    def file(self, fd: int, path: str, max_lines: int) -> Searched | None:
        """Search one open file and close it.

        Return None for a file without a match, one that was skipped, or one that is protected.
        """
        try:
            data = self._read_text(fd, path)
            if data is None:
                return None
            self.searched += 1
            hits = self.matcher.hits(data, max_lines, self.limits.regex_seconds)
            return Searched(path, data, hits) if hits.total and self.scope.shows(fd) else None
        except TimeoutError:
            self.skipped.abandoned.add(path)
        except OSError:
            self.skipped.unreadable.add(path)
        finally:
            os.close(fd)
        return None

    def _read_text(self, fd: int, path: str) -> bytes | None:
        """Return the content of a file as UTF-8; None if the file is binary or too large."""
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


@record
class LineBudget:
    """Counts the lines that the caller still wants."""

    lines: int


class BuiltinEngine:
    """Implements `Engine` in Python."""

    name = "builtin"

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def _pass(self, pattern: Pattern, request: SearchRequest, deadline: Deadline) -> _Pass:
        matcher = _matcher(pattern, request)
        return _Pass(request.scope, matcher, deadline, self._limits, Skipped.none(self._limits))

    def search(self, dir_fd: int, pattern: Pattern, request: SearchRequest, deadline: Deadline) -> SearchResult:
        matches: list[Match] = []
        total = files = 0
        budget = LineBudget(request.limit)
        run = self._pass(pattern, request, deadline)
        for searched in run.files(dir_fd, budget):
            total += searched.hits.total
            files += 1
            matches += self._matches(searched, request.context)
            budget.lines = request.limit - len(matches)
            if total > request.limit and not request.exact:
                break
        number = run.searched if request.count_searched else None
        return SearchResult(matches, total, files, run.skipped, self.name, run.complete, number)

    def count(
        self,
        dir_fd: int,
        pattern: Pattern,
        request: SearchRequest,
        deadline: Deadline,
        *,
        places: list[str] | None = None,
    ) -> Counts:
        del places  # a walk of the whole tree finds them, too
        run = self._pass(pattern, request, deadline)
        lines = {searched.path: searched.hits.total for searched in run.files(dir_fd, LineBudget(0))}
        return Counts(lines, run.skipped, run.searched, run.complete)

    def lines(
        self, dir_fd: int, pattern: Pattern, request: SearchRequest, paths: list[str], deadline: Deadline
    ) -> list[Match]:
        run = self._pass(pattern, request, deadline)
        found = run.named(dir_fd, paths, request.limit)
        return [match for searched in found for match in self._matches(searched, request.context)]

    def count_in(
        self, dir_fd: int, pattern: Pattern, request: SearchRequest, paths: list[str], deadline: Deadline
    ) -> Counts:
        """Return the number of matching lines of each of these files that has one."""
        run = self._pass(pattern, request, deadline)
        lines = {searched.path: searched.hits.total for searched in run.named(dir_fd, paths, 0)}
        return Counts(lines, run.skipped, run.searched, not deadline.expired())

    def find(self, dir_fd: int, request: FindRequest, deadline: Deadline, *, any_one: bool = False) -> FindResult:
        skipped = Skipped.none(self._limits)
        first_files = FirstFiles(dir_fd, request, skipped)
        batch: list[str] = []
        scope = replace(request.scope, max_depth=None)
        walk = Walk(scope, deadline, skipped, self._limits, links=request.leads_to_file)
        for found in walk.files(dir_fd):
            batch.append(found.path)
            if any_one or len(batch) == _BATCH:
                first_files.add(batch)
                batch = []
                deadline.check_cancelled()
                if deadline.expired() or (any_one and first_files.total):
                    break
        first_files.add(batch)
        return first_files.result(self.name, complete=not deadline.expired(), unreadable=skipped.unreadable)

    def _matches(self, searched: Searched, context: int) -> Iterator[Match]:
        data, width = searched.data, self._limits.line_bytes
        for number, start, end, column in searched.hits.lines:
            content, cut = excerpt(data[start:end], column, width)
            before = tuple(excerpt(line, 0, width)[0] for line in _lines_before(data, start, context))
            after = tuple(excerpt(line, 0, width)[0] for line in _lines_after(data, end, context))
            yield Match(searched.path, number, content, before, after, cut)


def _matcher(pattern: Pattern, request: SearchRequest) -> "LineMatcher | SpanMatcher":
    if not request.multiline:
        return LineMatcher(pattern, case_sensitive=request.case_sensitive)
    from handrail.ops.search.multiline import SpanMatcher  # noqa: PLC0415  few searches span lines

    return SpanMatcher(pattern, case_sensitive=request.case_sensitive)


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
