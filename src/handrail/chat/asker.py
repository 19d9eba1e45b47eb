"""Asks a model for one answer, as a stream, and asks again if the model's server fails for a moment."""

from collections.abc import Callable
from typing import Any

import anyio
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.settings import ModelSettings

from handrail.chat import model_errors
from handrail.chat.model_errors import (
    AnswerCutError,
    AnswerRefusedError,
    AnswerTooLargeError,
    ContextExceededError,
    ModelFailedError,
)
from handrail.chat.sound_answers import sound, sound_answer
from handrail.model.limits import KIB, MIB

Event = dict[str, Any]

LONGEST = 2 * MIB
"""The most characters of an answer: four times the longest that models give."""

_END = "finish_reason"
"""What a server says at the end of an answer. The library assumes it for Chat Completions, where some leave it out."""
_PART_CHARS = 2 * KIB
"""What each text and each call counts at least: so an answer has at most a thousand calls."""


class EventHandlerError(Exception):
    """The caller's handler of events failed; holds its error. The model is not asked again: it made no mistake."""


class Asker:
    """Sends conversations to one model with the same instructions and settings."""

    def __init__(
        self,
        model: Model,
        settings: ModelSettings,
        instructions: str,
        emit: Callable[[Event], None],
        instrument: InstrumentationSettings | bool = False,
    ) -> None:
        """`instrument` says whether the model library describes its requests as OpenTelemetry spans."""
        self._model, self._settings, self._instructions = model, settings, instructions
        self._emit, self._instrument = emit, instrument

    async def ask(self, messages: list[ModelMessage], tools: ModelRequestParameters) -> ModelResponse:
        """Return a sound answer of the model; ask again if the server fails for a moment.

        Raises ModelFailedError, and ContextExceededError if the conversation is too long.
        """
        for attempt in range(model_errors.RETRIES + 1):
            try:
                return sound_answer(await self._stream(messages, tools), _call_ids(messages))
            except EventHandlerError:
                raise
            except ModelContextWindowExceededError as error:
                raise ContextExceededError(model_errors.reason(error, self._model)) from error
            except Exception as error:
                reason, wait = model_errors.reason(error, self._model), model_errors.wait_after(error, attempt)
                if attempt == model_errors.RETRIES or not model_errors.may_pass(error):
                    raise ModelFailedError(reason) from error
            self._emit({"type": "retry", "reason": reason, "seconds": wait})
            await anyio.sleep(wait)
        raise AssertionError

    async def _stream(self, messages: list[ModelMessage], tools: ModelRequestParameters) -> ModelResponse:
        first = ModelRequest([], instructions=self._instructions)
        end, left = anyio.current_time() + model_errors.ANSWER_SECONDS, LONGEST
        with anyio.fail_after(model_errors.IDLE_SECONDS) as idle:
            async with model_request_stream(
                self._model,
                [first, *messages],
                model_settings=self._settings,
                model_request_parameters=tools,
                instrument=self._instrument,
            ) as stream:
                async for event in stream:
                    idle.deadline = min(end, anyio.current_time() + model_errors.IDLE_SECONDS)
                    left -= _length(event)
                    if left < 0:
                        raise AnswerTooLargeError(f"an answer of more than {LONGEST // MIB} MiB of text and calls")
                    if text := sound(_text_of(event)):
                        self._emit({"type": "text", "text": text})
        if idle.cancel_called:
            raise TimeoutError  # the model library took the cancellation for the end of the answer
        answer = stream.get()
        if self._model.base_url and answer.finish_reason is None and not (answer.provider_details or {}).get(_END):
            raise AnswerCutError("the answer broke off")
        if answer.finish_reason == "content_filter":
            raise AnswerRefusedError("a filter of the model's server stopped the answer")
        return answer


def _call_ids(messages: list[ModelMessage]) -> set[str]:
    return {part.tool_call_id for message in messages for part in message.parts if isinstance(part, ToolCallPart)}


def _length(event: object) -> int:
    """Return how many characters an event adds to an answer. A part counts more, so that no answer has many."""
    if isinstance(event, PartStartEvent):
        return _PART_CHARS + len(str(getattr(event.part, "content", None) or getattr(event.part, "args", None) or ""))
    delta = getattr(event, "delta", None)
    return len(str(getattr(delta, "content_delta", None) or getattr(delta, "args_delta", None) or ""))


def _text_of(event: object) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return str(event.part.content)
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return str(event.delta.content_delta)
    return ""
