"""Keeps a conversation within the model's context: leaves old results out first, then summarises earlier turns."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)

from handrail.model.limits import BYTES_PER_TOKEN

DEFAULT_TOKENS = 128_000
"""The context of a model whose size is unknown."""
_FILL = 0.7
"""The part of the context that a conversation may take up: the rest is for the answer, and for a wrong estimate."""
_SPARE = 0.2
"""The part of the room that is made free beyond what is needed: so the beginning of a conversation changes seldom."""
_RECENT = 8
"""The last messages, which no summary replaces if they are short."""
_SHORT = 400
"""Results of at most so many bytes stay."""
_ONE_RESULT = 0.25
"""The part of the context that one result may take up."""
_ALL_RESULTS = 0.5
"""The part of the context that the results of one answer may take up together."""
_PICTURE_TOKENS = 1600
_SMALLER = 0.6
"""How much of a conversation that the server found too long is tried next."""

SUMMARY_REQUEST = """\
The conversation is becoming too long. Write a summary that replaces everything above, for yourself. Say what the task \
is, what was done and in which files, what you know now, what failed, and what comes next. Call no tool.\
"""


class Room(NamedTuple):
    """Holds the size of a model's context, in tokens. Text is measured in bytes of UTF-8: four are about a token."""

    tokens: int

    @property
    def size(self) -> int:
        """About how many bytes a conversation may have."""
        return int(self.tokens * _FILL * BYTES_PER_TOKEN)

    def result_size(self, results: int) -> int:
        """Return about how many bytes each of so many results may have."""
        return int(self.tokens * min(_ONE_RESULT, _ALL_RESULTS / results) * BYTES_PER_TOKEN)

    def less_than(self, size: int) -> "Room":
        """Return a room that is too small for a conversation of this size, which the server found too long."""
        return Room(int(min(size, self.size) * _SMALLER / (_FILL * BYTES_PER_TOKEN)))


def shortened(text: str, most: int) -> str:
    """Return a text with its middle left out if it is longer than `most` bytes."""
    data = text.encode(errors="replace")
    if len(data) <= most:
        return text
    half = most // 2
    head, tail = data[:half].decode(errors="ignore"), data[len(data) - half :].decode(errors="ignore")
    return f"{head}\n[… {len(data) - 2 * half} bytes left out; ask for a part …]\n{tail}"


def size_of(messages: Sequence[ModelMessage], always: str = "") -> int:
    """Return about how many bytes a conversation has, with what is sent `always`; a picture counts by its tokens."""
    return _bytes_of(always) + sum(_bytes_of(_content(part)) for message in messages for part in message.parts)


def _content(part: object) -> object:
    return getattr(part, "args", None) or getattr(part, "content", "")


def _bytes_of(content: object) -> int:
    if isinstance(content, list):
        return sum(map(_bytes_of, content))
    if isinstance(content, BinaryContent):
        return _PICTURE_TOKENS * BYTES_PER_TOKEN
    return len(str(content).encode(errors="replace"))


def without_old_results(messages: Sequence[ModelMessage], room: Room, always: str = "") -> list[ModelMessage]:
    """Replace results by references, the oldest first, until the conversation fits. Those of the last answer stay."""
    fitted, over = list(messages), size_of(messages, always) - room.size
    if over > 0:
        over += int(room.size * _SPARE)
    for at, message in enumerate(messages[:-1]):
        if over <= 0:
            break
        if isinstance(message, ModelRequest):
            parts = [_reference(part) for part in message.parts]
            over -= size_of([message]) - size_of([ModelRequest(parts)])
            fitted[at] = replace(message, parts=parts)
    return fitted


def _reference(part: object) -> object:
    if not isinstance(part, ToolReturnPart) or (size := _bytes_of(part.content)) <= _SHORT:
        return part
    said = f"[result of {size} bytes left out to save room; call the tool again if you need it]"
    return replace(part, content=said)


def split_for_summary(messages: Sequence[ModelMessage], room: Room) -> int:
    """Return how many of the first messages a summary can replace, so that no result is without its call.

    The messages that stay take up at most half of the room, but the last answer always stays.
    """
    starts = [at for at in range(1, len(messages)) if isinstance(messages[at], ModelResponse)]
    recent = [at for at in starts if at >= len(messages) - _RECENT]
    return next((at for at in recent if size_of(messages[at:]) <= room.size // 2), starts[-1] if starts else 0)


def summary_message(task: str, summary: str) -> str:
    """Return the message that stands for the summarised turns."""
    return f"{task}\n\n# What happened so far\n\n{summary}"


def summary_request(messages: Sequence[ModelMessage], room: Room) -> list[ModelMessage]:
    """Return the conversation with the request for a summary, without the oldest turns if there is no room for them."""
    first, *rest = messages
    while size_of(rest) > room.size and (half := _answer_after(rest, len(rest) // 2)):
        rest = rest[half:]
    return [first, *rest, ModelRequest([UserPromptPart(SUMMARY_REQUEST)])]


def _answer_after(messages: Sequence[ModelMessage], start: int) -> int:
    """Return the place of the first answer of the model from `start` on; 0 if there is none."""
    return next((at for at in range(max(start, 1), len(messages)) if isinstance(messages[at], ModelResponse)), 0)
