"""Makes an answer of a model safe to keep, to show and to send back, whatever its server sent."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

from handrail.tools.exports import api_name

_NAME_CHARS = 64
"""The longest name of a tool that every API takes back."""
_UNNAMED = "unnamed"


def sound(text: str) -> str:
    """Join the halves of surrogate pairs in a text, and replace single ones: no API and no file takes them."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def sound_answer(answer: ModelResponse, taken: set[str]) -> ModelResponse:
    """Return an answer whose texts can be sent, and whose calls have names for an API and IDs that are not taken."""
    parts = [_sound_call(part, taken) if isinstance(part, ToolCallPart) else _sound_text(part) for part in answer.parts]
    return replace(answer, parts=parts)


def _sound_text(part: Any) -> Any:
    if not isinstance(part, TextPart | ThinkingPart):
        return part
    return replace(part, content=sound(part.content), id=part.id and sound(part.id))


def _sound_call(call: ToolCallPart, taken: set[str]) -> ToolCallPart:
    free = (each for each in _numbered(sound(call.tool_call_id) or "call") if each not in taken)
    call_id = next(free)
    taken.add(call_id)
    name = api_name(call.tool_name)[:_NAME_CHARS] or _UNNAMED
    item = call.id and sound(call.id)
    return replace(call, tool_name=name, args=_sound_arguments(call.args), tool_call_id=call_id, id=item)


def _numbered(text: str) -> Iterator[str]:
    yield text
    yield from (f"{text}_{number}" for number in count(2))


def _sound_arguments(arguments: Any) -> Any:
    if isinstance(arguments, str):
        return sound(arguments)
    text = json.dumps(arguments, ensure_ascii=False)
    return arguments if sound(text) == text else json.loads(sound(text))
