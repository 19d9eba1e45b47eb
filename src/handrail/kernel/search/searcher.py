"""Searches below an open directory by content, by name or by relevance, with ripgrep or the built-in engine."""

import os
import threading
from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Literal, TypeVar

from handrail.kernel.deadline import Deadline
from handrail.kernel.sandbox.helpers.bounded_program import LimitsRefused
from handrail.kernel.search.engine import Engine, GaveUp
from handrail.kernel.search.rg_process import lies_in, program
from handrail.model.faults import NoEngine
from handrail.model.limits import LARGEST_INTEGER, Limits
from handrail.ops.search.regex import Pattern, parse, parse_literal
from handrail.ops.search.results import Counts, FindResult, Hidden, SearchResult
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest

if TYPE_CHECKING:
    from handrail.kernel.search.hidden_files import HiddenFiles
    from handrail.kernel.search.ranking import RankRequest, RankResult

EngineName = Literal["auto", "ripgrep", "builtin"]
Answer = TypeVar("Answer")


class Searcher:
    """Answers searches with one engine. `builtin` allows the built-in engine to answer if ripgrep gives up."""

    def __init__(
        self,
        limits: Limits | None = None,
        engine: EngineName = "auto",
        workspace: str | None = None,
        *,
        builtin: bool = True,
    ) -> None:
        self._limits, self._builtin = limits or Limits(), builtin
        self.engine = choose(self._limits, engine, workspace)

    def without_time(self) -> "Searcher":
        """Return a searcher that checks patterns and globs, and stops before it finds anything."""
        made = copy(self)
        made._limits = self._limits._replace(search_seconds=0, search_look_seconds=0)  # noqa: SLF001  of its own class
        return made

    def search(self, dir_fd: int, request: SearchRequest, cancel: threading.Event | None = None) -> SearchResult:
        """Return the matching lines of the files in scope."""
        pattern = pattern_of(request)
        deadline = Deadline(self._limits.search_seconds, cancel)
        result = None if request.exact else self._first_files(dir_fd, pattern, request, cancel)
        result = result or self._answer(lambda engine: engine.search(dir_fd, pattern, request, deadline))
        result.skipped.settle()
        if not result.total and result.complete:
            result.hidden = self._search_hidden(
                dir_fd, request.scope, deadline, lambda hidden: hidden.search(pattern, request, result.passed_over)
            )
        return result

    def count(self, dir_fd: int, request: SearchRequest, cancel: threading.Event | None = None) -> Counts:
        """Return the number of matching lines of every file in scope that has one."""
        pattern = pattern_of(request)
        deadline = Deadline(self._limits.search_seconds, cancel)

        def ask(engine: Engine) -> Counts:
            counted = engine.count(dir_fd, pattern, request, deadline)
            if request.scope.protected_handle is not None:  # count only what a handle shows to be unprotected
                every = request._replace(limit=LARGEST_INTEGER, context=0)
                shown = engine.lines(dir_fd, pattern, every, sorted(counted.lines), deadline)
                counted.lines = dict(Counter(match.path for match in shown))
            return counted

        counted = self._answer(ask)
        counted.skipped.settle()
        if not counted.lines and counted.complete:
            counted.hidden = self._search_hidden(
                dir_fd, request.scope, deadline, lambda look: look.search(pattern, request)
            )
        return counted

    def _first_files(
        self, dir_fd: int, pattern: Pattern, request: SearchRequest, cancel: threading.Event | None
    ) -> SearchResult | None:
        """Return the whole result if the first files have enough matches: faster than to start ripgrep."""
        seconds = self._limits.search_look_seconds
        quick = choose(self._limits._replace(regex_seconds=seconds), "builtin")
        result = quick.search(dir_fd, pattern, request, Deadline(seconds, cancel))
        doubtful = result.skipped.abandoned.count or result.skipped.too_large.count
        return result if result.truncated and not doubtful else None

    def find(
        self,
        dir_fd: int,
        request: FindRequest,
        cancel: threading.Event | None = None,
        seconds: float | None = None,
    ) -> FindResult:
        """Return the files in scope by name. With `seconds`, never look longer, and not at hidden files."""
        deadline = Deadline(self._limits.search_seconds if seconds is None else seconds, cancel)
        result = self._answer(lambda engine: engine.find(dir_fd, request, deadline))
        if seconds is None and not result.total and result.complete:
            result.hidden = self._search_hidden(dir_fd, request.scope, deadline, lambda hidden: hidden.find())
        return result

    def rank(self, dir_fd: int, request: "RankRequest", cancel: threading.Event | None = None) -> "RankResult":
        """Return the files that fit the words of a query, best first."""
        from handrail.kernel.search.ranking import FileRanking  # noqa: PLC0415  saves start-up time: few searches rank

        deadline = Deadline(self._limits.search_seconds, cancel)
        result = self._answer(lambda engine: FileRanking(engine, dir_fd, request, deadline, self._limits).result())
        if not result.total and result.complete:
            result.hidden = self._search_hidden(dir_fd, request.scope, deadline, lambda hidden: hidden.rank(request))
        return result

    def _answer(self, ask: Callable[[Engine], Answer]) -> Answer:
        """Ask the engine. If ripgrep gives up, ask the built-in engine, which has the rest of the time."""
        try:
            return ask(self.engine)
        except (GaveUp, LimitsRefused) as why:
            if not self._builtin:
                raise NoEngine from why
            return ask(choose(self._limits, "builtin"))

    def _search_hidden(
        self, dir_fd: int, scope: Scope, deadline: Deadline, ask: "Callable[[HiddenFiles], Hidden | None]"
    ) -> Hidden | None:
        """Look through what the scope hides, for `hidden_seconds` at most and never longer than the search itself."""
        from handrail.kernel.search.hidden_files import HiddenFiles  # noqa: PLC0415  only fruitless searches need it

        rest = deadline.at_most(self._limits.hidden_seconds)
        return self._answer(lambda engine: ask(HiddenFiles(engine, dir_fd, scope, rest, self._limits)))


def choose(limits: Limits, engine: EngineName = "auto", workspace: str | None = None) -> Engine:
    """Return the engine to use: the built-in one if no ripgrep is installed outside the workspace."""
    path = program() if engine != "builtin" else None
    if path is None or (workspace is not None and lies_in(workspace, path)):
        from handrail.kernel.search.builtin import BuiltinEngine  # noqa: PLC0415  saves start-up time: one of the two is enough

        return BuiltinEngine(limits)
    from handrail.kernel.search.ripgrep import Ripgrep  # noqa: PLC0415  the same

    return Ripgrep(path, limits, workspace or os.devnull)


def pattern_of(request: SearchRequest) -> Pattern:
    """Parse the pattern of a request, as a literal or as a regular expression."""
    return parse_literal(request.pattern) if request.literal else parse(request.pattern, spans_lines=request.multiline)
