"""Keeps the steps of a run in a file of the Agent Trajectory Interchange Format (ATIF v1.7), valid at any time."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Self

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from handrail import __version__
from handrail.chat.context_window import summary_message
from handrail.chat.prices import price_of
from handrail.chat.sound_answers import finite
from handrail.chat.trajectory_form import checked, given_arguments, parsed
from handrail.errors import HandrailError
from handrail.kernel.host.client_files import may_replace
from handrail.kernel.host.state_dir import HeldFile, read_some
from handrail.model.limits import MIB
from handrail.ops.text.display import one_line
from handrail.tools.exports import arguments_of

VERSION = "ATIF-v1.7"
_LARGEST = 512 * MIB
_ERROR_CHARS = 300

Json = dict[str, Any]


class TrajectoryError(HandrailError):
    """A trajectory cannot be read or written."""


class Trajectory:
    """Holds the steps of one run. Each method that adds something writes the file."""

    def __init__(self, path: str, head: Json, steps: list[Json], held: HeldFile | None = None) -> None:
        self.path, self.head, self.steps, self._held = path, head, steps, held
        self._older: list[str] = []
        """The steps before the last one, as JSON: they no longer change."""

    @classmethod
    def begin(cls, path: str, *, session: str, model: str, dialect: str, tools: list[Json], texts: list[Json]) -> Self:
        """Start a trajectory with the instructions and the task."""
        agent = {"name": "handrail", "version": __version__, "model_name": model, "tool_definitions": tools}
        head = {"schema_version": VERSION, "session_id": session, "agent": agent, "extra": {"dialect": dialect}}
        if not may_replace(path):
            raise TrajectoryError(f"cannot write the trajectory {path}: it is not a regular file")
        made = cls(path, head, [])
        for text in texts:
            made._append(text)
        return made

    @classmethod
    def take_up(cls, path: str, session: str) -> Self:
        """Read the trajectory of a run that a new session continues. Raises TrajectoryError, also if it still runs."""
        held = _hold(path)
        try:
            made = cls.load(path, held)
            made.reopen()
            made.head["extra"]["sessions"] = [*made.sessions, session]
            made.write()
        except TrajectoryError:
            held.close()
            raise
        return made

    @classmethod
    def load(cls, path: str, held: HeldFile | None = None) -> Self:
        """Read a trajectory. Raises TrajectoryError."""
        try:
            found = checked(parsed(read_some(path, _LARGEST)))
            steps = found.pop("steps")
            made = cls(path, {"extra": {}, **found}, steps, held)
            made.messages()
        except (OSError, ValueError, RecursionError) as error:
            said = one_line(str(error), _ERROR_CHARS)
            raise TrajectoryError(f"cannot read the trajectory {path}: {said}") from None
        return made

    # ── writing ──

    def answered(self, response: ModelResponse) -> None:
        """Add an answer of the model. The results of its calls follow with `called`."""
        calls = [_call_of(part) for part in response.tool_calls]
        thought = "".join(part.content for part in response.parts if isinstance(part, ThinkingPart))
        kept = ModelMessagesTypeAdapter.dump_python([response], mode="json")[0]
        step: Json = {"source": "agent", "model_name": response.model_name, "message": text_in(response)}
        step |= {"reasoning_content": thought} if thought else {}
        step |= {"tool_calls": calls} if calls else {}
        self._append(step | {"metrics": _metrics_of(response), "extra": {"message": kept}})

    def called(self, call_id: str, content: str, extra: Json) -> None:
        """Add the result of one call to the last step."""
        results = self.steps[-1].setdefault("observation", {"results": []})["results"]
        results.append({"source_call_id": call_id, "content": content, "extra": extra})
        self.write()

    def told(self, text: str) -> None:
        """Add a message that the loop sends to the model in the name of the user."""
        self._append({"source": "user", "message": text})

    def summarised(self, response: ModelResponse, kept_from: int) -> None:
        """Add an answer that is a summary; it replaces the steps before the step with this number."""
        about = {"kept_from": kept_from, "metrics": _metrics_of(response)}
        self._append(
            {"source": "system", "message": summary_message(self.task, text_in(response)), "extra": {"summary": about}}
        )

    def end(self, status: str, reason: str) -> None:
        """Add the totals and say how the run ended."""
        self.head["final_metrics"] = {**self._totals, "total_steps": len(self.steps)}
        self.head["extra"] |= {"status": status, "reason": reason}
        self.write()

    @property
    def _totals(self) -> Json:
        """The tokens and cost of all answers and summaries, also before a resume; no cost if one has no price."""
        about = [step.get("metrics") or step.get("extra", {}).get("summary", {}).get("metrics") for step in self.steps]
        known = [found for found in about if found]
        names = ("prompt_tokens", "completion_tokens", "cached_tokens")
        totals: Json = {f"total_{name}": sum(found.get(name) or 0 for found in known) for name in names}
        costs = [found.get("cost_usd") for found in known]
        return totals if None in costs else totals | {"total_cost_usd": sum(costs)}

    def _append(self, step: Json) -> None:
        for name, place in (
            ("final_metrics", self.head),
            ("status", self.head["extra"]),
            ("reason", self.head["extra"]),
        ):
            place.pop(name, None)  # the run goes on
        self._older += map(_json, self.steps[len(self._older) :])
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.steps.append({"step_id": len(self.steps) + 1, "timestamp": now, **step})
        self.write()

    def reopen(self) -> None:
        """Remove how the run ended before."""
        for place in (self.head, self.head["extra"]):
            for name in ("final_metrics", "status", "reason"):
                place.pop(name, None)

    def write(self) -> None:
        """Replace the file. Raises TrajectoryError."""
        newer = map(_json, self.steps[len(self._older) :])
        head, steps = _json(self.head), ",\n".join([*self._older, *newer])
        text = f'{head[:-1]}, "steps": [\n{steps}\n]}}\n'
        self._held = self._held or _hold(self.path)
        try:
            self._held.replace(text.encode(errors="backslashreplace"))
        except BlockingIOError:
            raise _in_use(self.path) from None
        except OSError as error:
            raise TrajectoryError(f"cannot write the trajectory {self.path}: {error.strerror}") from None

    def hold(self) -> None:
        """Keep other runs from writing the file until `release`. Raises TrajectoryError if another run writes it."""
        self._held = self._held or _hold(self.path)

    def release(self) -> None:
        """Let other runs go on with this trajectory."""
        if self._held:
            self._held.close()
        self._held = None

    # ── reading ──

    @property
    def sessions(self) -> list[str]:
        """The sessions of the run: the first, and one for each time that it went on after it had ended."""
        return self.head["extra"].get("sessions") or [self.head.get("session_id", "")]

    @property
    def task(self) -> str:
        """The first message of the user."""
        return next((str(step["message"]) for step in self.steps if step.get("source") == "user"), "")

    @property
    def instructions(self) -> str:
        return next((str(step["message"]) for step in self.steps if step.get("source") == "system"), "")

    @property
    def asked(self) -> int:
        """How often the model was asked: for answers and for summaries."""
        return len(self.answers) + sum("summary" in step.get("extra", {}) for step in self.steps)

    @property
    def answers(self) -> list[Json]:
        """The steps in which the model answered."""
        return [step for step in self.steps if step.get("source") == "agent"]

    def open_calls(self) -> list[Json]:
        """Return the calls of the last step that have no result."""
        last = self.steps[-1] if self.steps else {}
        results = last.get("observation", {}).get("results", [])
        known = {result.get("source_call_id") for result in results}
        return [call for call in last.get("tool_calls", []) if call["tool_call_id"] not in known]

    def messages(self) -> list[ModelMessage]:
        """Return the conversation as the model library has it, from the last summary on."""
        summary, first = self._start()
        found = [ModelRequest([UserPromptPart(text)]) for text in summary]
        return [*found, *(m for step in self.steps[first:] for m in _messages_of(step))]

    def _start(self) -> tuple[list[str], int]:
        for step in reversed(self.steps):
            if kept := step.get("extra", {}).get("summary"):
                return [step["message"]], kept["kept_from"] - 1
        return [], 0


def _json(value: Json) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return finite(json.dumps(value, ensure_ascii=False))


def _in_use(path: str) -> TrajectoryError:
    return TrajectoryError(f"another run writes the trajectory {path}; wait until it has ended")


def _hold(path: str) -> HeldFile:
    try:
        return HeldFile(path)
    except BlockingIOError:
        raise _in_use(path) from None
    except OSError as error:
        raise TrajectoryError(f"cannot open the trajectory {path}: {error.strerror}") from None


def _messages_of(step: Json) -> Iterator[ModelMessage]:
    if step["source"] == "user":
        yield ModelRequest([UserPromptPart(step["message"])])
    elif step["source"] == "agent":
        yield _response_of(step)
        names = {call["tool_call_id"]: call["function_name"] for call in step.get("tool_calls", [])}
        found = step.get("observation", {}).get("results", [])
        results = [(names.get(each["source_call_id"]), each) for each in found]
        if parts := [ToolReturnPart(n, r["content"], tool_call_id=r["source_call_id"]) for n, r in results if n]:
            yield ModelRequest(parts)


def _response_of(step: Json) -> ModelResponse:
    kept = step.get("extra", {}).get("message")
    if kept is not None:
        found = ModelMessagesTypeAdapter.validate_python([kept])[0]
        if isinstance(found, ModelResponse):
            return found
    calls = [
        ToolCallPart(c["function_name"], json.dumps(given_arguments(c)), c["tool_call_id"])
        for c in step.get("tool_calls", [])
    ]
    return ModelResponse([TextPart(str(step.get("message", ""))), *calls])


def _call_of(part: ToolCallPart) -> Json:
    """Return a call as the format has it: its arguments are an object, whatever the model gave."""
    given, known = arguments_of(part.args), {"tool_call_id": part.tool_call_id, "function_name": part.tool_name}
    if isinstance(given, dict):
        return {**known, "arguments": given}
    return {**known, "arguments": {}, "extra": {"arguments": given}}


def _metrics_of(response: ModelResponse) -> Json:
    usage, price = response.usage, price_of(response)
    metrics: Json = {"prompt_tokens": max(0, usage.input_tokens), "completion_tokens": max(0, usage.output_tokens)}
    metrics |= {"cached_tokens": usage.cache_read_tokens} if usage.cache_read_tokens > 0 else {}
    return metrics | ({"cost_usd": price} if price is not None else {})


def text_in(response: ModelResponse) -> str:
    """Return the text of an answer."""
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))
