"""Medians, spread and growth of what was measured."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """The median and the quartiles."""

    median: float
    low: float
    high: float
    rounds: int


def spread(times: Sequence[float]) -> Spread:
    if len(times) < 2:
        return Spread(times[0], times[0], times[0], len(times))
    low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
    return Spread(middle, low, high, len(times))


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the straight line through the points on logarithmic axes: 1 is linear, 0 is constant."""
    fit = statistics.linear_regression(*zip(*((math.log(size), math.log(ms)) for size, ms in points), strict=True))
    return fit.slope
