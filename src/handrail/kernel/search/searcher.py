"""Searching beneath an open directory: by content, by name, by relevance. One question, two engines, one answer."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeVar

from handrail.kernel.sandbox.landlock_exec import LimitsRefused
from handrail.kernel.search.engine import Engine, GaveUp, Watch
from handrail.kernel.search.rg_process import lies_in, program
from handrail.model.faults import NoEngine
from handrail.model.limits import Limits
from handrail.ops.search.regex import Pattern, parse, parse_literal
from handrail.ops.search.results import FindResult, SearchResult
from handrail.ops.search.scope import FindRequest, SearchRequest

if TYPE_CHECKING:
    from handrail.kernel.search.ranking import RankRequest, RankResult

EngineName = Literal["auto", "ripgrep", "builtin"]
Answer = TypeVar("Answer")


class Searcher:
    """`builtin`: whether the built-in engine may answer where ripgrep gives up."""

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

    def search(self, dir_fd: int, request: SearchRequest, cancel: threading.Event | None = None) -> SearchResult:
        pattern = pattern_of(request)
        watch = Watch.starting_now(self._limits.search_seconds, cancel)
        result = None if request.exact else self._first_files(dir_fd, pattern, request, cancel)
        result = result or self._answer(lambda engine: engine.search(dir_fd, pattern, request, watch))
        result.skipped.settle()
        if not result.total and result.complete:
            result.all_hidden = self._all_hidden(dir_fd, FindRequest(request.scope, limit=1), watch)
        return result

    def _first_files(
        self, dir_fd: int, pattern: Pattern, request: SearchRequest, cancel: threading.Event | None
    ) -> SearchResult | None:
        """The whole answer, if the first files in order hold enough for it: it is there before a process starts."""
        seconds = self._limits.search_look_seconds
        quick = choose(self._limits._replace(regex_seconds=seconds), "builtin")
        result = quick.search(dir_fd, pattern, request, Watch.starting_now(seconds, cancel))
        doubtful = result.skipped.abandoned.count or result.skipped.too_large.count
        return result if result.truncated and not doubtful else None

    def find(self, dir_fd: int, request: FindRequest, cancel: threading.Event | None = None) -> FindResult:
        watch = Watch.starting_now(self._limits.search_seconds, cancel)
        result = self._answer(lambda engine: engine.find(dir_fd, request, watch))
        if not result.total and result.complete:
            result.all_hidden = self._any(dir_fd, _unhidden(request), watch)
        return result

    def rank(self, dir_fd: int, request: "RankRequest", cancel: threading.Event | None = None) -> "RankResult":
        from handrail.kernel.search.ranking import FileRanking  # noqa: PLC0415  few searches rank

        watch = Watch.starting_now(self._limits.search_seconds, cancel)
        return self._answer(lambda engine: FileRanking(engine, dir_fd, request, watch, self._limits).result())

    def _answer(self, ask: Callable[[Engine], Answer]) -> Answer:
        """Ask the engine; where ripgrep gives up, the built-in one has the rest of the time."""
        try:
            return ask(self.engine)
        except (GaveUp, LimitsRefused) as why:
            if not self._builtin:
                raise NoEngine from why
            return ask(choose(self._limits, "builtin"))

    def _all_hidden(self, dir_fd: int, request: FindRequest, watch: Watch) -> bool:
        return not self._any(dir_fd, request, watch) and self._any(dir_fd, _unhidden(request), watch)

    def _any(self, dir_fd: int, request: FindRequest, watch: Watch) -> bool:
        """Without a glob the first file settles it, and a walk is there before a process has started."""
        if not request.scope.include:
            return choose(self._limits, "builtin").find(dir_fd, request, watch, any_one=True).total > 0
        return self._answer(lambda engine: engine.find(dir_fd, request, watch, any_one=True)).total > 0


def choose(limits: Limits, engine: EngineName = "auto", workspace: str | None = None) -> Engine:
    """The engine that answers. Asking for ripgrep where there is none outside the workspace gets the built-in one."""
    path = program() if engine != "builtin" else None
    if path is None or (workspace is not None and lies_in(workspace, path)):
        from handrail.kernel.search.builtin import Builtin  # noqa: PLC0415  start-up: only one of the two is needed

        return Builtin(limits)
    from handrail.kernel.search.ripgrep import Ripgrep  # noqa: PLC0415  loaded when first used

    return Ripgrep(path, limits)


def pattern_of(request: SearchRequest) -> Pattern:
    return parse_literal(request.pattern) if request.literal else parse(request.pattern)


def _unhidden(request: FindRequest) -> FindRequest:
    return request._replace(scope=request.scope.unhidden())
