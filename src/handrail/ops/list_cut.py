"""Shortens the lists of an answer that is an object, by whole elements."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple


class Cut(NamedTuple):
    """Holds a shortened object, and how many elements of its lists it shows."""

    output: dict[str, Any]
    shown: int
    total: int


def cut_lists(output: Mapping[str, Any], room: int) -> Cut | None:
    """Return an object whose lists fit into `room` bytes of JSON, at least one element each; None if it fits as it is.

    The longest list is shortened first. The field `truncated`, if there is one, becomes true.
    """
    size = _size(output)
    if size <= room:
        return None
    made, shown, total = dict(output), 0, 0
    lists = [name for name, value in output.items() if isinstance(value, list)]
    for name in sorted(lists, key=lambda each: -_size(output[each])):
        if size > room:
            length = _size(made[name])
            made[name] = _fitting(made[name], room - (size - length))
            size += _size(made[name]) - length
        shown, total = shown + _count(made[name]), total + _count(output[name])
    if shown == total:
        return None
    if "truncated" in made:
        made["truncated"] = True
    return Cut(made, shown, total)


def _fitting(elements: list[Any], room: int) -> list[Any]:
    """Return the first elements that fit. Of an element with a list of objects, such as a file's matches, a part."""
    kept: list[Any] = []
    for element in elements:
        size = _size(element) + 2
        if size > room:
            name = _inner(element)
            if name and (not kept or room > size - _size(element[name])):
                kept.append({**element, name: _fitting(element[name], room - (size - _size(element[name])))})
            elif not kept:
                kept.append(element)
            return kept
        kept.append(element)
        room -= size
    return kept


def _inner(element: Any) -> str:
    """Return the field of an element that is a list of objects; empty if there is none."""
    if not isinstance(element, dict):
        return ""
    return next(
        (name for name, each in element.items() if isinstance(each, list) and each and isinstance(each[0], dict)), ""
    )


def _count(elements: list[Any]) -> int:
    return sum(len(each[name]) if (name := _inner(each)) else 1 for each in elements)


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))
