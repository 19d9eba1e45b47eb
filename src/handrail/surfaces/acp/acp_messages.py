"""Puts events of a run and questions into the messages of the Agent Client Protocol."""

from typing import Any

import acp
from acp.schema import PermissionOption, ToolCallLocation, ToolCallUpdate

from handrail.chat.asker import Event
from handrail.model.approval import Keep, Question, Verdict
from handrail.model.effects import Effect
from handrail.model.files import Put, Remove
from handrail.model.paths import stem_of
from handrail.ops.text.display import one_line, visible
from handrail.surfaces.approval_text import happening, whole
from handrail.tools.router import ToolRouter

_TITLE_CHARS = 120
_KINDS = (
    (Effect.RUN, "execute"),
    (Effect.FETCH, "fetch"),
    (Effect.DELETE, "delete"),
    (Effect.WRITE | Effect.CREATE, "edit"),
    (Effect.READ, "read"),
)
_OPTIONS = (
    ("once", "Allow once", "allow_once"),
    ("session", "Allow this call in this session", "allow_always"),
    ("always", "Always allow this call in this project", "allow_always"),
    ("no", "Deny", "reject_once"),
)
_STOP_REASONS = {"done": "end_turn", "stopped": "cancelled", "tokens": "max_tokens", "money": "max_tokens"}


def update_of(event: Event, router: ToolRouter) -> Any:
    """Return the session update for an event; None for events that the protocol does not show."""
    kind = event["type"]
    if kind == "text":
        return acp.update_agent_message_text(event["text"]) if event["text"] else None
    if kind == "call":
        return acp.start_tool_call(
            event["id"],
            title(event["tool"], event["arguments"]),
            kind=tool_kind(router, event["tool"]),
            status="in_progress",
            raw_input=event["arguments"],
        )
    if kind == "result":
        text = event["output"] if isinstance(event["output"], str) else str(event["output"])
        return acp.update_tool_call(
            event["id"],
            status="completed" if event["success"] else "failed",
            content=[acp.tool_content(acp.text_block(visible(text)))],
            locations=[ToolCallLocation(path=path) for path in event["files_affected"]] or None,
        )
    return acp.update_agent_thought_text(f"{event['reason']}\n") if kind == "retry" else None


def title(tool: str, arguments: Any) -> str:
    """Return a line that says what a call is about."""
    first = next(iter(arguments.values()), "") if isinstance(arguments, dict) else arguments
    return one_line(f"{tool} {first}", _TITLE_CHARS)


def tool_kind(router: ToolRouter, name: str) -> Any:
    """Return the kind of a tool in the words of the protocol."""
    tool = router.tools.get(name)
    return next((kind for effects, kind in _KINDS if tool and tool.effects & effects), "other")


def permission_options() -> list[PermissionOption]:
    """Return the answers that the user can give."""
    return [PermissionOption(option_id=key, name=name, kind=kind) for key, name, kind in _OPTIONS]


def asked_call(question: Question, call_id: str) -> ToolCallUpdate:
    """Return the call of a question, with its finished change."""
    kind: Any = next((kind for effects, kind in _KINDS if question.effects & effects), "other")
    diffs = [diff for change in question.changes if (diff := _diff(question.root, change))]
    words = "\n".join(happening(question, whole()))
    content: list[Any] = [*diffs, acp.tool_content(acp.text_block(words))] if words else diffs
    return ToolCallUpdate(
        tool_call_id=call_id,
        kind=kind,
        status="pending",
        title=title(question.tool, question.params),
        content=content,
        raw_input=question.params,
    )


def _diff(root: str, change: Any) -> Any:
    """Return a change of one text file as the protocol shows it; None for other changes."""
    if not isinstance(change, Put | Remove):
        return None
    old = change.base.data if change.base else None
    new = change.data if isinstance(change, Put) else b""
    if b"\0" in (old or b"") + new:
        return None
    before = None if old is None else visible(old.decode(errors="replace"))
    return acp.tool_diff_content(stem_of(root) + change.path, visible(new.decode(errors="replace")), before)


def verdict_of(answer: Any) -> Verdict:
    """Return the verdict for the answer of the user."""
    option = getattr(answer.outcome, "option_id", None)
    if option == "no":
        return Verdict.deny("the user said no", decided_by="user")
    if option not in ("once", "session", "always"):
        return Verdict.deny("the question was cancelled: no user answered", decided_by="no user")
    remember = {"session": Keep("session"), "always": Keep("project")}.get(option)
    return Verdict.allow(remember=remember, decided_by="user")


def stop_reason(status: str) -> Any:
    """Return why a turn ended, in the words of the protocol."""
    return _STOP_REASONS.get(status, "max_turn_requests")
