"""A rule that a person may want beside "exactly this call": a little wider, and shown before it is stored."""

import json
import re

from handrail.model.approval import Question
from handrail.model.limits import Limits
from handrail.ops.shell.command_programs import parse_command
from handrail.policy.rules import REST, exact_pattern

_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:-]*")
_STRING = r'"(?:[^"\\]|\\.)*"'


def suggestion(question: Question, limits: Limits) -> str:
    """As it can be typed: the words of a command as JSON, or a regular expression."""
    if question.command and not question.terminal:
        return _command(question, limits)
    if question.host:
        return _page(question)
    return _files(question)


def _exact(question: Question) -> str:
    return exact_pattern(question.meant or question.given)


def _command(question: Question, limits: Limits) -> str:
    """The program and its subcommand with any arguments; what starts other programs stays as it is."""
    line = parse_command(question.command, limits.command_chars)
    if line.simple is None or line.unknown or line.assigns or len(line.commands) != 1:
        return _exact(question)
    program, *rest = line.simple
    sub = [rest[0]] if rest and _SUBCOMMAND.fullmatch(rest[0]) else []
    return json.dumps([program, *sub, REST], ensure_ascii=False)


def _page(question: Question) -> str:
    """The same site."""
    meant = question.resolved or {}
    start = re.match(r"https?://[^/?#]+", str(meant.get("url", "")))
    if start is None:
        return _exact(question)
    others = [f'"{name}":{_value(value)}' for name, value in meant.items() if name != "url"]
    site = f'"url":"{_inside_quotes(start[0])}(?:[/?#](?:[^"\\\\]|\\\\.)*)?"'
    return rf"^\{{{','.join([site, *others])}\}}$"


def _files(question: Question) -> str:
    """The same kind of file in the same directory, whatever is written into it."""
    parts = []
    for name, value in (question.resolved or question.params).items():
        if name in question.paths and isinstance(value, str):
            parts.append(f'"{name}":"{_beside(value)}"')
        elif name == "targets":
            parts.append(f'"targets":{_all_beside(value)}')
        else:
            parts.append(f'"{name}":{_STRING if isinstance(value, str) else _value(value)}')
    return rf"^\{{{','.join(parts)}\}}$"


def _all_beside(places: list[str]) -> str:
    kinds = list(dict.fromkeys(map(_beside, places)))
    one = f'"{kinds[0]}"' if len(kinds) == 1 else f'"(?:{"|".join(kinds)})"'
    return rf"\[{one}(?:,{one})*\]"


def _beside(path: str) -> str:
    if '"' in path or "\\" in path:
        return _inside_quotes(path)  # too odd to be widened
    directory, slash, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    end = _inside_quotes(f".{suffix}") if dot and stem else ""
    return f'{_inside_quotes(directory + slash)}[^"/\\\\]+{end}'


def _inside_quotes(text: str) -> str:
    return _value(text)[1:-1]


def _value(value: object) -> str:
    return re.escape(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
