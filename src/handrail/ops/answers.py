"""Answers without what no replay can repeat: times, process ids, and the names of the places it ran in."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_PROCESS = re.compile(r"\b(PIDs?|PGID|pid):? \(?[\d, ]*\d\)?")
_SESSION = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{6}\b")
_VARYING = re.compile(r"(^|_)(ms|time|at|seconds|duration|mtime|modified|pid|pgid)$")


def comparable(value: Any, places: Mapping[str, str], key: str = "") -> Any:
    """`places` maps names of directories to what stands for them in both answers."""
    if isinstance(value, dict):
        return {name: comparable(each, places, name) for name, each in value.items()}
    if isinstance(value, list):
        return [comparable(each, places) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool) and _VARYING.search(key):
        return 0
    if not isinstance(value, str):
        return value
    value = _SESSION.sub("<session>", _MOMENT.sub("<time>", replaced(value, places)))
    return _PROCESS.sub(lambda match: f"{match[1]}: <process>", value)


def replaced(text: str, names: Mapping[str, str]) -> str:
    """Replace names by others in one go, so that what was put in is left alone. The first name that fits wins."""
    return re.sub("|".join(map(re.escape, names)), lambda match: names[match[0]], text) if names else text


def differences(told: Any, got: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two answers differ, each as (place, as it was, as it is)."""
    if isinstance(told, dict) and isinstance(got, dict):
        for key in [*told, *(key for key in got if key not in told)]:
            yield from differences(told.get(key), got.get(key), f"{where}.{key}" if where else str(key))
    elif isinstance(told, list) and isinstance(got, list) and len(told) == len(got):
        for number, (one, two) in enumerate(zip(told, got, strict=True)):
            yield from differences(one, two, f"{where}[{number}]")
    elif told != got:
        yield where, told, got
