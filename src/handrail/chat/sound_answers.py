"""Makes an answer of a model safe to keep, to show and to send back, whatever its server sent."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from math import isfinite
from typing import Any

from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart

from handrail.tools.exports import api_name

_NAME_CHARS = 64
"""The longest name of a tool that every API takes back."""
_UNNAMED = "unnamed"
_ODD_NUMBER = re.compile(r"NaN|Infinity|\d[eE]\+?\d{3}")


def sound(text: str) -> str:
    """Join the halves of surrogate pairs in a text, and replace single ones: no API and no file takes them."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def finite(text: str) -> str:
    """Replace numbers that JSON does not have, such as NaN and 1e999, in JSON text by texts."""
    if not _ODD_NUMBER.search(text):
        return text
    try:
        found = json.loads(text, parse_constant=str, parse_float=lambda n: f if isfinite(f := float(n)) else n)
    except (ValueError, RecursionError):
        return text  # no JSON: the router says so
    return json.dumps(found, ensure_ascii=False)


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
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    clean = finite(sound(text))
    if clean == text:
        return arguments
    return clean if isinstance(arguments, str) else json.loads(clean)
