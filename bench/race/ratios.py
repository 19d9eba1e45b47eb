"""Every figure as a ratio to the limit and to the best peer, in the same run."""

from typing import Any


def with_ratios(results: dict[str, Any]) -> dict[str, Any]:
    for column in results["columns"].values():
        figures, contenders = column["figures"], results["contenders"]
        limit = figures.get(column["limits"], {}).get("median")
        best = best_peer(figures, contenders)
        column["best_peer"] = best
        for name, figure in figures.items():
            if "median" in figure:
                figure["to_limit"] = figure["median"] / limit if limit else None
                figure["to_best_peer"] = figure["median"] / figures[best]["median"] if best and name != best else None
    return results


def best_peer(figures: dict[str, Any], contenders: dict[str, Any], *, confining: bool = False) -> str | None:
    peers = [
        (figure["median"], name)
        for name, figure in figures.items()
        if "median" in figure and contenders[name]["role"] == "peer" and (contenders[name]["confines"] or not confining)
    ]
    return min(peers)[1] if peers else None
