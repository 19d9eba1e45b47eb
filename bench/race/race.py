"""The rounds: contenders take turns, so that a busy machine is unfair to all of them."""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

from bench.race.columns import SECONDS, Column, Turn
from bench.race.contender import Answer, Contender
from bench.race.install import NotInstalled, ensure
from bench.race.place import Place
from bench.race.talk import Refused, TooSlow, memory
from bench.stats import spread

BUDGET = 10.0
"""Seconds after which a contender that is slow in a column takes no further turns in it."""
Figure = dict[str, Any]


@contextmanager
def started(kinds: Sequence[type[Contender]], place: Place, skipped: dict[str, str]) -> Iterator[list[Contender]]:
    """All that can be installed and started, each with a home and a folder of its own; the others are noted."""
    with (
        tempfile.TemporaryDirectory(prefix="handrail-bench-", ignore_cleanup_errors=True) as home,
        ExitStack() as stack,
    ):
        there = []
        for kind in kinds:
            contender = kind(place.root, f"{home}/{kind.__name__}")
            try:
                if kind.package:
                    ensure(kind.package)
                contender.start()
            except (NotInstalled, Refused, TooSlow, OSError) as error:
                skipped[kind.name] = getattr(error, "strerror", None) or str(error) or "does not start"
                print(f"skipped: {kind.name}: {skipped[kind.name]}")
                contender.close()
                continue
            stack.callback(contender.close)
            place.prepare(kind.name)
            there.append(contender)
        yield there


def race(column: Column, contenders: Sequence[Contender], place: Place, most: int) -> dict[str, Figure]:
    """A figure for each: the median with its spread, or what went wrong."""
    times: dict[str, list[float]] = {each.name: [] for each in contenders if takes_part(column, each)}
    wrong: dict[str, str] = {}
    rounds = min(column.rounds, most)
    for number in range(rounds + 1):  # the first is for warming up
        for contender in _from(number, contenders):
            spent = times.get(contender.name)
            if spent is None or contender.name in wrong or sum(spent[1:]) > BUDGET * 1000:
                continue
            try:
                spent.append(_measure(column, Turn(contender, place, number)).ms)
            except (Refused, TooSlow, AssertionError, OSError, ValueError) as error:
                wrong[contender.name] = _told(contender, error)
    return {name: _figure(kept, wrong.get(name), rounds) for name, kept in times.items()}


def takes_part(column: Column, contender: Contender) -> bool:
    if contender.role == "limit" and contender.name != column.limits:
        return False
    fits = not column.kinds or contender.kind in column.kinds or contender.name == column.limits
    return fits and (not column.needs or contender.can(column.needs))


def _from(number: int, contenders: Sequence[Contender]) -> list[Contender]:
    """Each round begins with another one."""
    first = number % len(contenders)
    return [*contenders[first:], *contenders[:first]]


def _measure(column: Column, turn: Turn) -> Answer:
    if column.before:
        column.before(turn.place)
    answer = column.act(turn)
    if turn.contender.role != "limit":
        for text in column.expect:
            assert text in answer.text, f"{text} is not in the answer"
    return answer


def _told(contender: Contender, error: Exception) -> str:
    print(f"    {contender.name}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
    if isinstance(error, TooSlow):
        contender.peak = max(contender.peak, memory(contender.pid, "VmHWM"))
        contender.close()
        contender.start()
        return f"over {SECONDS:.0f} s"
    return str(error) if isinstance(error, AssertionError) else "refuses"


def _figure(times: list[float], wrong: str | None, rounds: int) -> Figure:
    warm = times[1:] if len(times) > 1 else times
    if wrong or not warm:
        return {"note": wrong or "no answer"}
    return asdict(spread(warm[:rounds]))
