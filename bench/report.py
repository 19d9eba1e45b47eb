"""Makes `docs/performance.md` and its charts of what the benchmarks wrote: `python -m bench.report`."""

import re
from pathlib import Path
from typing import Any

from bench.chart import Bar, Curve, bars, curves, number
from bench.growth import TOLERANCE
from bench.results import load

DOCS = Path(__file__).parent.parent / "docs"
CHARTS = DOCS / "performance"

HEAD = """# Performance

One command repeats every figure on this page. Ratios matter more than times: Handrail, its peers and the limit of the
system take turns in one run, so that a busy machine slows all of them. The figures are medians; a thin line in the
charts shows the quartiles. `python -m bench.report` writes this page and its charts from the results in `bench/out`.

```sh
make bench          # compares Handrail with the limits of the system
make bench-agent    # measures what a step of the agent's loop costs besides its call: at most 2 ms
make bench-peers    # installs the peers in bench/out/peers, and compares them
make bench-growth   # measures how cost grows with files, sizes, matches and sessions
make bench-probes   # checks what an edit does to the rest of the file
make bench-check    # fails if a ratio is a third worse than bench/baseline.json, three times in a row
```
"""
PARTS = (
    "## Against the peers",
    "## Starts, and many at once",
    "## How cost grows",
    "## What an edit does to the user's files",
)
NOTE = """The search tree has about 50 000 files and 460 MB. The limit does the same work with no boundary, journal,
approval or answer text. Handrail runs with all of them: it confines every path, syncs every write, and returns
results in a fixed order with exact totals. A peer below the limit omits something, such as syncing its writes. A
column has only peers with such a tool. The line below a chart names peers whose answer was wrong, refused or too
slow.
"""
STARTS = """Each row names what it is compared with. Times are in milliseconds. Byte code is written, as for every user
who installs the package; `make bench` writes it even where PYTHONDONTWRITEBYTECODE is set.
"""
EXPONENTS = """The exponent is the slope of the straight line through the points: 0 is constant, 1 is linear. An
exponent that is worse than it should be is bold.
"""


def main() -> None:
    """Write the page. A part that was not measured here stays as it is."""
    CHARTS.mkdir(exist_ok=True)
    page = DOCS / "performance.md"
    before = _parts(page.read_text())
    made = [_race(load("peers")), _starts(load("bench")), _growth(load("growth")), _probes(load("probes"))]
    parts = ["\n".join(part) or before.get(title, "") for title, part in zip(PARTS, made, strict=True)]
    page.write_text("\n".join([HEAD, *filter(None, parts)]))


def _parts(page: str) -> dict[str, str]:
    """Return the parts of a page by their headings."""
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    return {part.partition("\n")[0]: part.rstrip("\n") + "\n" for part in parts}


def _race(results: dict[str, Any]) -> list[str]:
    if not results:
        return []
    columns, contenders = results["columns"], results["contenders"]
    for key, column in columns.items():
        (CHARTS / f"{key}.svg").write_text(chart(column, contenders))
    return [
        "## Against the peers\n",
        _about(results["about"]),
        _versions(contenders, results["skipped"]),
        NOTE,
        _table(columns),
        *(_column(key, column) for key, column in columns.items()),
    ]


def chart(column: dict[str, Any], contenders: dict[str, Any]) -> str:
    figures = {name: each for name, each in column["figures"].items() if each.get("median")}
    limit = figures.pop(column["limits"], None)
    rows = [
        Bar(_label(name, contenders), each["median"], each["low"], each["high"], contenders[name]["role"])
        for name, each in figures.items()
    ]
    return bars(column["title"], column["unit"], rows, (column["limit"], limit["median"]) if limit else None)


def _label(name: str, contenders: dict[str, Any]) -> str:
    about = contenders[name]
    if about["role"] == "handrail" and about["kind"] != "in process":
        return name
    return f"{name} ({about['kind']})"


def _about(about: dict[str, str]) -> str:
    return (
        f"{about['date']}, {about['machine']}, {about['system']}, Python {about['python']}, Node {about['node']}, "
        f"{about['ripgrep']}.\n"
    )


