"""Plays a model whose answers are in a file: for tests, demonstrations and replays, without a key or a network."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from handrail.chat.trajectory_form import given_arguments
from handrail.errors import HandrailError
from handrail.kernel.host.state_dir import read_some
from handrail.model.limits import MIB

_LARGEST = 64 * MIB
_HOW = 'write one JSON object per line: {"text": "…", "calls": [{"tool": "…", "arguments": {…}}]}'


class ScriptError(HandrailError):
    """A script of a scripted model is not valid."""


class ScriptedModel(FunctionModel):
    """Gives one answer of a script after the other. After the last one it says that the script has ended."""

    def __init__(self, turns: Sequence[dict[str, Any]], *, name: str = "scripted") -> None:
        self._turns, self._next = list(turns), 0
        super().__init__(stream_function=self._stream, model_name=name)

    @classmethod
    def load(cls, path: str) -> "ScriptedModel":
        """Read a script: one JSON object a line, or a JSON list of them. Raises ScriptError."""
        try:
            text = read_some(path, _LARGEST).strip()
            turns = (
                json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
            )
        except (OSError, ValueError, RecursionError) as error:
            raise ScriptError(f"cannot read the script {path}: {error}", _HOW[0].upper() + _HOW[1:]) from None
        for number, turn in enumerate(turns, 1):
            _check(turn, f"{path}, turn {number}")
        return cls(turns)

    @classmethod
    def of_answers(cls, steps: Sequence[dict[str, Any]]) -> "ScriptedModel":
        """Return a model that repeats the answers of a trajectory."""
        turns = [
            {
                "text": step.get("message", ""),
                "calls": [
                    {"tool": call["function_name"], "arguments": given_arguments(call), "id": call["tool_call_id"]}
                    for call in step.get("tool_calls", [])
                ],
            }
            for step in steps
        ]
        return cls(turns, name="replay")

    def skip(self, turns: int) -> None:
        """Leave out answers that an earlier run has had."""
        self._next += turns

    async def _stream(self, _messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        number, self._next = self._next, self._next + 1
        turn = self._turns[number] if number < len(self._turns) else {"text": "The script has ended."}
        yield turn.get("text", "")
        for at, call in enumerate(turn.get("calls", [])):
            name, arguments = call["tool"], json.dumps(call.get("arguments", {}))
            yield {at: DeltaToolCall(name, arguments, tool_call_id=call.get("id") or f"call_{number + 1}_{at + 1}")}


def _check(turn: Any, where: str) -> None:
    calls = turn.get("calls", []) if isinstance(turn, dict) else None
    fits = isinstance(calls, list) and all(
        isinstance(call, dict) and isinstance(call.get("tool"), str) for call in calls
    )
    if not (
        fits and isinstance(turn, dict) and isinstance(turn.get("text", ""), str) and turn.keys() <= {"text", "calls"}
    ):
        raise ScriptError(f"{where} is not valid: {_HOW}")
