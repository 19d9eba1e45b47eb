"""Tests odd numbers in every number parameter of every tool: each call is answered and does no harm."""

from pathlib import Path

import pytest
from support.odd_calls import Arena

from handrail.dialects import NAMES

NUMBERS: tuple[object, ...] = (
    *(0, 1, -1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64, -(2**31), -(2**63), -(2**64), 10**400, 10**5000, -(10**5000)),
    *(True, False, 1.0, 1.5, -0.0, 1e18, 1e308, -1e308, float("inf"), float("nan")),
    *("5", "", None, [], [1], {}),
)


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("kind", [int, bool])
def test_every_tool_odd_numbers_are_answered(dialect: str, kind: type, tmp_path: Path) -> None:
    with Arena(tmp_path, dialect) as arena:
        assert arena.problems(kind, NUMBERS) == {}
