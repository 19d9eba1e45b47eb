"""Runs every benchmark: `make bench`, or some of them: `python -m bench files search`."""

import os
import sys
from collections.abc import Iterable
from importlib import import_module

from bench.measure import Row, show
from bench.results import load, save

MODULES = (
    "starts",
    "files",
    "search",
    "patch",
    "notebook",
    "process",
    "journal",
    "approvals",
    "page",
    "agent_loop",
    "layers",
    "images",
    "race.alone",
)


def measure(modules: Iterable[str]) -> dict[str, float]:
    """Every ratio by its name, with the module in front; also shown, and kept in `bench/out/bench.json`."""
    rows: dict[str, Row] = {}
    for module in modules:
        os.sync()  # what the last one wrote must not slow the next
        found = import_module(f"bench.{module}").run()
        show(module, found)
        rows |= {f"{module}: {row['name']}": row for row in found}
    ratios = {name: float(row["ratio"]) for name, row in rows.items()}
    before = load("bench")
    save("bench", {"ratios": before.get("ratios", {}) | ratios, "rows": before.get("rows", {}) | rows})
    return ratios


if __name__ == "__main__":
    measure(sys.argv[1:] or MODULES)
