"""TOML that a person, or a stranger's project, wrote."""

import re
from collections.abc import Iterator
from typing import Any

from handrail.model.limits import LARGEST_INTEGER

_DEEPEST = 100
"""How deep it may be nested: far beyond any sense, and short of what Python can show."""
_PARTS = 20
"""How many parts a dotted key may have: the parser's time grows with the square of them."""
_KEY = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"{_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{{_PARTS}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """What it says, or a ValueError."""
    import tomllib  # noqa: PLC0415  only where there is a file

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
    """Yield what a value holds, level by level. Raises ValueError if it is nested too deeply."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _within(each)]
        if not level:
            return
        yield level
    raise ValueError("it is nested too deeply")


def _within(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
