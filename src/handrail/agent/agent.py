"""Gives programs the loop: `Agent(workspace, model=…).run(task)`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

import anyio
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.models import Model
from pydantic_ai.models.instrumented import InstrumentationSettings

from handrail.agent.budget import Budget, Ending, Outcome, Spent
from handrail.agent.loop import Loop
from handrail.chat.answer_limit import limit_answers
from handrail.chat.asker import Event, EventHandlerError
from handrail.chat.context_window import DEFAULT_TOKENS, Room
from handrail.chat.instructions import instructions
from handrail.chat.model_choice import model_of
from handrail.chat.model_errors import ModelFailedError
from handrail.chat.prices import has_price
from handrail.chat.scripted import ScriptedModel
from handrail.chat.trajectory import Trajectory
from handrail.chat.trajectory_form import given_arguments
from handrail.dialects import DEFAULT
from handrail.errors import HandrailError, UndoError
from handrail.kernel.host.state_dir import make_private
from handrail.ops.text.display import one_line
from handrail.workspace import Workspace, default_session


class Agent:
    """Runs a model with the tools of a workspace.

    Args:
        workspace: Where the agent works. Its approver, rules and sandbox judge each call.
        model: `provider:name`, `scripted:FILE`, or a model object of pydantic-ai.
        dialect: The tools; those that the model was trained on if not given.
        budget: When to stop.
        base_url: A server that speaks the protocol of the provider.
        directory: Where the user stands, relative to the root: the nearest AGENTS.md comes first.
        trajectory: The file for the steps; in the state directory if not given.
        context_tokens: The size of the model's context, if the model library does not know it.
        on_event: Is called with each event: `text`, `call`, `result`, `step`, `retry`, `compact`, `end`.

    """

    def __init__(  # noqa: PLR0913  each is spelled out, so that editors and type checkers know it
        self,
        workspace: Workspace,
        model: str | Model,
        *,
        dialect: str | None = None,
        budget: Budget = Budget(),  # noqa: B008  a value that never changes
        base_url: str | None = None,
        directory: str = ".",
        trajectory: str | None = None,
        context_tokens: int | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self.workspace, self.budget = workspace, budget
        self.model = model_of(model, base_url) if isinstance(model, str) else model
        known = dialect or (DEFAULT if isinstance(self.model, ScriptedModel) else None)
        self.router = workspace.tools(known) if known else workspace.tools_for(self.model.model_name)
        self._directory, self._path = directory, trajectory
        self._room = Room(context_tokens or self.model.context_window or DEFAULT_TOKENS)
        self._emit: Callable[[Event], None] = on_event or (lambda _: None)
        self._loop: Loop | None = None
        self._scope: anyio.CancelScope | None = None
        self._busy = False

    def run(self, task: str) -> Outcome:
        """Work on a task until it is done or a budget is spent. A second task continues the conversation."""
        return anyio.run(self.arun, task)

    def resume(self, trajectory: str) -> Outcome:
        """Go on with the run of a trajectory, which stopped or was killed. Raises TrajectoryError."""
        return anyio.run(self.aresume, trajectory)

    async def arun(self, task: str) -> Outcome:
        """Work on a task until it is done or a budget is spent. A second task continues the conversation."""
        with self._alone():
            with suppress(UndoError):  # the journal is off: the task runs all the same
                self.workspace.mark(mark_of(task))
            if self._loop is None:
                return await self._work(self._begin(task))
            self._loop.tell(task)
            self._loop.spent = Spent(price_known=has_price(self.model))
            return await self._work(self._loop)

    def _begin(self, task: str) -> Loop:
        """Start a conversation."""
        services, session = default_session(self.workspace).services, default_session(self.workspace).id
        said = instructions(self.router, services.reader, self.workspace.root, self._directory)
        started = Trajectory.begin(
            self._path or _default_path(services.state.path, session),
            session=session,
            model=self.model.model_name,
            dialect=self.router.dialect.name,
            tools=self.router.functions(),
            texts=[{"source": "system", "message": said}, {"source": "user", "message": task}],
        )
        return self._new_loop(started)

    async def aresume(self, trajectory: str) -> Outcome:
        """Go on with the run of a trajectory. Calls without a result are made, unless the journal has their change."""
        with self._alone():
            found = Trajectory.take_up(trajectory, default_session(self.workspace).id)
            if isinstance(self.model, ScriptedModel):
                self.model.skip(found.asked)
            return await self._work(self._new_loop(found))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse a second task while the agent works on one. Raises HandrailError."""
        if self._busy:
            raise HandrailError("the agent works on another task; wait until it has ended")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _new_loop(self, trajectory: Trajectory) -> Loop:
        settings = self.workspace.settings
        instrument = settings.telemetry == "otel" and InstrumentationSettings(
            include_content=settings.telemetry_contents
        )
        return Loop(self.model, self.router, trajectory, self._room, self._emit, instrument)

    async def _finish_calls(self, loop: Loop) -> None:
        """Give the calls of the last answer that a killed run left open their results."""
        found = loop.trajectory
        if not (left := found.open_calls()):
            return
        history = self.workspace.history()
        made = {each.entry.origin.call_id for one in found.sessions for each in history.entries(None, session=one)}
        for call in left:
            if call["tool_call_id"] in made:
                found.called(call["tool_call_id"], _MADE, {"tool": call["function_name"], "success": True})
            else:
                part = ToolCallPart(call["function_name"], given_arguments(call), call["tool_call_id"])
                await loop.call(part, of=len(left))
        loop.messages = found.messages()

    def stop(self) -> None:
        """End the run after the current step."""
        if self._loop:
            self._loop.stopping = True

    def cancel(self) -> None:
        """End the run at once, in its own thread. The current call is cancelled and leaves nothing half-written."""
        self.stop()
        if self._scope:
            self._scope.cancel()

    async def _work(self, loop: Loop) -> Outcome:
        """Carry a conversation on until the run ends; meanwhile no other run writes its trajectory."""
        self._loop, loop.stopping = loop, False
        loop.trajectory.hold()
        try:
            return await self._until_end(loop)
        finally:
            loop.trajectory.release()

    async def _until_end(self, loop: Loop) -> Outcome:
        spans = default_session(self.workspace).spans
        async with self.model:  # closes its connections at the end
            limit_answers(self.model)
            with spans.run(self.model.model_name) if spans else nullcontext():
                status, reason = await self._ending(loop)
        spent = loop.spent
        outcome = Outcome(
            status,
            loop.last_text,
            reason,
            spent.steps,
            spent.tokens,
            spent.money if spent.price_known else None,
            loop.trajectory.path,
        )
        loop.trajectory.end(status, reason)
        self._emit({"type": "end", **outcome._asdict()})
        return outcome

    async def _ending(self, loop: Loop) -> Ending:
        try:
            with anyio.CancelScope() as self._scope, anyio.move_on_after(self.budget.seconds):
                await self._finish_calls(loop)
                return await loop.go_on(self.budget)
        except ModelFailedError as error:
            return "model_error", f"the model cannot be used: {error}"
        except EventHandlerError as error:
            raise error.args[0] from None
        except anyio.get_cancelled_exc_class():
            loop.trajectory.end("stopped", "the caller cancelled the run")
            raise
        if loop.stopping:
            return "stopped", "the user stopped the run"
        return "seconds", f"the budget of {self.budget.seconds} seconds is spent"


_MARK_CHARS = 80
_MADE = "The change was made before the run was interrupted. Its result was lost."


def mark_of(task: str) -> str:
    """Return the mark that a run sets before it begins: `handrail undo --to MARK` takes back what changed since."""
    return one_line(f"task: {task.strip()}", _MARK_CHARS)


def _default_path(state: str, session: str) -> str:
    directory = f"{state}/trajectories"
    make_private(directory)
    return f"{directory}/{session}.json"
