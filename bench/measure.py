"""Ratios, not seconds: what we do and its limit take turns in one run, and medians are compared."""

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]
SETTLED_SECONDS = 3.0


def compare(
    name: str,
    ours: Callable[[], object],
    limit: Callable[[], object],
    target: float,
    *,
    rounds: int = 15,
    number: int = 1,
) -> Row:
    """How many times the limit we take."""
    ours()
    limit()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for kept, act in zip(times, (ours, limit), strict=True):
            started = time.perf_counter()
            for _ in range(number):
                act()
            kept.append((time.perf_counter() - started) / number * 1000)
    return row(name, statistics.median(times[0]), statistics.median(times[1]), target)


def best(act: Callable[[], object], *, rounds: int, after: Callable[[], object] = lambda: None) -> float:
    """Return the milliseconds of the fastest round: other work on the machine only adds to a time without a ratio."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        act()
        times.append((time.perf_counter() - started) * 1000)
        after()
    return min(times)


def row(name: str, ours_ms: float, limit_ms: float, target: float) -> Row:
    """The one shape of a result: every ratio has a name, by which the baseline knows it."""
    return {"name": name, "ours_ms": ours_ms, "limit_ms": limit_ms, "ratio": ours_ms / limit_ms, "target": target}


def show(title: str, rows: list[Row]) -> None:
    print(f"\n{title}\n{'':75} {'ours ms':>10} {'limit ms':>10} {'ratio':>6} {'target':>6}")
    for row in rows:
        mark = "" if row["ratio"] <= row["target"] else "  over"
        print(
            f"{row['name']:75} {row['ours_ms']:10.3f} {row['limit_ms']:10.3f}"
            f" {row['ratio']:6.2f} {row['target']:6.2f}{mark}"
        )


def settle(path: str | os.PathLike[str]) -> None:
    """Wait until a file has been left alone for a while: no cache can rely on a file that just changed."""
    time.sleep(max(0.0, os.stat(path).st_ctime + SETTLED_SECONDS - time.time()))
