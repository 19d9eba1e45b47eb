from handrail.surfaces.cli.history import spark


def test_spark_shows_activity_over_time() -> None:
    assert spark([]) == ""
    assert spark([5.0], 4) == "█   "
    assert spark([0, 1, 2, 3], 4) == "████"
    assert spark([0, 0, 0, 0, 5, 10, 10], 3) == "█▂▄"
