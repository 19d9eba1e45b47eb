"""Ranks files for a query of a few words.

One listing finds the names, one count a word finds the files that contain it, and lines are read only from the files
that could be among the best.
"""

from heapq import nlargest
from typing import NamedTuple

from handrail.kernel.deadline import Deadline
from handrail.kernel.search.engine import Engine
from handrail.kernel.search.survey import listed_skips
from handrail.model.limits import Limits
from handrail.model.record import record
from handrail.ops.search.regex import parse, parse_literal
from handrail.ops.search.results import Hidden, Skipped
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest
from handrail.ops.search.scoring import Snippet, best_snippet, body_score, name_score, terms_of, weights, whole_terms

_LINES_A_FILE = 30


class RankRequest(NamedTuple):
    """Holds a query, where to search, and how many files to return."""

    query: str
    scope: Scope = Scope()
    limit: int = 50


class RankedFile(NamedTuple):
    """Holds the score of one file and the line to show of it."""

    path: str
    score: float
    line: int
    """The number of the best line; in a file found by its name alone, of the first line with text; 0 if none."""
    content: str


@record
class RankResult:
    """Holds the best files, best first."""

    results: list[RankedFile]
    total: int
    """The number of files with at least one of the words in their name or text."""
    skipped: Skipped
    engine: str
    complete: bool = True
    hidden: Hidden | None = None
    """The hidden files that fit, if no other file does."""

    @property
    def truncated(self) -> bool:
        return self.total > len(self.results)


class FileRanking:
    """Ranks the files below an open directory for one query."""

    def __init__(self, engine: Engine, dir_fd: int, request: RankRequest, deadline: Deadline, limits: Limits) -> None:
        self._engine, self._dir_fd, self._request, self._deadline = engine, dir_fd, request, deadline
        self._limits = limits
        self._terms = terms_of(request.query, limits.query_words)
        self._complete = True
        self._skipped = Skipped.none(limits)

    def result(self) -> RankResult:
        """Return the best files, and the files that the engine skipped."""
        with listed_skips(self._dir_fd, self._request.scope, self._deadline, self._limits) as skipped:
            result = self._rank()
        if self._engine.name != "builtin":  # the built-in engine lists them itself
            result.skipped.too_large, result.skipped.too_deep = skipped.too_large, skipped.too_deep
        result.skipped.settle()
        return result

    def _rank(self) -> RankResult:
        if not self._terms:
            return RankResult([], 0, self._skipped, self._engine.name)
        names = self._names()
        counts = {term: self._count(term) for term in self._terms}
        weight = weights(self._terms, {term: len(lines) for term, lines in counts.items()}, len(names))
        by_name = {path: score for path in names if (score := name_score(path, weight))}
        lines: dict[str, dict[str, int]] = {path: {} for path in by_name}
        for term, found in counts.items():
            for path, count in found.items():
                lines.setdefault(path, {})[term] = count
        every = set(self._terms)
        first = {path: by_name.get(path, 0) + body_score(each, every, weight) for path, each in lines.items()}
        best = self._best(first, by_name, lines, weight)
        return RankResult(best, len(lines), self._skipped, self._engine.name, self._complete)

    def _names(self) -> list[str]:
        found = self._engine.find(self._dir_fd, FindRequest(self._request.scope, limit=10**9), self._deadline)
        self._complete &= found.complete
        return found.files

    def _count(self, term: str) -> dict[str, int]:
        request = SearchRequest(term, literal=True, case_sensitive=False, scope=self._request.scope)
        counted = self._engine.count(self._dir_fd, parse_literal(term), request, self._deadline)
        self._complete &= counted.complete
        self._skipped = counted.skipped
        return counted.lines

    def _best(
        self,
        first: dict[str, float],
        by_name: dict[str, float],
        lines: dict[str, dict[str, int]],
        weight: dict[str, float],
    ) -> list[RankedFile]:
        """Read lines of the files that could be among the best, and rank these files by name and lines.

        `first` holds the best score that each file can reach, `by_name` the scores of names, `lines` how many lines of
        each file contain each term, `weight` what each term counts.
        """
        could_win = sorted(
            nlargest(self._limits.rank_candidates + self._request.limit, first, key=lambda path: (first[path], path))
        )
        snippets = self._snippets("|".join(map(_escaped, self._terms)), could_win, _LINES_A_FILE)
        score = {
            path: by_name.get(path, 0) + body_score(lines[path], whole_terms(snippets.get(path, ()), weight), weight)
            for path in could_win
        }
        winners = sorted(could_win, key=lambda path: (-score[path], path))[: self._request.limit]
        heads = self._snippets(r"\S", [path for path in winners if path not in snippets], 1)
        ranked = []
        for path in winners:
            shown = best_snippet(snippets.get(path) or heads.get(path, []), weight) or Snippet(0, "")
            ranked.append(RankedFile(path, round(score[path], 3), shown.line, shown.content))
        return ranked

    def _snippets(self, pattern: str, paths: list[str], at_most: int) -> dict[str, list[Snippet]]:
        request = SearchRequest(pattern, case_sensitive=False, limit=at_most, scope=self._request.scope)
        found: dict[str, list[Snippet]] = {}
        for match in self._engine.lines(self._dir_fd, parse(pattern), request, paths, self._deadline):
            found.setdefault(match.path, []).append(Snippet(match.line, match.content))
        return found


def _escaped(term: str) -> str:
    return "".join(char if char.isalnum() or char == "_" else f"\\x{{{ord(char):x}}}" for char in term)
