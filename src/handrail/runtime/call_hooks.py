"""Runs the user's hooks around the calls of one session, with the JSON of Claude Code's contract.

Hooks run one after the other, in the order of the settings. A hook that has to judge a call and fails refuses it.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.kernel.fs.trusted_paths import agents_directories
from handrail.kernel.process.hook_programs import HookPrograms
from handrail.model.approval import ASK_THE_USER, Approver, Question, Verdict, compact
from handrail.model.faults import Cancelled, CommandNotStarted, Denied, SandboxUnavailable
from handrail.model.hooks import FAILED, PERMISSION, POST, PRE, Hook, HookAnswer, InputChanged, Judgement
from handrail.model.warnings import HookBroken, HookSaid
from handrail.ops.hook_answers import BrokenHook, read_answer
from handrail.ops.hook_table import concerns
from handrail.ops.text.display import one_line
from handrail.policy.policy import no_approver
from handrail.policy.rule_match import why_always_asked
from handrail.runtime.hook_changes import record_hook_changes

if TYPE_CHECKING:
    from handrail.kernel.host.session_log import SessionLog
    from handrail.runtime.call import Asked, Call
    from handrail.runtime.session import Services

_MODES = {
    "ask": "default",
    "edit": "acceptEdits",
    "auto": "bypassPermissions",
    "host": "bypassPermissions",
    "never": "dontAsk",
}
"""The policies in the words of the contract."""
_NO = "Do it another way; only the user can change the hook"
_OWN_CALLS = "handrail"
"""The dialect of an undo, whose input no hook can change."""


class _Subject(NamedTuple):
    """Identifies the call that hooks are asked about."""

    dialect: str
    tool: str
    params: dict[str, Any]
    asked: "Asked | None"


_current: ContextVar["Asked | None"] = ContextVar("asked", default=None)


class CallHooks:
    """Runs the hooks of one session."""

    def __init__(self, hooks: tuple[Hook, ...], services: "Services", approve: str, *, read_only: bool) -> None:
        self._hooks, self._services, self._limits = hooks, services, services.limits
        self._mode = "plan" if read_only else _MODES.get(approve, "default")
        self._programs: HookPrograms | None = None
        self._starting = threading.Lock()
        self._session = ""
        self._log: SessionLog | None = None

    def attach(self, session: str, log: "SessionLog") -> None:
        """Note the session and its log, whose names hooks get."""
        self._session, self._log = session, log

    def close(self) -> None:
        """End every process that a hook has left."""
        programs, self._programs = self._programs, None
        if programs is not None:
            programs.close()

    # ── before a call ──

    def before(self, dialect: str, tool: str, params: dict[str, Any], asked: "Asked") -> Judgement:
        """Let the hooks judge and change a call. Raises Denied if one refuses it or fails."""
        judged, began = Judgement(params=params), time.perf_counter()
        for hook in self._hooks:
            if hook.event != PRE or not self._concerns(hook, dialect, tool, judged.params):
                continue
            answer = self._judge(hook, _Subject(dialect, tool, judged.params, asked))
            if answer.decision == "deny":
                raise _refusal(hook, tool, answer.reason)
            judged = _joined(judged, answer)
        return judged._replace(seconds=time.perf_counter() - began)

    def asking(self, inner: Approver | None) -> Approver:
        """Return an approver that asks hooks first; a hook cannot approve what only the user can approve."""

        def approve(question: Question) -> Verdict:
            verdict = self._permission(question)
            if verdict is not None:
                return verdict
            return inner(question) if inner else no_approver(question)

        return approve

    @contextmanager
    def during(self, asked: "Asked") -> Iterator[None]:
        """Remember the call that is asked about while it runs."""
        token = _current.set(asked)
        try:
            yield
        finally:
            _current.reset(token)

    def _permission(self, question: Question) -> Verdict | None:
        params, asked = question.params, _current.get()
        for hook in self._concerned(PERMISSION, question.dialect, question.tool, params):
            answer = self._judge(hook, _Subject(question.dialect, question.tool, params, asked))
            if answer.decision == "deny":
                raise _refusal(hook, question.tool, answer.reason)
            if answer.decision != "allow":
                continue
            if answer.updated_input not in (None, params):
                self._expect_changeable(hook, question, asked)
                raise InputChanged(answer.updated_input or {})
            if not why_always_asked(question) and not question.rights:  # only the user or a rule grants rights
                return Verdict(True, "hook")
        return None

    def _expect_changeable(self, hook: Hook, question: Question, asked: "Asked | None") -> None:
        """Refuse a change of an undo, and a second change of one call: hooks could go on for ever."""
        if question.dialect == _OWN_CALLS or asked is None or asked.changed:
            raise _broken(hook, question.tool, BrokenHook("it changes an input that it cannot change"))

    def _judge(self, hook: Hook, subject: _Subject) -> HookAnswer:
        """Run a hook that judges a call. Raises Denied if it fails, Cancelled if the caller gave up."""
        try:
            return self._run(hook, subject)
        except BrokenHook as problem:
            raise _broken(hook, subject.tool, problem) from None

    # ── after a call ──

    def after(self, call: "Call", output: Any, milliseconds: float) -> Any:
        """Run the hooks after a call and record what they changed; return the output that one gave instead, or None."""
        given: Any = None
        if self._concerned(POST, call.dialect, call.tool, call.params):
            for answer in self._said(POST, call, {"tool_response": output, "duration_ms": milliseconds}):
                given = answer.output if answer.output is not None else given
            record_hook_changes(call)
        return given

    def after_failure(self, call: "Call", error: str, milliseconds: float, *, cancelled: bool) -> None:
        """Run the hooks after a call that failed."""
        facts = {"error": error, "is_interrupt": cancelled, "duration_ms": milliseconds}
        for _ in self._said(FAILED, call, facts):
            pass

    def _said(self, event: str, call: "Call", facts: dict[str, Any]) -> Iterator[HookAnswer]:
        """Run the hooks of an event and yield their answers; add what they say to the warnings of the call."""
        began = time.perf_counter()
        for hook in self._concerned(event, call.dialect, call.tool, call.params):
            try:
                answer = self._run(hook, _Subject(call.dialect, call.tool, call.params, call.asked), facts)
            except BrokenHook as problem:
                call.warnings.append(HookBroken(problem.why, _repair(hook, problem)))
                continue
            except Cancelled:
                call.warnings.append(HookBroken("the caller cancelled the call"))
                break
            texts = (answer.reason if answer.decision == "deny" else "", answer.context)
            call.warnings += [HookSaid(text) for text in texts if text]
            yield answer
        call.waited += time.perf_counter() - began

    # ── one hook ──

    def _concerned(self, event: str, dialect: str, tool: str, params: dict[str, Any]) -> list[Hook]:
        """Return the hooks of an event that concern a call."""
        return [hook for hook in self._hooks if hook.event == event and self._concerns(hook, dialect, tool, params)]

    def _concerns(self, hook: Hook, dialect: str, tool: str, params: dict[str, Any]) -> bool:
        text = compact(params) if hook.pattern else ""
        return concerns(hook, dialect, tool, text, self._limits.rule_seconds)

    def _run(self, hook: Hook, subject: _Subject, facts: dict[str, Any] | None = None) -> HookAnswer:
        """Run a hook and return its answer. Raises BrokenHook and Cancelled."""
        asked, began = subject.asked, time.perf_counter()
        given = {**self._input(hook.event, subject), **(facts or {})}
        said: dict[str, Any] = {}
        message = ""
        try:
            answer = self._answer(hook, json.dumps(given, default=str).encode(), asked)
        except BrokenHook as problem:
            said["broken"] = problem.detail
            raise
        else:
            message, said["decision"], said["input"] = answer.message, answer.decision, answer.updated_input
            return answer
        finally:
            took = round((time.perf_counter() - began) * 1000, 3)
            known = {"hook": hook.event, "tool": subject.tool, "command": hook.command, "milliseconds": took}
            if self._log is not None:
                known |= {name: value for name, value in said.items() if value}
                self._log.hook(asked.number if asked else 0, known, message)

    def _answer(self, hook: Hook, given: bytes, asked: "Asked | None") -> HookAnswer:
        programs = self._started()
        if why := programs.why_refused(hook.command):
            raise BrokenHook("it must not run in this workspace", why)
        try:
            ending = programs.run(hook.command, given, hook.timeout, asked.cancel if asked else None)
        except CommandNotStarted as fault:
            raise BrokenHook(f"it does not start: {fault.why}") from None
        except SandboxUnavailable as fault:
            raise BrokenHook(f"it does not start: {'; '.join(fault.why)}") from None
        if ending.cancelled:
            raise Cancelled
        if ending.trouble:
            raise BrokenHook(ending.trouble)
        return read_answer(hook.event, ending.exit_code, ending.stdout, ending.stderr, self._limits.hook_chars)

    def _started(self) -> HookPrograms:
        with self._starting:  # parallel calls share one supervisor
            if self._programs is None:
                self._programs = hook_programs(self._services)
            return self._programs

    def _input(self, event: str, subject: _Subject) -> dict[str, Any]:
        asked = subject.asked
        number = asked.number if asked else 0
        return {
            "session_id": self._session,
            "transcript_path": (self._log.path if self._log else "") or "",
            "cwd": self._services.boundary.root,
            "permission_mode": self._mode,
            "hook_event_name": event,
            "tool_name": subject.tool,
            "tool_input": subject.params,
            "tool_use_id": (asked.call_id if asked else None) or f"{self._session}-{number}",
        }


def hook_programs(services: "Services") -> HookPrograms:
    """Return what runs hooks in a workspace."""
    boundary, powers = services.boundary, services.powers
    kept = powers.sandbox != "off" and not powers.allow_reduced  # at the level `reduced` commands change guarded files
    return HookPrograms(
        boundary.fd,
        boundary.root if services.image is None else services.state.path,  # hooks run outside, and not in an image
        services.limits,
        f"{services.state.path}/output",
        agents=agents_directories(boundary.root, powers.writable),
        guarded=services.guarded_names if kept else (),
        enter=services.enter if services.image is None else None,
    )


def _joined(judged: Judgement, answer: HookAnswer) -> Judgement:
    """Return the judgement after one more answer: `ask` wins over `allow`, which counts only for the input it saw."""
    params = judged.params if answer.updated_input is None else answer.updated_input
    if params != judged.params and judged.decision == "allow":
        judged = judged._replace(decision="", reason="")
    contexts = (*judged.contexts, answer.context) if answer.context else judged.contexts
    if answer.decision == "ask" and judged.decision != "ask":
        return Judgement("ask", answer.reason, params, contexts)
    if answer.decision == "allow" and not judged.decision:
        return Judgement("allow", answer.reason, params, contexts)
    return judged._replace(params=params, contexts=contexts)


def _refusal(hook: Hook, tool: str, reason: str) -> Denied:
    why = f"a hook of the user refused it: {reason}" if reason else "a hook of the user refused it"
    return Denied(tool, why, _NO, f"Change or remove the hook {_named(hook)}")


def _broken(hook: Hook, tool: str, problem: BrokenHook) -> Denied:
    why = f"a hook of the user that must judge it failed: {problem.why}"
    return Denied(tool, why, ASK_THE_USER, _repair(hook, problem))


def _repair(hook: Hook, problem: BrokenHook) -> str:
    return f"Repair or remove the hook {_named(hook)}: {problem.detail}"


def _named(hook: Hook) -> str:
    where = f" in {hook.source}" if hook.source else ""
    return f"`{one_line(hook.command)}` ({hook.event}){where}"
