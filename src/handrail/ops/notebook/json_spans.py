"""Parses JSON and keeps where chosen values stand in the text, so that an edit can replace only those.

The values inside are scanned by Python's own C scanner. Numbers stay text: their form must survive, and a number of a
million digits must not be converted.
"""

import json
import re
from collections.abc import Callable
from json import JSONDecodeError
from typing import Any, NamedTuple

_SPACE = re.compile(r"[ \t\n\r]*")

Scan = Callable[[str, int], tuple[Any, int]]
"""Returns the value that begins at a place, and where it ends."""


class Spot(NamedTuple):
    """Holds one value and its place: an item of an array, or a member of an object with its name."""

    start: int
    """The offset of the value."""
    end: int
    value: Any
    name: str = ""
    name_start: int = -1
    """The offset of the member, with its name; -1 for an item."""


class Spots(NamedTuple):
    """Holds the items of an array or the members of an object in order, and the place of its brackets."""

    start: int
    end: int
    spots: list[Spot]

    def member(self, name: str) -> Spot | None:
        """Return a member; of several with one name the last, as every JSON parser does."""
        return next((each for each in reversed(self.spots) if each.name == name), None)

    def get(self, name: str, default: Any = None) -> Any:
        found = self.member(name)
        return default if found is None else found.value


def skip(text: str, at: int) -> int:
    """Return the place after white space."""
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it matches the empty text


scan: Scan = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str).raw_decode
"""Scans any value. Raises JSONDecodeError."""


def scan_items(scan_item: Scan = scan) -> Scan:
    """Return a scan that gives an array as Spots; another value as it is."""

    def scan_array(text: str, at: int) -> tuple[Any, int]:
        if text[at : at + 1] != "[":
            return scan(text, at)
        spots: list[Spot] = []
        here = skip(text, at + 1)
        if text[here : here + 1] == "]":
            return Spots(at, here + 1, spots), here + 1
        usual = ""
        while True:
            value, end = scan_item(text, here)
            spots.append(Spot(here, end, value))
            if usual and text.startswith(usual, end):  # quick: most items begin and are separated like the second
                here = end + len(usual) - 1
                continue
            here, last = _separated(text, end, "]")
            if last:
                return Spots(at, here, spots), here
            usual = text[end : here + 1]

    return scan_array


def scan_members(scans: dict[str, Scan] | None = None) -> Scan:
    """Return a scan that gives an object as Spots, with the members in `scans` scanned by these."""
    own = scans or {}

    def scan_object(text: str, at: int) -> tuple[Any, int]:
        if text[at : at + 1] != "{":
            return scan(text, at)
        spots: list[Spot] = []
        here = skip(text, at + 1)
        if text[here : here + 1] == "}":
            return Spots(at, here + 1, spots), here + 1
        while True:
            spots.append(_member(text, here, own))
            here, last = _separated(text, spots[-1].end, "}")
            if last:
                return Spots(at, here, spots), here

    return scan_object


def _member(text: str, at: int, scans: dict[str, Scan]) -> Spot:
    if text[at : at + 1] != '"':
        raise JSONDecodeError("a name is missing", text, at)
    name, here = scan(text, at)
    here = skip(text, here)
    if text[here : here + 1] != ":":
        raise JSONDecodeError("a colon is missing", text, here)
    start = skip(text, here + 1)
    value, end = scans.get(name, scan)(text, start)
    return Spot(start, end, value, name, at)


def _separated(text: str, at: int, close: str) -> tuple[int, bool]:
    """Return where the next value begins, or where the array or object ends, and which of both."""
    here = skip(text, at)
    mark = text[here : here + 1]
    if mark == close:
        return here + 1, True
    if mark != ",":
        raise JSONDecodeError(f"a comma or {close} is missing", text, here)
    return skip(text, here + 1), False
