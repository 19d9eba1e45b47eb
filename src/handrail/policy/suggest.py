"""Suggests a rule that covers a little more than exactly one call. The user sees it before it is stored."""

import json
import re

from handrail.model.approval import Question
from handrail.model.limits import Limits
from handrail.ops.shell.command_programs import parse_command
from handrail.policy.rules import REST, exact_pattern

_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:-]*")
_STRING = r'"(?:[^"\\]|\\.)*"'


def suggestion(question: Question, limits: Limits) -> str:
    """Return the rule text as a user can type it: the words of a command as JSON, or a regular expression."""
    if question.command and not question.terminal:
        return _command_words(question, limits)
    if question.host:
        return _site_pattern(question)
    return _files_pattern(question)


def _exact(question: Question) -> str:
    return exact_pattern(question.meant or question.given)


def _command_words(question: Question, limits: Limits) -> str:
    """Return the program and its subcommand with any arguments; a command that starts other programs stays exact."""
    line = parse_command(question.command, limits.command_chars)
    if line.simple is None or line.unknown or line.assigns or len(line.commands) != 1:
        return _exact(question)
    program, *rest = line.simple
    sub = [rest[0]] if rest and _SUBCOMMAND.fullmatch(rest[0]) else []
    return json.dumps([program, *sub, REST], ensure_ascii=False)


def _site_pattern(question: Question) -> str:
    """Return a pattern for every page of the same site."""
    meant = question.resolved or {}
    start = re.match(r"https?://[^/?#]+", str(meant.get("url", "")))
    if start is None:
        return _exact(question)
    others = [f'"{name}":{_value(value)}' for name, value in meant.items() if name != "url"]
    site = f'"url":"{_inside_quotes(start[0])}(?:[/?#](?:[^"\\\\]|\\\\.)*)?"'
    return rf"^\{{{','.join([site, *others])}\}}$"


def _files_pattern(question: Question) -> str:
    """Return a pattern for files with the same suffix in the same directory, with any content."""
    parts = []
    for name, value in (question.resolved or question.params).items():
        if name in question.paths and isinstance(value, str):
            parts.append(f'"{name}":"{_siblings(value)}"')
        elif name == "targets":
            parts.append(f'"targets":{_siblings_of_all(value)}')
        else:
            parts.append(f'"{name}":{_STRING if isinstance(value, str) else _value(value)}')
    return rf"^\{{{','.join(parts)}\}}$"


def _siblings_of_all(paths: list[str]) -> str:
    kinds = list(dict.fromkeys(map(_siblings, paths)))
    one = f'"{kinds[0]}"' if len(kinds) == 1 else f'"(?:{"|".join(kinds)})"'
    return rf"\[{one}(?:,{one})*\]"


def _siblings(path: str) -> str:
    """Return a pattern for files with the same suffix in the same directory."""
    if '"' in path or "\\" in path:
        return _inside_quotes(path)  # a path with such characters stays exact
    directory, slash, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    end = _inside_quotes(f".{suffix}") if dot and stem else ""
    return f'{_inside_quotes(directory + slash)}[^"/\\\\]+{end}'


def _inside_quotes(text: str) -> str:
    return _value(text)[1:-1]


def _value(value: object) -> str:
    return re.escape(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
