"""Words faults and warnings. The table of a dialect goes before the common one (`tools/common_messages.py`).

A table maps a fault, or a tool's name and a fault, to a message: a code, a sentence and a suggestion for the model, and
what would allow the call, for the user. Sentences are format strings over the facts of the fault, the root and the
parameters of the call, or functions of these.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from handrail.model.facts import FactRecord

Facts = dict[str, Any]
Sentence = str | Callable[[Facts], str]


class Message(NamedTuple):
    """Holds what a table says about one kind of fault."""

    code: str
    message: Sentence
    suggestion: Sentence = ""
    allow: Sentence = ""
    """The action that would allow the call: for the user, never part of a result."""


class ToolError(NamedTuple):
    """Holds the error of a result: a code, a message and a suggestion."""

    code: str
    message: str
    suggestion: str


Key = type[FactRecord] | tuple[str, type[FactRecord]]
Words = dict[Key, Message]


def render(tables: tuple[Words, ...], tool: str, fault: FactRecord, context: Facts) -> ToolError:
    """Return the error for a fault. Its class wins over a base class; for one class, the tool's own message wins."""
    for say in _words_for(tables, tool, fault):
        facts = context | fault.facts()
        return ToolError(say.code, _fill(say.message, facts), _fill(say.suggestion, facts))
    raise LookupError(f"{type(fault).__name__} has no message")


def how_to_allow(tables: tuple[Words, ...], tool: str, fault: FactRecord, context: Facts) -> str:
    """Return what would allow the call that a fault refused, for the user; empty if nothing would."""
    said = (_fill(say.allow, context | fault.facts()) for say in _words_for(tables, tool, fault))
    return next((line for line in said if line), "")


def _words_for(tables: tuple[Words, ...], tool: str, fault: FactRecord) -> Iterator[Message]:
    """Yield the messages for a fault, the best match first."""
    for kind in type(fault).__mro__:
        for table in tables:
            say = table.get((tool, kind)) or table.get(kind)
            if say is not None:
                yield say


def _fill(text: Sentence, facts: Facts) -> str:
    return text.format(**facts) if isinstance(text, str) else text(facts)
