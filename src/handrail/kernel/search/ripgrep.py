"""Searches with ripgrep at its full speed, with results in a fixed order.

ripgrep can sort only with a single thread. So ripgrep prints in any order, and this module sorts. It keeps the whole
output while that is small. If the output is large, ripgrep first counts the matches of each file, and then prints
lines only for the first files in order. This module opens those files and passes their handles to ripgrep.

If files are protected, only lines that were fetched by handle are shown: ripgrep itself opens files by path, and
another process may have exchanged a directory on that path for a protected one.
"""

import os
import re
import stat
import time
from functools import cached_property
from heapq import nsmallest
from typing import NamedTuple

from handrail.kernel.deadline import Deadline
from handrail.kernel.fs.small_files import open_file
from handrail.kernel.sandbox.helpers import landlock_exec
from handrail.kernel.sandbox.helpers.namespace_exec import NoNamespace
from handrail.kernel.search import rg_arguments, rg_output
from handrail.kernel.search.builtin import BuiltinEngine
from handrail.kernel.search.first_files import FirstFiles
from handrail.kernel.search.linked_files import linked_files
from handrail.kernel.search.long_lines import LongLines
from handrail.kernel.search.rg_process import Bounds, Run, SaidTooMuch, run_ripgrep
from handrail.kernel.search.survey import LeftOut, Surveys
from handrail.kernel.search.walk import Walk, check_ignore_files
from handrail.model.faults import InvalidPattern
from handrail.model.limits import Limits
from handrail.ops.search.excerpt import text_of
from handrail.ops.search.regex import Pattern
from handrail.ops.search.results import Counts, FindResult, Match, SearchResult, Skipped
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest

_FETCHED_AT_ONCE = 200
_LONG_SECONDS = 0.03
_MESSAGE = re.compile(r"error: (.*)|PCRE2: error compiling pattern at offset (\d+): (.*)|rg: (.*)")


class _Asked(NamedTuple):
    """Holds one question to ripgrep; `places` are the files and directories to search, None is all."""

    pattern: Pattern
    request: SearchRequest
    deadline: Deadline
    left_out: LeftOut | None = None
    """Applies the limits of the scope to what ripgrep found; None: ripgrep applies them."""
    sized: bool = True
    """True if ripgrep applies the limit of size."""
    places: list[str] | None = None

    def keep(self, paths: list[str]) -> list[str]:
        """Return the files within the limits of the scope."""
        return paths if self.left_out is None else self.left_out.keep(paths)


