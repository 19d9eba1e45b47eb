"""The figures of a column as a terminal shows them."""

from typing import Any

from bench.race.columns import Column


def show(column: Column, figures: dict[str, Any]) -> None:
    limit = figures.get(column.limits, {}).get("median")
    print(f"\n{column.title} ({column.unit}; limit: {column.limit})", flush=True)
    for name, figure in sorted(figures.items(), key=lambda item: item[1].get("median", float("inf"))):
        if "note" in figure:
            print(f"  {name:32} {figure['note']}")
        else:
            ratio = f"{figure['median'] / limit:9.2f} ×" if limit else ""
            print(f"  {name:32} {figure['median']:10.3f}  {figure['low']:10.3f} – {figure['high']:10.3f} {ratio}")
