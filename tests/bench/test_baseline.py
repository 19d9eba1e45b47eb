from collections.abc import Iterable

from bench.baseline import check, worse


def test_worse_counts_only_ratios_over_a_third_higher() -> None:
    before = {"a: x": 3.0, "a: y": 3.0, "a: gone": 1.0}
    assert worse(before, {"a: x": 3.9, "a: y": 4.1, "a: new": 9.0}) == {"a: y": (3.0, 4.1)}


def test_worse_ignores_tiny_ratios() -> None:
    assert worse({"a: x": 0.001}, {"a: x": 0.1}) == {}


class Runs:
    """Returns given ratios instead of measuring, one dictionary for each run."""

    def __init__(self, *ratios: dict[str, float]) -> None:
        self.ratios, self.asked = list(ratios), list[list[str]]()

    def __call__(self, modules: Iterable[str]) -> dict[str, float]:
        self.asked.append(list(modules))
        return self.ratios.pop(0)


def test_check_ratio_worse_once_passes() -> None:
    runs = Runs({"a: x": 9, "b: y": 1}, {"a: x": 1})
    assert check({"a: x": 1, "b: y": 1}, runs, ["a", "b"]) == {}
    assert runs.asked == [["a", "b"], ["a"]]


def test_check_ratio_worse_three_times_fails() -> None:
    runs = Runs({"a: x": 9, "b: y": 9}, {"a: x": 8, "b: y": 1}, {"a: x": 7})
    assert check({"a: x": 1, "b: y": 1}, runs, ["a", "b"]) == {"a: x": (1, 7)}


def test_check_new_failure_in_later_run_passes() -> None:
    runs = Runs({"a: x": 9, "a: z": 1}, {"a: x": 9, "a: z": 9}, {"a: x": 1, "a: z": 9})
    assert check({"a: x": 1, "a: z": 1}, runs, ["a"]) == {}
