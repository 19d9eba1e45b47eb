import pytest
from bench.stats import Spread, exponent, spread


def test_spread_is_median_and_quartiles() -> None:
    assert spread([5, 1, 3, 2, 4]) == Spread(3, 2, 4, 5)


def test_spread_of_one_measurement_is_zero() -> None:
    assert spread([7]) == Spread(7, 7, 7, 1)


@pytest.mark.parametrize("power", [0, 0.5, 1, 2])
def test_exponent_matches_power_of_times(power: float) -> None:
    assert exponent([(size, 3 * size**power) for size in (10, 100, 1000)]) == pytest.approx(power)
