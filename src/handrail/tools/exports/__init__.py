"""Exports tools in the forms of function-calling APIs, one module for each API. This one holds what they share."""

import json
from typing import Any

Json = dict[str, Any]


def api_name(name: str) -> str:
    """Return the name for APIs that allow letters, digits, underscores and dashes only."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)


def arguments_of(given: Any) -> Any:
    """Return the arguments of a call, which some APIs send as JSON text."""
    try:
        return json.loads(given or "{}") if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return given  # not an object: the router says so


def plain(value: Any) -> Json:
    """Return an SDK's object, or the JSON it came from, as a dictionary."""
    if isinstance(value, dict):
        return value
    dump = getattr(value, "model_dump", None)
    return dict(dump() if dump else vars(value))
