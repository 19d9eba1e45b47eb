"""Sums up the results of a run: pass rates by task, model and dialect, time and cost."""

import statistics
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Json = dict[str, Any]


class Share(NamedTuple):
    """Counts the results that have one task, model or dialect in common."""

    name: str
    results: int
    passed: int
    judged: int
    """How many say whether they passed; a task that failed counts as not passed."""
    failed: int
    seconds: float
    """The median."""
    calls: int
    cost: float | None
    """In US dollars; None if no price is known."""

    @property
    def rate(self) -> str:
        """The share of the judged results that passed."""
        return f"{100 * self.passed / self.judged:.0f} %" if self.judged else "-"


class RunReport(NamedTuple):
    """Holds all shares of a run."""

    total: Share
    by_model: list[Share]
    by_dialect: list[Share]
    by_task: list[Share]
    results: list[Json]
    tasks: int

    @classmethod
    def of(cls, results: list[Json], tasks: int) -> "RunReport":
        """Sum up results."""
        return cls(
            _share("all", results),
            _by(results, lambda each: each.get("model")),
            _by(results, lambda each: each.get("dialect")),
            _by(results, lambda each: each.get("name")),
            sorted(results, key=lambda each: str(each.get("task"))),
            tasks,
        )

    def parts(self) -> list[tuple[str, list[Share]]]:
        """Return the tables of the report, each with its title."""
        return [("model", self.by_model), ("dialect", self.by_dialect), ("task", self.by_task)]


def _by(results: Iterable[Json], key: Callable[[Json], Any]) -> list[Share]:
    groups: dict[str, list[Json]] = {}
    for each in results:
        if key(each) is not None:
            groups.setdefault(str(key(each)), []).append(each)
    return [_share(name, found) for name, found in sorted(groups.items())]


def _share(name: str, results: list[Json]) -> Share:
    costs = [each["cost"] for each in results if each.get("cost") is not None]
    return Share(
        name,
        len(results),
        sum(each.get("passed") is True for each in results),
        sum(each.get("passed") is not None for each in results),
        sum(not each.get("ok") for each in results),
        statistics.median([each.get("seconds", 0.0) for each in results] or [0.0]),
        sum(each.get("calls", 0) for each in results),
        sum(costs) if costs else None,
    )


COLUMNS = ("results", "passed", "pass rate", "failed", "median s", "calls", "cost $")


def cells(share: Share) -> list[str]:
    """Return the texts of a row, for the columns."""
    return [
        str(share.results),
        str(share.passed),
        share.rate,
        str(share.failed),
        f"{share.seconds:.1f}",
        str(share.calls),
        "-" if share.cost is None else f"{share.cost:.4f}",
    ]
