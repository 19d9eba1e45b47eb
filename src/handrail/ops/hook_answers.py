"""Reads the answer of a hook: its exit code and its output, as Claude Code's contract describes them."""

import json
from collections.abc import Mapping
from typing import Any

from handrail.model.hooks import PERMISSION, PRE, HookAnswer
from handrail.ops.text.display import visible

_BLOCKS = 2
"""The exit code of a hook that says no without JSON."""
_DECISIONS = ("allow", "deny", "ask", "defer")
_OLD = {"approve": "allow", "block": "deny"}


class BrokenHook(Exception):  # noqa: N818  the caller refuses the call or warns about it
    """Says why an answer of a hook cannot be used: `why` for the model, `detail` for the user."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(why)
        self.why, self.detail = why, detail or why


def read_answer(event: str, exit_code: int | None, stdout: bytes, stderr: bytes, chars: int) -> HookAnswer:
    """Return what a hook said; no text is longer than `chars`. Raises BrokenHook."""
    if exit_code == _BLOCKS:
        return HookAnswer("deny", _shown(stderr.decode(errors="replace").strip(), chars))
    if exit_code != 0:
        raise _failed(exit_code, _shown(stderr.decode(errors="replace").strip(), chars))
    text = stdout.decode(errors="replace").strip()
    if not text.startswith("{"):  # plain output: notes for the user who reads the log of the hook
        if text and event in (PRE, PERMISSION):
            raise BrokenHook("its output is not a JSON object")
        return HookAnswer()
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise BrokenHook("its output is not valid JSON") from None
    answer = _answer(event, _Said(said, chars))
    if answer.updated_input is not None and answer.decision == "deny":
        return answer._replace(updated_input=None)
    return answer


def _failed(exit_code: int | None, said: str) -> BrokenHook:
    """Return the problem of a hook that failed; only the user reads the first line of what it said."""
    why = "it was killed" if exit_code is None else f"it ended with exit code {exit_code}"
    return BrokenHook(why, f"{why}: {said.splitlines()[0]}" if said else "")


class _Said:
    """Reads values out of a JSON object; a value of another type breaks the hook."""

    def __init__(self, said: Mapping[str, Any], chars: int) -> None:
        self._said, self._chars = said, chars

    def text(self, key: str) -> str:
        value = self._said.get(key)
        if not isinstance(value, str | None):
            raise BrokenHook(f"{key} must be a text")
        return _shown(value or "", self._chars)

    def table(self, key: str) -> "_Said":
        return _Said(self.object(key) or {}, self._chars)

    def object(self, key: str) -> dict[str, Any] | None:
        value = self._said.get(key)
        if not isinstance(value, dict | None):
            raise BrokenHook(f"{key} must be an object")
        return value

    def choice(self, key: str, known: tuple[str, ...]) -> str:
        value = self._said.get(key)
        if value is not None and value not in known:
            raise BrokenHook(f"{key} must be one of {', '.join(known)}")
        return value or ""

    def any(self, key: str) -> Any:
        return self._said.get(key)

    def stops(self) -> bool:
        return self._said.get("continue") is False


def _answer(event: str, said: _Said) -> HookAnswer:
    if event == PERMISSION:
        answer = _permission(said.table("hookSpecificOutput").table("decision"))
    else:
        answer = _tool_use(said, said.table("hookSpecificOutput"))
    if said.stops():
        return HookAnswer("deny", said.text("stopReason") or answer.reason, message=said.text("systemMessage"))
    return answer._replace(message=said.text("systemMessage"))


def _permission(decision: _Said) -> HookAnswer:
    behavior = decision.choice("behavior", ("allow", "deny"))
    if behavior == "allow":
        return HookAnswer("allow", updated_input=decision.object("updatedInput"))
    return HookAnswer("deny", decision.text("message")) if behavior else HookAnswer()


def _tool_use(said: _Said, own: _Said) -> HookAnswer:
    old = _OLD.get(said.choice("decision", tuple(_OLD)), "")
    decision = own.choice("permissionDecision", _DECISIONS) or old
    reason = own.text("permissionDecisionReason") or said.text("reason")
    known: Any = "" if decision == "defer" else decision
    updated, output = own.object("updatedInput"), own.any("updatedToolOutput")
    return HookAnswer(known, reason, updated, own.text("additionalContext"), output)


def _shown(text: str, chars: int) -> str:
    """Return a text without characters that a user or a model cannot see, cut to its limit."""
    shown = visible(text)
    return shown if len(shown) <= chars else f"{shown[: chars - 1]}…"
