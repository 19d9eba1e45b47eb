"""Asks a model for one answer, as a stream, and asks again if the model's server fails for a moment."""

from collections.abc import Callable
from typing import Any

import anyio
from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.settings import ModelSettings

from handrail.chat import model_errors
from handrail.chat.model_errors import ModelFailedError

Event = dict[str, Any]


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
        """Return an answer of the model; ask again if the server fails for a moment. Raises ModelFailedError."""
        for attempt in range(model_errors.RETRIES + 1):
            try:
                return await self._stream(messages, tools)
            except EventHandlerError:
                raise
            except Exception as error:
                reason, wait = model_errors.reason(error), model_errors.wait_after(error, attempt)
                if attempt == model_errors.RETRIES or not model_errors.may_pass(error):
                    raise ModelFailedError(reason) from error
            self._emit({"type": "retry", "reason": reason, "seconds": wait})
            await anyio.sleep(wait)
        raise AssertionError

    async def _stream(self, messages: list[ModelMessage], tools: ModelRequestParameters) -> ModelResponse:
        first = ModelRequest([], instructions=self._instructions)
        with anyio.fail_after(model_errors.IDLE_SECONDS) as idle:
            async with model_request_stream(
                self._model,
                [first, *messages],
                model_settings=self._settings,
                model_request_parameters=tools,
                instrument=self._instrument,
            ) as stream:
                async for event in stream:
                    idle.deadline = anyio.current_time() + model_errors.IDLE_SECONDS
                    if text := _text_of(event):
                        self._emit({"type": "text", "text": text})
        return stream.get()


def _text_of(event: object) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return str(event.part.content)
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return str(event.delta.content_delta)
    return ""
