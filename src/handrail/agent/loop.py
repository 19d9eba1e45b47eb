"""Asks the model, runs the tools that it calls, and repeats this until it calls none or a budget is spent."""

import base64
from collections.abc import Callable
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.instrumented import InstrumentationSettings

from handrail.agent.budget import Budget, Ending, Spent
from handrail.chat.asker import Asker, Event, EventHandlerError
from handrail.chat.context_window import (
    Room,
    shortened,
    size_of,
    split_for_summary,
    summary_request,
    without_old_results,
)
from handrail.chat.model_choice import model_settings, tool_parameters
from handrail.chat.model_errors import ContextExceededError
from handrail.chat.prices import has_price
from handrail.chat.sound_answers import sound
from handrail.chat.trajectory import Trajectory, text_in
from handrail.tools.exports import arguments_of
from handrail.tools.media_output import media_of
from handrail.tools.router import ToolRouter
from handrail.tools.tool import ToolResult

MISTAKES = 5
"""The most answers in a row that say nothing, or whose calls are all invalid."""
_MISTAKEN = ("unknown_tool", "invalid_parameters")
_STOPPED = "The user stopped the run before the call had ended."
_GO_ON = "You called no tool and said nothing. Go on with the task, or report that it is done."
_CUT = "Your answer was cut, because it was too long. Go on where it ended, in smaller parts."


class Loop:
    """Holds one conversation and carries it on."""

    def __init__(
        self,
        model: Model,
        router: ToolRouter,
        trajectory: Trajectory,
        room: Room,
        on_event: Callable[[Event], None],
        instrument: InstrumentationSettings | bool = False,
    ) -> None:
        """`instrument` says whether the model library describes its requests as OpenTelemetry spans."""
        self.router, self.trajectory, self.room, self._on_event = router, trajectory, room, on_event
        self.messages: list[ModelMessage] = trajectory.messages()
        self.spent, self.stopping = Spent(price_known=has_price(model)), False
        self._tools, instructions = tool_parameters(router), trajectory.instructions
        self._always = f"{instructions}{self._tools.function_tools}"
        self._asker = Asker(model, model_settings(model, router), instructions, self.emit, instrument)

    async def go_on(self, budget: Budget) -> Ending:
        """Make steps until the model is done. Raises ModelFailedError."""
        mistakes = 0
        while not self._finished:
            if self.stopping:
                return "stopped", "the user stopped the run"
            if ending := self.spent.over(budget):
                return ending
            response = await self._answer()
            self.spent.add(response)
            self.trajectory.answered(response)
            self.messages.append(response)
            if self._finished:
                break
            mistakes = 0 if await self._carry_out(response) else mistakes + 1
            self.emit({"type": "step", "steps": self.spent.steps, **self._usage()})
            if mistakes >= MISTAKES:
                return "confused", f"the model made {MISTAKES} answers in a row without a valid call"
        return "done", "the model has finished"

    @property
    def _finished(self) -> bool:
        """True if the last answer has text, is whole, and calls no tool."""
        last = self.messages[-1]
        return isinstance(last, ModelResponse) and not last.tool_calls and bool(text_in(last)) and not _is_cut(last)

    @property
    def last_text(self) -> str:
        """The last text of the model."""
        said = (text_in(each) for each in reversed(self.messages) if isinstance(each, ModelResponse))
        return next(filter(None, said), "")

    async def _carry_out(self, response: ModelResponse) -> bool:
        """Run the calls of an answer; return False if none of them was valid."""
        calls = response.tool_calls
        if not calls:
            self.tell(_CUT if _is_cut(response) else _GO_ON)
            return False
        results = [await self.call(call, of=len(calls)) for call in calls]
        self.messages.append(ModelRequest([part for part, _ in results]))
        return any(valid for _, valid in results)

    def emit(self, event: Event) -> None:
        """Tell the caller what happens. Raises EventHandlerError."""
        try:
            self._on_event(event)
        except Exception as error:
            raise EventHandlerError(error) from error

    def tell(self, text: str) -> None:
        """Add a message of the user. Calls that a stopped run left open get a result first."""
        for call in self.trajectory.open_calls():
            self.trajectory.called(call["tool_call_id"], _STOPPED, {"tool": call["function_name"], "success": False})
            self.messages = self.trajectory.messages()
        self.trajectory.told(text)
        self.messages.append(ModelRequest([UserPromptPart(text)]))

    async def call(self, call: ToolCallPart, *, of: int) -> tuple[ToolReturnPart, bool]:
        """Run one call `of` so many; return its result for the model, and whether the call was valid."""
        name, arguments = self.router.real_name(call.tool_name), arguments_of(call.args)
        self.emit({"type": "call", "id": call.tool_call_id, "tool": name, "arguments": arguments})
        result = await self.router.acall(name, arguments, call_id=call.tool_call_id)
        self.emit({"type": "result", "id": call.tool_call_id, **result.to_dict()})
        text = shortened(sound(result.text), self.room.result_size(of))
        self.trajectory.called(call.tool_call_id, text, _about(result))
        content: Any = [text, _picture(result)] if media_of(result.output) else text
        part = ToolReturnPart(call.tool_name, content, tool_call_id=call.tool_call_id)
        return part, not (result.error and result.error.code in _MISTAKEN)

    async def _answer(self) -> ModelResponse:
        """Ask the model; leave more out for as long as the server finds the conversation too long."""
        while True:
            try:
                await self._make_room()
                return await self._asker.ask(self.messages, self._tools)
            except ContextExceededError:
                size = self._size
                self.room = self.room.less_than(size)
                await self._make_room()
                if self._size >= size:
                    raise

    async def _make_room(self) -> None:
        """Keep the conversation within the model's context."""
        if self._size <= self.room.size:
            return
        self._leave_out()
        if self._size <= self.room.size or not (end := split_for_summary(self.messages, self.room)):
            return
        response = await self._asker.ask(summary_request(self.messages[:end], self.room), ModelRequestParameters())
        self.spent.add(response)
        kept = sum(isinstance(message, ModelResponse) for message in self.messages[end:])
        kept_from = self.trajectory.answers[-kept]["step_id"]
        self.trajectory.summarised(response, kept_from)
        self.messages = self.trajectory.messages()
        self._leave_out()
        self.emit({"type": "compact", "messages": end})

    def _leave_out(self) -> None:
        self.messages = without_old_results(self.messages, self.room, self._always)

    @property
    def _size(self) -> int:
        return size_of(self.messages, self._always)

    def _usage(self) -> Event:
        known = self.spent.money if self.spent.price_known else None
        return {"tokens": self.spent.tokens, "money": known}


def _is_cut(response: ModelResponse) -> bool:
    return bool(response.finish_reason == "length")


def _picture(result: ToolResult) -> BinaryContent:
    kind, data = media_of(result.output) or ("", "")
    return BinaryContent(base64.b64decode(data), media_type=kind)


def _about(result: ToolResult) -> Event:
    error = {"error": result.error.code} if result.error else {}
    return {"tool": result.tool, "success": result.success, "files_affected": result.files_affected, **error}
