"""Tests that no pattern depends on possessive quantifiers that Python before 3.11.5 matches wrongly.

Such a Python loses its place if the body of a possessive quantifier can backtrack. A body in an atomic group cannot.
"""

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from re import _constants, _parser
from types import ModuleType
from typing import Any

import pytest

import handrail

BACKTRACKING = {_constants.BRANCH, _constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}


def can_backtrack(parsed: Any) -> bool:
    """Return whether a part of a parsed pattern can match in more than one way."""
    if isinstance(parsed, _parser.SubPattern | list | tuple):
        if len(parsed) == 2 and parsed[0] is _constants.ATOMIC_GROUP:
            return False
        if len(parsed) == 2 and parsed[0] in BACKTRACKING:
            return True
        return any(map(can_backtrack, parsed))
    return False


def misread(pattern: str) -> Iterator[str]:
    """Yield every possessive quantifier whose body can backtrack; one character as the body cannot."""
    waiting: list[Any] = [_parser.parse(pattern)]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, _parser.SubPattern | list | tuple):
            continue
        if len(part) == 2 and part[0] is _constants.POSSESSIVE_REPEAT and can_backtrack(part[1][2]):
            yield str(part)
        waiting.extend(part)


def patterns(value: Any, depth: int = 3) -> Iterator[str]:
    """Yield the patterns in a global variable."""
    if isinstance(value, re.Pattern):
        yield value.pattern if isinstance(value.pattern, str) else value.pattern.decode("latin-1")
    elif depth and isinstance(value, list | tuple | dict):
        for each in [*value, *(value.values() if isinstance(value, dict) else ())]:
            yield from patterns(each, depth - 1)


@pytest.mark.parametrize("pattern", [r"(?:a|bc)*+", r"(?:a++|b)++", r"x(?:(?:ab)?c)?+"])
def test_misread_finds_body_that_can_backtrack(pattern: str) -> None:
    assert list(misread(pattern))


@pytest.mark.parametrize("pattern", [r"(?>a|bc)*+", r"[a-z]++\.", r"(?:a|bc)*", r"(?>a++|b)++"])
def test_misread_accepts_body_that_cannot_backtrack(pattern: str) -> None:
    assert not list(misread(pattern))


def loaded(name: str) -> list[ModuleType]:
    """Import a module; an empty list if it needs an optional package that is not installed."""
    try:
        return [import_module(name)]
    except ModuleNotFoundError as missing:
        if str(missing.name).startswith("handrail"):
            raise
        return []


def test_no_pattern_has_possessive_quantifier_that_old_python_misreads() -> None:
    names = [each.name for each in pkgutil.walk_packages(handrail.__path__, "handrail.")]
    modules = [module for name in names if not name.endswith("__main__") for module in loaded(name)]
    found = {pattern for module in modules for value in vars(module).values() for pattern in patterns(value)}
    assert len(found) > 100
    assert [pattern for pattern in sorted(found) if list(misread(pattern))] == []
