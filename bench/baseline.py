"""Kept won: fails when a ratio is a third worse than `bench/baseline.json` says, three times in a row.

`python -m bench.baseline` checks; `python -m bench.baseline --accept` takes the last run of `make bench` for it.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from bench.__main__ import MODULES, measure
from bench.results import load

BASELINE = Path(__file__).parent / "baseline.json"
WORSE, TRIES = 4 / 3, 3
FLOOR = 0.1
"""Of a limit that is hardly touched, what is below this is noise."""
Ratios = dict[str, float]


def worse(baseline: Ratios, ratios: Ratios) -> dict[str, tuple[float, float]]:
    """What has become a third worse, as (before, now). What only one of them knows is not compared."""
    pairs = {name: (baseline[name], ratios[name]) for name in sorted(baseline.keys() & ratios.keys())}
    return {name: (before, now) for name, (before, now) in pairs.items() if now > max(before, FLOOR) * WORSE}


def check(
    baseline: Ratios, run: Callable[[Iterable[str]], Ratios], modules: Iterable[str]
) -> dict[str, tuple[float, float]]:
    """What is worse every time; only the modules with something worse are run again."""
    failed = worse(baseline, run(modules))
    for _ in range(TRIES - 1):
        if failed:
            again = worse(baseline, run(sorted({name.split(": ", 1)[0] for name in failed})))
            failed = {name: again[name] for name in failed if name in again}
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accept", action="store_true", help="make the last run of `make bench` the baseline")
    parser.add_argument("modules", nargs="*", default=MODULES, help="only these")
    options = parser.parse_args()
    if options.accept:
        kept = {name: round(ratio, 3) for name, ratio in load("bench")["ratios"].items()}
        BASELINE.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        return 0
    failed = check(json.loads(BASELINE.read_text()), measure, options.modules)
    for name, (before, now) in failed.items():
        print(f"worse than the baseline, {TRIES} times: {name}: {before:.2f}, now {now:.2f}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
