"""Keeps a conversation within the model's context: leaves old results out first, then summarises earlier turns."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart

from handrail.model.limits import BYTES_PER_TOKEN

DEFAULT_TOKENS = 128_000
"""The context of a model whose size is unknown."""
_FILL = 0.7
"""The part of the context that a conversation may take up: the rest is for the answer, and for a wrong estimate."""
_RECENT = 8
"""The last messages, whose results stay."""
_SHORT = 400
"""Results of at most so many characters stay."""
_ONE_RESULT = 0.25
"""The part of the context that one result may take up."""

SUMMARY_REQUEST = """\
The conversation is becoming too long. Write a summary that replaces everything above, for yourself. Say what the task \
is, what was done and in which files, what you know now, what failed, and what comes next. Call no tool.\
"""


class Room(NamedTuple):
    """Holds the size of a model's context, in tokens."""

    tokens: int

    @property
    def chars(self) -> int:
        """About how many characters a conversation may have."""
        return int(self.tokens * _FILL * BYTES_PER_TOKEN)

    @property
    def result_chars(self) -> int:
        """About how many characters one result may have."""
        return int(self.tokens * _ONE_RESULT * BYTES_PER_TOKEN)


def shortened(text: str, most: int) -> str:
    """Return a text with its middle left out if it is longer than `most` characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out; ask for a part …]\n{text[-half:]}"


def size_of(messages: Sequence[ModelMessage], instructions: str = "") -> int:
    """Return about how many characters a conversation has."""
    return len(instructions) + sum(len(str(_content(part))) for message in messages for part in message.parts)


def _content(part: object) -> object:
    return getattr(part, "args", None) or getattr(part, "content", "")


def without_old_results(messages: Sequence[ModelMessage], room: Room, instructions: str = "") -> list[ModelMessage]:
    """Replace results by references, the oldest first, until the conversation fits. The last ones stay."""
    fitted, over = list(messages), size_of(messages, instructions) - room.chars
    for at, message in enumerate(messages[:-_RECENT]):
        if over <= 0:
            break
        if isinstance(message, ModelRequest):
            parts = [_reference(part) for part in message.parts]
            over -= size_of([message]) - size_of([ModelRequest(parts)])
            fitted[at] = replace(message, parts=parts)
    return fitted


def _reference(part: object) -> object:
    if not isinstance(part, ToolReturnPart) or len(str(part.content)) <= _SHORT:
        return part
    said = f"[result of {len(str(part.content))} characters left out to save room; call the tool again if you need it]"
    return replace(part, content=said)


def split_for_summary(messages: Sequence[ModelMessage]) -> int:
    """Return how many of the first messages a summary can replace, so that no result is without its call."""
    for at in range(max(len(messages) - _RECENT, 1), len(messages)):
        if isinstance(messages[at], ModelResponse):
            return at
    return 0


def summary_message(task: str, summary: str) -> str:
    """Return the message that stands for the summarised turns."""
    return f"{task}\n\n# What happened so far\n\n{summary}"


def summary_request(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the conversation with the request for a summary."""
    return [*messages, ModelRequest([UserPromptPart(SUMMARY_REQUEST)])]
