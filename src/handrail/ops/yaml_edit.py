"""Edits the plain part of YAML that programs write: block mappings of scalars and lists. Refuses everything else.

Lines that an edit does not concern stay as they are and are not even read.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

_KEY = re.compile(r"( *)([A-Za-z_][\w.-]*):(?: +(.*?))? *$")
_ITEM = re.compile(r" *- +(.*?) *$")
_COMMENT = re.compile(r"(?:^| )#")
_ODD = re.compile(r"[&*!|>%@`{\[]")
_PLAIN = {"true": True, "false": False, "null": None, "~": None, "": None}


class _YamlKey(NamedTuple):
    """Holds one line with a key: the end is the number of the first line behind its block."""

    start: int
    end: int
    indent: int
    value: str


def parse_yaml(text: str, path: Sequence[str]) -> Any:
    """Return the value at a path of keys; None if there is none. Raises ValueError for a form that is not plain."""
    lines = _lines(text)
    found = _find(lines, path)
    return _read(lines, found) if found else None


def set_yaml(text: str, path: Sequence[str], value: Any) -> str:
    """Set the value at a path of keys; make the missing mappings on the way. Raises ValueError."""
    lines = _lines(text)
    depth = len(path)
    while depth and not (found := _find(lines, path[:depth])):
        depth -= 1
    if depth == len(path):
        lines[found.start : found.end] = _written(path[-1], value, found.indent)  # type: ignore[union-attr]
    else:
        for key in reversed(path[depth + 1 :]):
            value = {key: value}
        at, indent = _room(lines, found if depth else None)
        lines[at:at] = _written(path[depth], value, indent)
    return "\n".join(lines) + "\n"


def _lines(text: str) -> list[str]:
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    for line in lines:
        if line and line[0] not in " #" and line != "---" and not _KEY.match(line) and not line.startswith("- "):
            raise ValueError(f"the line {line[:60]!r} is not a plain mapping")
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise ValueError("a tab indents a line")
    first = next((line for line in lines if line != "---" and not _is_blank(line)), "key:")
    if not _KEY.match(first) or first.startswith(" "):
        raise ValueError("it does not begin with a key")
    if "---" in lines[1:]:
        raise ValueError("it holds several documents")
    return lines


def _find(lines: list[str], path: Sequence[str]) -> _YamlKey | None:
    """Return the line of the key at a path."""
    here, start, end = None, 0, len(lines)
    for key in path:
        if here is not None and here.value not in ("", "{}"):
            raise ValueError(f"{key} would lie in a value that is not a plain mapping")
        indent = _indent_of(lines, start, end)
        matches = [at for at in range(start, end) if _has_key(lines[at], indent, key)]
        if len(matches) > 1:
            raise ValueError(f"the key {key!r} appears twice")
        if not matches:
            return None
        at = matches[0]
        stop = next((n for n in range(at + 1, end) if _is_outside(lines[n], indent)), end)
        while stop > at + 1 and _is_blank(lines[stop - 1]):
            stop -= 1
        here = _YamlKey(at, stop, indent, _value(lines[at]))
        start, end = at + 1, stop
    return here


def _value(line: str) -> str:
    """Return the text after the key of a line, without its comment."""
    found = _KEY.match(line)
    text = (found[3] if found else "") or ""
    return text if text.startswith(('"', "[", "{")) else _COMMENT.split(text, maxsplit=1)[0].strip()


def _has_key(line: str, indent: int, key: str) -> bool:
    found = _KEY.match(line)
    return found is not None and (len(found[1]), found[2]) == (indent, key)


def _is_outside(line: str, indent: int) -> bool:
    """Return True if a line cannot belong to a block whose key has this indentation."""
    at = len(line) - len(line.lstrip(" "))
    return not _is_blank(line) and (at < indent or (at == indent and not line.startswith("- ", at)))


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _indent_of(lines: list[str], start: int, end: int) -> int:
    first = (line for line in lines[start:end] if line != "---" and not _is_blank(line))
    return next((len(line) - len(line.lstrip(" ")) for line in first), 0)


def _room(lines: list[str], parent: _YamlKey | None) -> tuple[int, int]:
    """Return the place and the indentation of a new key at the end of a mapping."""
    if parent is None:
        return len(lines), 0
    key = lines[parent.start]
    if parent.end == parent.start + 1:
        lines[parent.start] = key[: key.index(":") + 1]  # the mapping was empty, or written as {}
        return parent.end, parent.indent + 2
    return parent.end, _indent_of(lines, parent.start + 1, parent.end)


def _written(key: str, value: Any, indent: int) -> list[str]:
    """Return the lines of a key. JSON is YAML, so scalars and lists are written as JSON."""
    pad = " " * indent
    if not isinstance(value, dict) or not value:
        return [f"{pad}{key}: {json.dumps(value, ensure_ascii=False)}"]
    return [f"{pad}{key}:", *(line for name in value for line in _written(name, value[name], indent + 2))]


def _read(lines: list[str], line: _YamlKey) -> Any:
    if line.value:
        return _scalar(line.value)
    below = [each for each in lines[line.start + 1 : line.end] if not _is_blank(each)]
    if below and below[0].lstrip().startswith("- "):
        return [_scalar(found[1]) for each in below if (found := _ITEM.match(each))]
    indent = _indent_of(below, 0, len(below))
    keys = [found[2] for each in below if (found := _KEY.match(each)) and len(found[1]) == indent]
    return {key: _read(below, at) for key in keys if (at := _find(below, (key,)))} or None


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass  # not JSON: a plain or a quoted word
    if text[:1] == "'" == text[-1:]:
        return text[1:-1].replace("''", "'")
    if _ODD.match(text):
        raise ValueError(f"the value {text[:60]!r} is not plain")
    return _PLAIN.get(text, text)
