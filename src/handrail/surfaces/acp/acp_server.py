"""Implements the agent side of the Agent Client Protocol, version 1: one run of the loop for each prompt."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import acp
from acp.schema import (
    AgentCapabilities,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
)

import handrail
from handrail.agent import Agent, Budget
from handrail.chat.asker import Event
from handrail.errors import HandrailError
from handrail.kernel.host.project_root import RootRefused, refuse_root
from handrail.model.approval import Question, Verdict
from handrail.surfaces.acp.acp_messages import asked_call, permission_options, stop_reason, update_of, verdict_of
from handrail.surfaces.root_refusal import why_refused
from handrail.workspace import Workspace


class AcpSession:
    """Holds one conversation: a workspace, an agent, and the updates that the client has not received yet."""

    def __init__(self, client: Any, cwd: str, model: str, dialect: str | None, budget: Budget, **options: Any) -> None:
        base_url = options.pop("base_url", None)
        self._client, self._updates = client, asyncio.Queue[Any]()
        self.workspace = Workspace.from_settings(cwd, options, approver=self._ask)
        self.agent = Agent(
            self.workspace, model, dialect=dialect, budget=budget, base_url=base_url, on_event=self._note
        )
        self.id, self._call_id = self.workspace.session_id, ""
        self._unreachable: Exception | None = None

    def _note(self, event: Event) -> None:
        if event["type"] == "call":
            self._call_id = event["id"]
        update = update_of(event, self.agent.router)
        if update is not None:
            self._updates.put_nowait(update)

    async def _ask(self, question: Question) -> Verdict:
        """Ask the user of the client, after all that happened before is shown."""
        await self._updates.join()
        call = asked_call(question, self._call_id)
        return verdict_of(await self._client.request_permission(self.id, call, permission_options()))

    async def prompt(self, task: str) -> str:
        """Work on a message of the user; return how the turn ended. Raises RequestError if it cannot be worked on."""
        sender = asyncio.ensure_future(self._send())
        try:
            outcome = await self.agent.arun(task)
            if outcome.status not in ("done", "stopped", "model_error"):
                self._updates.put_nowait(acp.update_agent_message_text(f"\n[{outcome.reason}]"))
            await self._updates.join()
        except HandrailError as error:
            raise acp.RequestError.invalid_request({"reason": str(error)}) from None
        finally:
            sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sender
        if self._unreachable:
            raise self._unreachable
        if outcome.status == "model_error":
            raise acp.RequestError.internal_error({"reason": outcome.reason})
        return outcome.status

    async def _send(self) -> None:
        """Send the updates in their order; end the run if the client cannot be reached."""
        while True:
            update = await self._updates.get()
            try:
                if not self._unreachable:
                    await self._client.session_update(self.id, update)
            except Exception as error:  # noqa: BLE001  the turn ends with it
                self._unreachable = error
                self.agent.cancel()
            finally:
                self._updates.task_done()


class HandrailAcp:
    """Answers the requests of an editor."""

    def __init__(self, model: str, dialect: str | None, budget: Budget, options: Mapping[str, Any]) -> None:
        self._model, self._dialect, self._budget, self._options = model, dialect, budget, options
        self._sessions: dict[str, AcpSession] = {}
        self._client: Any = None

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=AgentCapabilities(),
            agent_info=Implementation(name="handrail", title="Handrail", version=handrail.__version__),
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """Open the directory as a workspace. Its settings and rules hold as everywhere.

        An editor without a project names the home of the user, which must not become a workspace.
        """
        try:
            refuse_root(cwd)
            made = AcpSession(self._client, cwd, self._model, self._dialect, self._budget, **self._options)
        except RootRefused as refused:
            reason = f"{why_refused(refused)}; open a project in the editor"
            raise acp.RequestError.invalid_params({"reason": reason}) from None
        except HandrailError as error:
            raise acp.RequestError.invalid_params({"reason": str(error)}) from None
        self._sessions[made.id] = made
        return NewSessionResponse(session_id=made.id)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        session = self._session(session_id)
        status = await session.prompt("\n".join(filter(None, map(_text_of, prompt))))
        return PromptResponse(stop_reason=stop_reason(status))

    async def cancel(self, session_id: str, **_: Any) -> None:
        self._session(session_id).agent.cancel()

    def _session(self, session_id: str) -> AcpSession:
        if session_id not in self._sessions:
            raise acp.RequestError.invalid_params({"reason": f"unknown session {session_id}"})
        return self._sessions[session_id]

    def close(self) -> None:
        """Close all workspaces."""
        for session in self._sessions.values():
            session.workspace.close()


def _text_of(block: Any) -> str:
    """Return the text of a part of a prompt: text, a file that the editor embeds, or a link to one."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource":
        found = getattr(block.resource, "text", None)
        return f"{block.resource.uri}:\n{found}" if found else str(block.resource.uri)
    return str(block.uri) if block.type == "resource_link" else ""


async def serve(model: str, dialect: str | None, budget: Budget, options: Mapping[str, Any]) -> None:
    """Serve one editor over standard input and output, until it ends the connection."""
    served = HandrailAcp(model, dialect, budget, options)
    try:
        await acp.run_agent(served)
    finally:
        await asyncio.to_thread(served.close)