class Ripgrep:
    """Implements `Engine` with ripgrep processes."""

    name = "ripgrep"

    def __init__(self, path: str, limits: Limits, workspace: str) -> None:
        """`workspace` is where no bubblewrap is taken from."""
        self._path, self._limits, self._workspace = path, limits, workspace
        self.in_namespace = False
        """True from the first search on that takes long: a mount namespace costs less than Landlock then."""
        self._surveys = Surveys(limits)
        self._quiet = False
        """True if ripgrep has so much to say about what it passes over that it is not asked for it again."""

    def search(self, dir_fd: int, pattern: Pattern, request: SearchRequest, deadline: Deadline) -> SearchResult:
        asked, scope = _Asked(pattern, request, deadline), request.scope
        if not scope.has_limits:
            return self._search(dir_fd, asked)
        survey = None if request.count_searched or request.multiline else self._surveys.recall(dir_fd, scope)
        if survey is None:
            with self._surveys.made_beside(dir_fd, scope, deadline) as skipped:
                result = self._search(dir_fd, asked)
        else:
            left_out = LeftOut(dir_fd, scope)
            result = self._search(dir_fd, asked._replace(left_out=left_out, sized=survey.is_costly))
            skipped = left_out.skipped(survey, self._limits)
        result.skipped.too_large, result.skipped.too_deep = skipped.too_large, skipped.too_deep
        return result

    def _search(self, dir_fd: int, asked: "_Asked") -> SearchResult:
        result = None
        if landlock_exec.available() and not (asked.request.count_searched or asked.request.multiline):
            result = self._search_at_once(dir_fd, asked)
        return result or self._fetched(dir_fd, asked, self._count(dir_fd, asked))

    def _search_at_once(self, dir_fd: int, asked: "_Asked") -> SearchResult | None:
        """Search with one ripgrep; return None if it prints more than `search_stream_bytes`."""
        request, scope, most = asked.request, asked.request.scope, self._limits.search_stream_bytes
        argv = rg_arguments.printing_lines(asked.pattern, request, self._limits)
        told = not self._quiet and rg_arguments.tells_what_is_hidden(scope)
        try:
            run = self._over_tree(["--debug", *argv] if told else argv, dir_fd, asked, at_most=most)
        except SaidTooMuch:
            self._quiet, told = True, False
            run = self._over_tree(argv, dir_fd, asked, at_most=most)
        if run.overflow:
            return None
        self._expect_valid(asked, run, dir_fd)
        blocks = {_path(block.path): block for block in rg_output.blocks(run.output, context=request.context > 0)}
        in_scope = [(path, blocks[path]) for path in asked.keep([path for path in blocks if scope.holds(path)])]
        skipped = self._complaints(dir_fd, scope, run)
        if scope.protected_handle is not None:
            counted = Counts({path: block.matches for path, block in in_scope}, skipped, 0, run.complete)
            return self._fetched(dir_fd, asked, counted)
        matches: list[Match] = []
        for path, block in nsmallest(request.limit, in_scope, key=_path_of):
            if len(matches) >= request.limit:
                break
            lines = list(rg_output.lines(run.output, block))
            matches += self._matches(dir_fd, path, lines, request)[: request.limit - len(matches)]
        total = sum(block.matches for _, block in in_scope)
        passed_over = list(rg_output.passed_over(run.errors)) if told else None
        return SearchResult(matches, total, len(in_scope), skipped, self.name, run.complete, passed_over=passed_over)

    def _fetched(self, dir_fd: int, asked: "_Asked", counted: Counts) -> SearchResult:
        """Fetch the lines of the first files that were counted."""
        pattern, request, deadline = asked.pattern, asked.request, asked.deadline
        first, wanted = [], request.limit
        for path in nsmallest(request.limit, counted.lines):
            if wanted <= 0:
                break
            first.append(path)
            wanted -= counted.lines[path]
        matches = self.lines(dir_fd, pattern, request, first, deadline)
        if request.scope.protected_handle is not None:  # do not count what may be the lines of a protected file
            for path in {*first} - {match.path for match in matches}:
                del counted.lines[path]
        return SearchResult(
            matches[: request.limit],
            sum(counted.lines.values()),
            len(counted.lines),
            counted.skipped,
            self.name,
            counted.complete and not deadline.expired(),
            counted.files_searched if request.count_searched else None,
        )

    def count(
        self,
        dir_fd: int,
        pattern: Pattern,
        request: SearchRequest,
        deadline: Deadline,
        *,
        places: list[str] | None = None,
    ) -> Counts:
        return self._count(dir_fd, _Asked(pattern, request, deadline, places=places))

    def _count(self, dir_fd: int, asked: "_Asked") -> Counts:
        request, scope = asked.request, asked.request.scope
        if request.multiline:
            return self._count_spanning(dir_fd, asked)
        zero = ["--include-zero"] if request.count_searched else []
        argv = [*rg_arguments.matching(asked.pattern, request), "--count", *zero]
        run = self._over_tree(argv, dir_fd, asked, at_intervals=True)
        self._expect_valid(asked, run, dir_fd)
        seen = dict(rg_output.counts(run.output))
        held = scope.held(list(seen))
        if asked.places is not None and scope.max_depth is not None:  # ripgrep counts levels from each place
            held = [path for path in held if path.count("/") < scope.max_depth]
        lines = {path: seen[path] for path in asked.keep([path for path in held if seen[path]])}
        return Counts(lines, self._complaints(dir_fd, scope, run), len(held), run.complete)

    def _count_spanning(self, dir_fd: int, asked: "_Asked") -> Counts:
        """Let ripgrep name the files in which a match spans lines; the built-in engine counts the lines of those."""
        pattern, request, deadline = asked.pattern, asked.request, asked.deadline
        argv = [*rg_arguments.matching(pattern, request), "--files-with-matches"]
        run = self._over_tree(argv, dir_fd, asked, at_intervals=True)
        self._expect_valid(asked, run, dir_fd)
        named = [_path(name) for name in run.output.split(b"\0")[:-1]]
        held = sorted(request.scope.held(named))
        counted = BuiltinEngine(self._limits).count_in(dir_fd, pattern, request, held, deadline)
        complaints = self._complaints(dir_fd, request.scope, run)
        counted.skipped.unreadable = complaints.unreadable
        for path in complaints.abandoned.names:
            counted.skipped.abandoned.add(path)
        counted.complete = counted.complete and run.complete
        return counted

    def lines(
        self, dir_fd: int, pattern: Pattern, request: SearchRequest, paths: list[str], deadline: Deadline
    ) -> list[Match]:
        if request.multiline:
            return BuiltinEngine(self._limits).lines(dir_fd, pattern, request, paths, deadline)
        matches: list[Match] = []
        for start in range(0, len(paths), _FETCHED_AT_ONCE):
            matches += self._fetch(dir_fd, pattern, request, paths[start : start + _FETCHED_AT_ONCE], deadline)
        return matches

    def _fetch(
        self, dir_fd: int, pattern: Pattern, request: SearchRequest, paths: list[str], deadline: Deadline
    ) -> list[Match]:
        """Run one ripgrep on the open handles of these files."""
        handles: dict[str, int] = {}
        try:
            for path in paths:
                try:
                    handles[path] = open_file(dir_fd, path)
                except OSError:  # the file was removed after it was counted
                    continue
            names = {f"/proc/self/fd/{fd}".encode(): path for path, fd in handles.items()}
            if not names:
                return []
            argv = rg_arguments.printing_lines(pattern, request, self._limits)
            argv = [self._path, *argv, f"--max-count={request.limit}", "--", *map(os.fsdecode, names)]
            run = run_ripgrep(argv, dir_fd, Bounds(deadline, self._limits), pass_fds=tuple(handles.values()))
            by_path = {names[block.path]: block for block in rg_output.blocks(run.output, context=request.context > 0)}
            matches = []
            for path in paths:
                if path in by_path and request.scope.shows(handles[path]):
                    lines = list(rg_output.lines(run.output, by_path[path]))
                    matches += self._matches(dir_fd, path, lines, request, handles[path])[: request.limit]
            return matches
        finally:
            for fd in handles.values():
                os.close(fd)

    def find(self, dir_fd: int, request: FindRequest, deadline: Deadline, *, any_one: bool = False) -> FindResult:
        first_files = FirstFiles(dir_fd, request, Skipped.none(self._limits))
        argv = [self._path, *rg_arguments.listing(), *rg_arguments.within(request.scope)]
        rest = b""

        def take(chunk: bytes) -> bool:
            nonlocal rest
            names, _, rest = (rest + chunk).rpartition(b"\0")
            if names:
                first_files.add(request.scope.held(names.decode(errors="surrogateescape").split("\0")))
            return not (any_one and first_files.total)

        bounds = self._bounds(dir_fd, request.scope, deadline)
        with linked_files(dir_fd, request, deadline, self._limits) as linked:
            run = run_ripgrep(argv, dir_fd, bounds, take=take)
        first_files.add(linked)
        unreadable = self._complaints(dir_fd, request.scope, run).unreadable
        return first_files.result(self.name, complete=run.complete, unreadable=unreadable)

    # -- runs --------------------------------------------------------------------------------------------------------

    def _over_tree(
        self, argv: list[str], dir_fd: int, asked: "_Asked", *, at_most: int | None = None, at_intervals: bool = False
    ) -> Run:
        """Run ripgrep over the tree, or over the places that are asked for."""
        scope = asked.request.scope
        limits = rg_arguments.limits_of(scope, depth=asked.left_out is None) if asked.sized else []
        argv = [self._path, *argv, *rg_arguments.within(scope), *limits, *rg_arguments.at(asked.places)]
        began = time.monotonic()
        try:
            if self.in_namespace and (bwrap := self._bwrap) is not None:
                bounds = self._bounds(dir_fd, scope, asked.deadline)._replace(bwrap=bwrap)
                return run_ripgrep(argv, dir_fd, bounds, at_most=at_most, at_intervals=at_intervals)
        except NoNamespace:
            self._bwrap = None
        bounds = self._bounds(dir_fd, scope, asked.deadline)
        run = run_ripgrep(argv, dir_fd, bounds, at_most=at_most, at_intervals=at_intervals)
        self.in_namespace |= time.monotonic() - began > _LONG_SECONDS
        return run

    @cached_property
    def _bwrap(self) -> str | None:
        """The bubblewrap that makes the namespace; None if there is none, or if it could not make one."""
        from handrail.kernel.sandbox.find_bwrap import candidates  # noqa: PLC0415  short searches do not need it

        return next(iter(candidates(self._workspace)), None)

    def _bounds(self, dir_fd: int, scope: Scope, deadline: Deadline) -> Bounds:
        """Check the root for an ignore file on which ripgrep would hang; check below only if ripgrep hangs."""
        if not scope.ignore_files:
            return Bounds(deadline, self._limits)
        check_ignore_files(dir_fd, self._limits)
        walk = Walk(scope, deadline, Skipped.none(self._limits), self._limits, checks_ignore_files=True)
        return Bounds(deadline, self._limits, walk.files(dir_fd))

    # -- output ------------------------------------------------------------------------------------------------------

    def _matches(
        self, dir_fd: int, path: str, lines: list[rg_output.Line], request: SearchRequest, handle: int | None = None
    ) -> list[Match]:
        """Return the matches of one file with their lines of context. `handle` is the open file, if there is one."""
        long_lines = LongLines(dir_fd, path, self._limits.line_bytes, handle)
        shown = [long_lines.shown(line) for line in lines]
        numbers = [line.number for line in lines]
        matches = []
        for index, line in enumerate(lines):
            if line.is_match:
                low = index
                while low and numbers[low - 1] >= line.number - request.context:
                    low -= 1
                high = index
                while high + 1 < len(lines) and numbers[high + 1] <= line.number + request.context:
                    high += 1
                content, cut = shown[index]
                before = tuple(text for text, _ in shown[low:index])
                after = tuple(text for text, _ in shown[index + 1 : high + 1])
                matches.append(Match(path, line.number, content, before, after, cut))
        return matches

    def _complaints(self, dir_fd: int, scope: Scope, run: Run) -> Skipped:
        skipped = Skipped.none(self._limits)
        for path, about_the_pattern in rg_output.complaints(run.errors):
            if scope.protected is not None and scope.protected(path):
                continue
            if about_the_pattern:
                skipped.abandoned.add(path)
            elif not _is_readable(dir_fd, path) and (scope.holds(path) or _is_directory(dir_fd, path)):
                skipped.unreadable.add(path)
        return skipped

    def _expect_valid(self, asked: "_Asked", run: Run, dir_fd: int) -> None:
        """Raise InvalidPattern if status 2 is about the pattern, not about a file: try the pattern on no input."""
        if run.status != 2 or run.output:
            return
        pattern, request, deadline = asked.pattern, asked.request, asked.deadline
        argv = [self._path, *rg_arguments.matching(pattern, request), "--quiet", "-"]
        alone = run_ripgrep(argv, dir_fd, Bounds(deadline, self._limits))
        if alone.status == 2:
            reason, position = _reason(text_of(alone.errors), pattern)
            raise InvalidPattern("regex", pattern.given, reason, position, re.escape(pattern.given))


def _reason(message: str, pattern: Pattern) -> tuple[str, int]:
    """Return the reason in ripgrep's error message and the position in the pattern."""
    for line in reversed(message.split("\n")):
        found = _MESSAGE.search(line)
        if found:
            position = int(found[2]) - 3 if found[2] else 0
            return found[1] or found[3] or found[4], max(0, min(position, len(pattern.given)))
    return message.strip(), 0


def _path(name: bytes) -> str:
    return name.decode(errors="surrogateescape").removeprefix("./")


def _path_of(item: tuple[str, rg_output.Block]) -> str:
    return item[0]


def _is_readable(dir_fd: int, path: str) -> bool:
    """Return whether a complaint about a file is not true: the name of another file may imitate one."""
    try:
        fd = open_file(dir_fd, path)
    except OSError:
        return False
    try:
        os.listdir(fd) if stat.S_ISDIR(os.fstat(fd).st_mode) else os.read(fd, 1)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _is_directory(dir_fd: int, path: str) -> bool:
    try:
        fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError:
        return False
    os.close(fd)
    return True
