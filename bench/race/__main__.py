"""`make bench-peers`: everybody does the same work in turns, and the figures become a file, charts and a page."""

import argparse
import math
import signal
import sys
from typing import Any

from bench.race.columns import COLUMNS, Column
from bench.race.contender import Contender
from bench.race.ours import LIMITS, OURS
from bench.race.peers import ABSENT, PEERS
from bench.race.place import Place, place
from bench.race.race import race, started
from bench.race.ratios import with_ratios
from bench.race.show import show
from bench.results import load, save

NAME = "peers"


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended too
    options = _options()
    skipped = dict(ABSENT)
    chosen = [each for each in PEERS if not options.peers or each.name in options.peers]
    where = place()
    with started([*LIMITS, *OURS, *chosen], where, skipped) as contenders:
        columns = [each for each in COLUMNS if not options.columns or each.key in options.columns]
        measured = {each.key: _column(each, contenders, where, options.rounds) for each in columns}
        results: dict[str, Any] = {
            "contenders": {each.name: _told(each) for each in contenders},
            "skipped": skipped,
            "columns": measured,
        }
    if options.columns:  # the others stay as they were measured before
        before = load(NAME)
        results["columns"] = before.get("columns", {}) | measured
        results["contenders"] = before.get("contenders", {}) | results["contenders"]
    path = save(NAME, with_ratios(results))
    print(f"\nwritten to {path}; `python -m bench.report` makes charts and the page of it")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="at most so many rounds a column")
    parser.add_argument("--columns", nargs="*", help="only these columns")
    parser.add_argument("--peers", nargs="*", help="only these peers")
    return parser.parse_args()


def _column(column: Column, contenders: list[Contender], where: Place, rounds: int) -> dict[str, Any]:
    figures = race(column, contenders, where, rounds)
    show(column, figures)
    told = {"title": column.title, "limit": column.limit, "limits": column.limits, "unit": column.unit}
    wanted = {"target": column.target, "judged": column.judged} if math.isfinite(column.target) else {}
    return told | wanted | {"figures": figures}


def _told(contender: Contender) -> dict[str, Any]:
    return {
        "role": contender.role,
        "kind": contender.kind,
        "version": contender.version,
        "confines": contender.confines,
    }


if __name__ == "__main__":
    main()
