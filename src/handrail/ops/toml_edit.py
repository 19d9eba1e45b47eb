"""Edits TOML text that users write. Comments and layout survive.

Import this module lazily: only commands that write a TOML file need tomlkit. Check the text with `toml_read.parse_toml`
first: its guards refuse hostile input.
"""

from typing import Any

import tomlkit
from tomlkit.container import Container, OutOfOrderTableProxy
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Comment, Table, Whitespace

_Body = list[Any]
"""Pairs of a key and a value. Blank lines and comments have no key."""


def add_element(text: str, key: str, entry: dict[str, Any]) -> str:
    """Add an element to the array `key`: a `[[key]]` table, or an inline table if the array is inline."""
    document = _parse(text)
    array: Any = document.get(key)
    if array is not None and not isinstance(array, AoT):
        array.append(_filled(tomlkit.inline_table(), entry))
        return document.as_string()
    table = _filled(tomlkit.table(), entry)
    table.trivia.indent = "\n" if text.strip() else ""
    if array is None:
        document.append(key, tomlkit.aot())
        array = document[key]
    array.append(table)
    return document.as_string()


def remove_element(text: str, key: str, index: int) -> str:
    """Remove an element of the array `key`, with the comment directly above its `[[key]]` line."""
    document = _parse(text)
    array: Any = document[key]
    if not isinstance(array, AoT):
        del array[index]
        return document.as_string()
    following = _take_trailing(array.body[index].value)
    while following and isinstance(following[0][1], Whitespace):
        del following[0]
    body = array.body[index - 1].value.body if index else document.body
    end = len(body) if index else next(n for n, (name, _) in enumerate(body) if name == key)
    start = end
    while start and isinstance(body[start - 1][1], Comment):
        start -= 1
    if len(array) > 1:
        del array[index]
    else:
        document.remove(key)
    body[start:end] = following
    rest = document.as_string().rstrip("\n")
    return f"{rest}\n" if rest else ""


def set_in_element(text: str, key: str, index: int, name: str, value: Any) -> str:
    """Set a value in an element of the array `key`."""
    document = _parse(text)
    array: Any = document[key]
    element = array[index]
    if not isinstance(element, Table):
        element[name] = value
        return document.as_string()
    trailing = _take_trailing(element.value)
    element[name] = value
    element.value.body.extend(trailing)
    return document.as_string()


def set_table(text: str, key: str, name: str, entry: dict[str, Any]) -> str:
    """Set the table `[key.name]` to an entry, or add it. Other tables keep the comments above them."""
    document = _parse(text)
    tables: Any = document.get(key)
    old = tables.get(name) if tables is not None else None
    if isinstance(old, Table):
        _replace_entry(old, entry)
    elif tables is None or isinstance(tables, OutOfOrderTableProxy):
        document.append(key, _super_table(name, entry))
    elif isinstance(tables, Table):
        trailing = _take_trailing(tables.value) if len(tables) else []
        tables[name] = _filled(tomlkit.table(), entry)
        tables[name].trivia.indent = "\n"
        tables[name].value.body.extend(trailing)
    else:
        tables[name] = _filled(tomlkit.inline_table(), entry)
    return document.as_string()


def set_toml(text: str, path: tuple[str, ...], value: Any) -> str:
    """Set the value at a path of one or two keys: a table, an array of tables, or a plain value in a table."""
    if isinstance(value, dict):
        return set_table(text, path[0], path[1], value)
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        for entry in value[len(_parse(text).get(path[0], [])) :]:
            text = add_element(text, path[0], entry)
        return text
    document = _parse(text)
    table: Any = document.get(path[0])
    if table is None:
        document.append(path[0], _filled(tomlkit.table(), {path[1]: value}))
        return document.as_string()
    trailing = _take_trailing(table.value) if isinstance(table, Table) else []
    table[path[1]] = value
    if trailing:
        table.value.body.extend(trailing)
    return document.as_string()


def _replace_entry(table: Table, entry: dict[str, Any]) -> None:
    trailing = _take_trailing(table.value)
    for stale in [name for name in table if name not in entry]:
        del table[stale]
    for name, value in entry.items():
        if table.get(name) != value:
            table[name] = value
    table.value.body.extend(trailing)


def _super_table(name: str, entry: dict[str, Any]) -> Table:
    table = tomlkit.table(is_super_table=True)
    table.append(name, _filled(tomlkit.table(), entry))
    return table


def _filled(table: Any, entry: dict[str, Any]) -> Any:
    for name, value in entry.items():
        table.append(name, value)
    return table


def _parse(text: str) -> tomlkit.TOMLDocument:
    """Parse TOML text for editing. Raises ValueError if tomlkit cannot edit it."""
    try:
        return tomlkit.parse(text if not text or text.endswith("\n") else f"{text}\n")
    except (TOMLKitError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _take_trailing(container: Container) -> _Body:
    """Remove and return the blank lines and comments at the end of a table: they belong to the next table."""
    body = _last_body(container)
    end = len(body)
    while end and body[end - 1][0] is None:
        end -= 1
    trailing = body[end:]
    del body[end:]
    return trailing


def _last_body(container: Container) -> _Body:
    """Return the body of the last table within a table; the body of the table itself if it holds no other."""
    last = next((item for name, item in reversed(container.body) if name is not None), None)
    if isinstance(last, AoT):
        return _last_body(last.body[-1].value)
    return _last_body(last.value) if isinstance(last, Table) else container.body
