"""Charts as SVG, written by hand: logarithmic axes, legible on light and on dark pages."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 } .dim { fill: #59636e } .bold { font-weight: 600 }
.grid { stroke: #8b949e; stroke-opacity: .3 } .limit { stroke: #bc4c00; stroke-width: 1.5; stroke-dasharray: 5 3 }
.limits { fill: #bc4c00 } .peer { fill: #8b949e } .handrail { fill: #0969da }
.spread { stroke: #59636e; stroke-width: 1.5 }
polyline { fill: none; stroke-width: 2 } .page { fill: #ffffff }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 } text { fill: #e6edf3 }
.dim { fill: #9198a1 } .limit { stroke: #f0883e } .limits { fill: #f0883e }
.handrail { fill: #58a6ff } .spread { stroke: #c9d1d9 } }
</style>"""
COLOURS = ("#2f81f7", "#db6d28", "#2da44e", "#a371f7", "#db61a2", "#bf8700", "#1b9aaa", "#8b949e")
LABELS, WIDTH, VALUES, ROW, TOP = 230, 800, 110, 24, 62


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    low: float
    high: float
    role: str = "peer"


@dataclass(frozen=True)
class Curve:
    name: str
    points: list[tuple[float, float]] = field(default_factory=list)


class Scale:
    """A logarithmic axis over whole decades."""

    def __init__(self, values: Sequence[float], start: float, end: float, room: float = 0) -> None:
        """`room`: what must be left free at both ends, as a part of a decade."""
        low, high = (math.log10(edge) for edge in (min(values), max(values)))
        self.low = math.floor(low - room)
        self.high = max(math.ceil(high + room), self.low + 1)
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self._start + share * (self._end - self._start)

    def ticks(self) -> list[float]:
        step = max(1, round((self.high - self.low) / 7))
        return [10.0**power for power in range(self.low, self.high + 1, step)]


def bars(title: str, unit: str, rows: Sequence[Bar], limit: tuple[str, float] | None) -> str:
    rows = sorted(rows, key=lambda row: row.value)
    bottom = TOP + ROW * len(rows)
    across = Scale([*(row.value for row in rows), *([limit[1]] if limit else [])], LABELS, WIDTH - VALUES, 0.1)
    parts = [_text(16, 24, title, "title"), _text(16, 43, f"{unit}, logarithmic; less is better", "dim")]
    for tick in across.ticks():
        parts.append(_line(across(tick), TOP - 8, across(tick), bottom, "grid"))
        parts.append(_text(across(tick), bottom + 16, number(tick), "dim", "middle"))
    for position, row in enumerate(rows):
        parts += _bar(row, TOP + ROW * position, across, unit)
    if limit:
        parts.append(_line(across(limit[1]), TOP - 8, across(limit[1]), bottom, "limit"))
        anchor = "end" if across(limit[1]) > WIDTH / 2 else "start"
        parts.append(_text(across(limit[1]), TOP - 13, f"limit: {limit[0]} {number(limit[1])}", "limits", anchor))
    return _svg(WIDTH, bottom + 28, title, parts)


def _bar(row: Bar, top: float, across: Scale, unit: str) -> list[str]:
    ours, middle = row.role == "handrail", top + ROW / 2
    end = across(row.value)
    box = f'x="{LABELS}" y="{top + 5}" width="{max(end - LABELS, 1):.1f}" height="{ROW - 10}"'
    return [
        _text(LABELS - 10, middle + 4, row.name, "bold" if ours else "", "end"),
        f'<rect class="{row.role}" {box} rx="2"/>',
        _line(across(row.low), middle, across(row.high), middle, "spread"),
        _text(max(end, across(row.high)) + 8, middle + 4, f"{number(row.value)} {unit}", "bold" if ours else "dim"),
    ]


def curves(title: str, x_name: str, y_name: str, series: Sequence[Curve]) -> str:
    """Lines on two logarithmic axes, with a legend beneath."""
    height = TOP + 300
    points = [point for curve in series for point in curve.points]
    across = Scale([x for x, _ in points], 80, WIDTH - 40)
    up = Scale([y for _, y in points], height, TOP)
    parts = [_text(16, 24, title, "title"), _text(16, 43, f"{y_name} over {x_name}, both logarithmic", "dim")]
    for tick in across.ticks():
        parts.append(_line(across(tick), TOP, across(tick), height, "grid"))
        parts.append(_text(across(tick), height + 18, number(tick), "dim", "middle"))
    for tick in up.ticks():
        parts.append(_line(80, up(tick), WIDTH - 40, up(tick), "grid"))
        parts.append(_text(72, up(tick) + 4, number(tick), "dim", "end"))
    for position, curve in enumerate(series):
        colour = COLOURS[position % len(COLOURS)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in curve.points)
        parts.append(f'<polyline points="{path}" stroke="{colour}"/>')
        parts += [f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="3" fill="{colour}"/>' for x, y in curve.points]
        below = height + 46 + position * 20
        parts.append(f'<rect x="80" y="{below - 7}" width="14" height="4" fill="{colour}"/>')
        parts.append(_text(102, below, curve.name))
    return _svg(WIDTH, height + 44 + len(series) * 20, title, parts)


def number(value: float) -> str:
    """Three digits are enough, and thousands are set apart."""
    if value >= 999.5:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}"


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    page = f'<rect class="page" width="{width}" height="{height}" rx="6"/>'
    return "\n".join([f'{head} role="img" aria-label="{escape(title)}">', STYLE, page, *parts, "</svg>", ""])


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'