def _versions(contenders: dict[str, Any], skipped: dict[str, str]) -> str:
    there = [f"{name} {each['version']}" for name, each in contenders.items() if each["role"] == "peer"]
    absent = [f"{name} ({why})" for name, why in skipped.items()]
    return f"Peers: {', '.join(there)}. Not measured: {', '.join(absent)}.\n"


def _table(columns: dict[str, Any]) -> str:
    lines = [
        "| | limit | in process | over MCP | to the limit | aim | best peer | to the best peer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for key, column in columns.items():
        figures, unit, best = column["figures"], column["unit"], column.get("best_peer")
        limit = figures.get(column["limits"], {}).get("median")
        ours, mcp = (figures.get(name, {}) for name in ("Handrail", "Handrail, MCP"))
        first = figures.get(column.get("judged", "Handrail")) or ours or mcp
        peer = f"{best} {number(figures[best]['median'])} {unit}" if best else "–"
        cells = [
            f"[{column['title']}](#{key})",
            f"{column['limit']} {number(limit)} {unit}" if limit else "–",
            _time(ours, unit),
            _time(mcp, unit),
            _times(first.get("to_limit")),
            f"≤ {column['target']:g} ×" if "target" in column else "–",
            peer,
            _times(first.get("to_best_peer")),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _time(figure: dict[str, Any], unit: str) -> str:
    return f"{number(figure['median'])} {unit}" if "median" in figure else figure.get("note", "–")


def _times(ratio: float | None) -> str:
    return f"{number(ratio)} ×" if ratio else "–"


def _column(key: str, column: dict[str, Any]) -> str:
    wrong = [f"{name}: {each['note']}" for name, each in column["figures"].items() if "note" in each]
    below = f"\n{'; '.join(wrong)}.\n" if wrong else ""
    return f'<a id="{key}"></a>\n![{column["title"]}](performance/{key}.svg)\n{below}'


def _starts(results: dict[str, Any]) -> list[str]:
    rows = [row for name, row in results.get("rows", {}).items() if name.startswith("starts: ")]
    if not rows:
        return []
    lines = ["| | Handrail | compared with | ratio | aim |", "|---|---|---|---|---|"]
    for row in rows:
        ours, limit = number(row["ours_ms"]), number(row["limit_ms"])
        lines.append(f"| {row['name']} | {ours} | {limit} | {row['ratio']:.2f} × | ≤ {row['target']:g} × |")
    return ["## Starts, and many at once\n", _about(results["about"]), STARTS, "\n".join([*lines, ""])]


def _growth(results: dict[str, Any]) -> list[str]:
    if not results:
        return []
    parts = ["## How cost grows\n", _about(results["about"]), EXPONENTS]
    for key, kind in results["kinds"].items():
        series = [
            Curve(f"{name}: exponent {each['exponent']:.2f}", [tuple(point) for point in each["points"]])
            for name, each in kind["series"].items()
        ]
        (CHARTS / f"growth-{key}.svg").write_text(curves(kind["title"], kind["x"], "ms", series))
        parts.append(f"![{kind['title']}](performance/growth-{key}.svg)\n")
        lines = ["| operation | exponent | should be at most | first | last |", "|---|---|---|---|---|"]
        for name, each in kind["series"].items():
            (_, first), (_, last) = each["points"][0], each["points"][-1]
            ends = f"{number(first)} ms | {number(last)} ms"
            slope = f"{each['exponent']:.2f}"
            worse = each["exponent"] > each["expected"] + TOLERANCE
            lines.append(f"| {name} | {f'**{slope}**' if worse else slope} | {each['expected']:g} | {ends} |")
        parts.append("\n".join([*lines, ""]))
    return parts


def _probes(results: dict[str, Any]) -> list[str]:
    if not results:
        return []
    names = list(results["probes"])
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for contender, answers in results["answers"].items():
        lines.append(f"| {contender} | {' | '.join(answers.get(name, '–') for name in names)} |")
    told = [f"- **{name}**: {what}" for name, what in results["probes"].items()]
    own = [f"- {name}: {what}" for name, what in results["own"].items()]
    return [
        "## What an edit does to the user's files\n",
        "✓: correct. –: no such tool. Otherwise the cell says what went wrong.\n",
        "\n".join([*lines, ""]),
        "\n".join([*told, ""]),
        "These probes run on Handrail only:\n",
        "\n".join([*own, ""]),
    ]


if __name__ == "__main__":
    main()
