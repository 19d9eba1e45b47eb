"""Parses TOML that a user or a project wrote, within bounds on nesting and numbers."""

import re
from collections.abc import Iterator
from typing import Any

from handrail.model.limits import LARGEST_INTEGER

_DEEPEST = 100
"""The depth to which TOML may be nested: more than any file needs, less than Python's recursion limit."""
_PARTS = 20
"""The most parts of a dotted key: the parser's time grows with their square."""
_KEY = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"{_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{{_PARTS}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML that a user or a project wrote. Raises ValueError, also for nesting and numbers without bounds."""
    import tomllib  # noqa: PLC0415  only needed if there is a file

    if _LONG_KEY.search(text):
        raise ValueError("it is nested too deeply")
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    for level in levels(found):
        if any(isinstance(each, int) and abs(each) > LARGEST_INTEGER for each in level):
            raise ValueError("a number in it has more than 64 bits")
    return found


def levels(value: Any) -> Iterator[list[Any]]:
    """Yield the values inside a value, level by level. Raises ValueError if it is nested too deeply."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _within(each)]
        if not level:
            return
        yield level
    raise ValueError("it is nested too deeply")


def _within(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
