"""Wording faults. A dialect's own table goes before the common one, `tools/common_messages.py`.

A table maps a fault, or a tool's name and a fault, to what is said: a code, a message and a suggestion for the model,
and for the user what would allow it, as format strings over the fault's facts, the root and the call's parameters, or
as functions of these.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from handrail.model.faults import Fault

Facts = dict[str, Any]
Sentence = str | Callable[[Facts], str]


class Message(NamedTuple):
    code: str
    message: Sentence
    suggestion: Sentence = ""
    allow: Sentence = ""
    """What would allow it: told to the user, who alone may loosen anything, and never part of an answer."""


class ToolError(NamedTuple):
    code: str
    message: str
    suggestion: str


Key = type[Fault] | tuple[str, type[Fault]]
Words = dict[Key, Message]


def render(tables: tuple[Words, ...], tool: str, fault: Fault, context: Facts) -> ToolError:
    """What to say about `fault`: the nearest kind wins, and for one kind the tool's own words."""
    for say in _words_for(tables, tool, fault):
        facts = context | fault.facts()
        return ToolError(say.code, _fill(say.message, facts), _fill(say.suggestion, facts))
    raise LookupError(f"{type(fault).__name__} has no words")


def how_to_allow(tables: tuple[Words, ...], tool: str, fault: Fault, context: Facts) -> str:
    """Words what would allow what `fault` refused, for the user; empty if nothing would."""
    said = (_fill(say.allow, context | fault.facts()) for say in _words_for(tables, tool, fault))
    return next((line for line in said if line), "")


def _words_for(tables: tuple[Words, ...], tool: str, fault: Fault) -> Iterator[Message]:
    """Finds what the tables say about `fault`, the best match first."""
    for kind in type(fault).__mro__:
        for table in tables:
            say = table.get((tool, kind)) or table.get(kind)
            if say is not None:
                yield say


def _fill(text: Sentence, facts: Facts) -> str:
    return text.format(**facts) if isinstance(text, str) else text(facts)
