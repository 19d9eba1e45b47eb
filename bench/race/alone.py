"""Handrail on all its surfaces against the limits, without the peers: the part of the race that `make bench` runs."""

import math

from bench.measure import Row, row
from bench.race.columns import COLUMNS
from bench.race.ours import LIMITS, OURS
from bench.race.place import place
from bench.race.race import race, started

MOST = 7


def run() -> list[Row]:
    rows: list[Row] = []
    where = place()
    with started([*LIMITS, *OURS], where, {}) as contenders:
        for column in COLUMNS:
            figures = race(column, contenders, where, MOST)
            limit = figures.pop(column.limits, {}).get("median")
            for name, figure in figures.items():
                if limit and "median" in figure:
                    target = column.target if name == column.judged else math.inf
                    rows.append(row(f"{column.title}: {name} / {column.limit}", figure["median"], limit, target))
    return rows
