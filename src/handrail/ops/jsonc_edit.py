"""Edits JSON text that users write, with comments and trailing commas. Comments and layout survive."""

import json
import re
from collections.abc import Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]  # the types do not list this function of the module
from typing import Any, NamedTuple

_DEEPEST = 100
_SPACE = re.compile(r"(?>[ \t\r\n]++|//[^\n]*+|/\*(?>[^*]|\*(?!/))*+\*/)*+")
_ATOM = re.compile(r"-?\d++(?:\.\d++)?(?:[eE][+-]?\d++)?(?![\w.])|(?:true|false|null)\b")
_INDENT = re.compile(r"^([ \t]+)\S", re.MULTILINE)


class _Node(NamedTuple):
    """Holds one value with its place in the text, and the nodes of its members or items."""

    start: int
    end: int
    value: Any
    members: "dict[str, _Node]"
    items: "Sequence[_Node]"


def parse_jsonc(text: str) -> Any:
    """Return the value of JSON text with comments; an empty object for an empty text. Raises ValueError."""
    return _parse(text).value if text.strip() else {}


def set_jsonc(text: str, path: Sequence[str], value: Any) -> str:
    """Set the value at a path of keys; make the missing objects on the way. Raises ValueError.

    If the path holds an array that the new one only continues, its comments survive too.
    """
    text = text if text.strip() else "{}\n"
    node, depth = _parse(text), 0
    while depth < len(path) and path[depth] in node.members:
        node, depth = node.members[path[depth]], depth + 1
    if depth < len(path):
        if not isinstance(node.value, dict):
            raise ValueError(f"{'.'.join(path[:depth]) or 'the text'} is not an object")
        for key in reversed(path[depth + 1 :]):
            value = {key: value}
        return _insert(text, node, [*node.members.values()], depth, [(json.dumps(path[depth]) + ": ", value)])
    if isinstance(value, list) and isinstance(node.value, list) and value[: len(node.value)] == node.value:
        more = [("", each) for each in value[len(node.value) :]]
        return _insert(text, node, node.items, depth, more) if more else text
    return text[: node.start] + _dump(text, value, depth) + text[node.end :]


def _insert(text: str, node: _Node, inside: Sequence[_Node], depth: int, new: list[tuple[str, Any]]) -> str:
    """Add members or items at the end of an object or an array."""
    close = node.end - 1
    last = inside[-1].end if inside else node.start + 1
    content = last + len(text[last:close].rstrip())  # behind the last value, its comma and the comments after it
    comma = "," if inside and not _after_space(text, last, close).startswith(",") else ""
    if "\n" not in text[node.start : node.end] and inside:
        added = ", ".join(f"{name}{json.dumps(value, ensure_ascii=False)}" for name, value in new)
        return f"{text[:last]}{comma}{text[last:content]} {added}{text[close:]}"
    unit = _unit(text)
    lines = ",".join(f"\n{unit * (depth + 1)}{name}{_dump(text, value, depth + 1)}" for name, value in new)
    head = f"{text[:last]}{comma}{text[last:content]}"
    return f"{head}{lines}\n{unit * depth}{text[close:]}"


def _after_space(text: str, start: int, end: int) -> str:
    found = _SPACE.match(text, start)
    return text[found.end() if found else start : end]


def _dump(text: str, value: Any, depth: int) -> str:
    unit = _unit(text)
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{unit * depth}")


def _unit(text: str) -> str:
    """Return the indentation of one level in a text; two spaces if no line is indented."""
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _parse(text: str) -> _Node:
    node = _value(text, _skip(text, 0), 0)
    if (end := _skip(text, node.end)) != len(text):
        raise ValueError(f"unexpected text at character {end}")
    return node


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int, depth: int) -> _Node:
    if depth > _DEEPEST:
        raise ValueError("it is nested too deeply")
    match text[at : at + 1]:
        case "{":
            return _object(text, at, depth)
        case "[":
            return _array(text, at, depth)
        case '"':
            value, end = scanstring(text, at + 1)
            return _Node(at, end, value, {}, ())
    found = _ATOM.match(text, at)
    if not found:
        raise ValueError(f"no JSON value at character {at}")
    return _Node(at, found.end(), json.loads(found[0]), {}, ())


def _object(text: str, start: int, depth: int) -> _Node:
    members: dict[str, _Node] = {}
    at = _skip(text, start + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise ValueError(f"no key at character {at}")
        key, end = scanstring(text, at + 1)
        if key in members:
            raise ValueError(f"the key {key!r} appears twice")
        colon = _skip(text, end)
        if text[colon : colon + 1] != ":":
            raise ValueError(f"no colon at character {colon}")
        members[key] = _value(text, _skip(text, colon + 1), depth + 1)
        at = _next(text, members[key].end, "}")
    return _Node(start, at + 1, {name: each.value for name, each in members.items()}, members, ())


def _array(text: str, start: int, depth: int) -> _Node:
    items: list[_Node] = []
    at = _skip(text, start + 1)
    while text[at : at + 1] != "]":
        items.append(_value(text, at, depth + 1))
        at = _next(text, items[-1].end, "]")
    return _Node(start, at + 1, [each.value for each in items], {}, items)


def _next(text: str, end: int, close: str) -> int:
    """Return the place of the next member or item, or of the closing bracket."""
    at = _skip(text, end)
    if text[at : at + 1] == ",":
        return _skip(text, at + 1)
    if text[at : at + 1] != close:
        raise ValueError(f"no comma at character {at}")
    return at
