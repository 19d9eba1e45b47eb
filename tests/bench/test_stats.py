import pytest
from bench.stats import Spread, exponent, spread


def test_the_spread_is_the_median_and_the_quartiles() -> None:
    assert spread([5, 1, 3, 2, 4]) == Spread(3, 2, 4, 5)


def test_one_measurement_has_no_spread() -> None:
    assert spread([7]) == Spread(7, 7, 7, 1)


@pytest.mark.parametrize("power", [0, 0.5, 1, 2])
def test_the_exponent_is_the_power_that_the_times_follow(power: float) -> None:
    assert exponent([(size, 3 * size**power) for size in (10, 100, 1000)]) == pytest.approx(power)
