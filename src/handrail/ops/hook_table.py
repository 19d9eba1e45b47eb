"""Reads the table `hooks` of the settings, in the shape of Claude Code: event → groups with a matcher → commands."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from handrail.errors import SettingsError, did_you_mean
from handrail.model.hooks import EVENTS, Hook

_NAMES = re.compile(r"[\w.|-]*")
_GROUP = ("matcher", "pattern", "hooks")
_HANDLER = ("type", "command", "timeout")
_ANY = ("", "*")


def read_hooks(value: Any, where: str, source: str = "") -> tuple[Hook, ...]:
    """Return the hooks of a table. Raises SettingsError; `where` begins the message."""
    if not isinstance(value, Mapping):
        raise SettingsError(f"{where}hooks must be a table of events, not {value!r}")
    found: list[Hook] = []
    for event, groups in value.items():
        if event not in EVENTS:
            raise SettingsError(f"{where}unknown event {event!r} in hooks{did_you_mean(str(event), EVENTS)}")
        for group in _tables(groups, f"{where}hooks.{event}"):
            found += _hooks_of(event, group, f"{where}hooks.{event}", source)
    return tuple(found)


def _hooks_of(event: str, group: Mapping[str, Any], where: str, source: str) -> Iterator[Hook]:
    _expect_keys(group, _GROUP, where)
    matcher, pattern = _text(group, "matcher", where), _text(group, "pattern", where)
    for each in (pattern, "" if matcher in _ANY or _NAMES.fullmatch(matcher) else matcher):
        _expect_regex(each, where)
    for handler in _tables(group.get("hooks", []), f"{where}.hooks"):
        _expect_keys(handler, _HANDLER, where)
        if handler.get("type", "command") != "command":
            raise SettingsError(f"{where}: type must be 'command', not {handler['type']!r}")
        command = _text(handler, "command", where)
        if not command.strip() or "\0" in command:
            raise SettingsError(f"{where}: a hook needs a command")
        yield Hook(event, command, matcher, pattern, _seconds(handler.get("timeout"), where), source)


def _tables(value: Any, where: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, Mapping) for each in value):
        raise SettingsError(f"{where} must be a list of tables, not {value!r}")
    return list(value)


def _expect_keys(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise SettingsError(f"{where}: unknown key {key!r}{did_you_mean(str(key), known)}")


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise SettingsError(f"{where}: {key} must be a text, not {value!r}")
    return value


def _seconds(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
        raise SettingsError(f"{where}: timeout must be a number of seconds, not {value!r}")
    return float(value)


def _expect_regex(pattern: str, where: str) -> None:
    if not pattern:
        return
    import regex  # noqa: PLC0415  most hooks name their tools

    try:
        regex.compile(pattern)
    except (regex.error, RecursionError) as error:
        raise SettingsError(f"{where}: {pattern!r} is not a regular expression: {error}") from None


def concerns(hook: Hook, dialect: str, tool: str, text: str, seconds: float) -> bool:
    """Return whether a hook runs for a call; `text` is the input as compact JSON.

    A pattern that takes longer than `seconds` counts as a match: the hook itself then judges the call.
    """
    return _names_tool(hook.matcher, dialect, tool, seconds) and (
        not hook.pattern or _matches(hook.pattern, text, seconds)
    )


def _names_tool(matcher: str, dialect: str, tool: str, seconds: float) -> bool:
    if matcher in _ANY:
        return True
    names = (tool, f"{dialect}.{tool}")
    if _NAMES.fullmatch(matcher):
        return not {*names}.isdisjoint(matcher.split("|"))
    return any(_matches(matcher, name, seconds) for name in names)


def _matches(pattern: str, text: str, seconds: float) -> bool:
    import regex  # noqa: PLC0415  slow to import; `re` has no time limit

    try:
        return regex.search(pattern, text, timeout=seconds) is not None
    except TimeoutError:
        return True
