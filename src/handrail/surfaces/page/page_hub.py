"""Holds what the connected processes report, for all browsers: sessions, calls, output, questions.

All of it happens in the event loop of the server. Names that a process sends count only for that process: none can
answer, end or imitate what another one has reported.
"""

import json
import secrets
import time
from collections import OrderedDict
from typing import Any

from handrail.kernel.page.page_listener import Process
from handrail.kernel.page.page_messages import Message, as_bytes
from handrail.model.limits import Limits
from handrail.model.page_limits import PAGE_LIMITS
from handrail.model.record import record
from handrail.ops.text.display import one_line, visible
from handrail.surfaces.page.diff_rows import Diff
from handrail.surfaces.page.event_ring import EventRing
from handrail.surfaces.page.live_output import LiveOutput
from handrail.surfaces.page.question_card import question_card

_ANSWERED = 50
"""The most answered questions that the page still shows."""
_SESSIONS = 500
_NAME = 300
_HELD_NAMES = ("terminal ", "job ")
"""How the names of terminals and jobs begin; calls have numbers."""
_KINDS = ("session", "session-end", "begin", "end", "output", "question", "answered", "answer-refused", "held")


@record
class OpenQuestion:
    """Holds one question: what browsers see of it, its diff, and who asks."""

    card: dict[str, Any]
    facts: dict[str, Any]
    process: Process
    asked: str
    """The name that the process knows."""
    since: float
    diff: Diff | None = None


class PageHub:
    """Takes the messages of processes and turns them into events for browsers."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.boot = limits, secrets.token_hex(8)
        self.ring = EventRing(self.boot, PAGE_LIMITS.events, PAGE_LIMITS.events_bytes, self.state)
        self.questions: dict[str, OpenQuestion] = {}
        self.sessions: dict[str, dict[str, Any]] = {}
        self.calls: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self.outputs: dict[str, LiveOutput] = {}
        self.held: dict[str, dict[str, Any]] = {}
        """The terminals and jobs, by session."""
        self._details: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._details_size = 0
        self._numbers: dict[str, int] = {}
        self._processes: dict[Process, int] = {}
        self._owners: dict[str, Process] = {}
        self._count = 0
        self.browsers = 0
        self._seen = float("-inf")
        self.busy_at = time.monotonic()

    # ── processes ──

    def joined(self, process: Process) -> "_Taker":
        """Take a process in; return what takes its messages."""
        number = self._numbers.setdefault(process.name or secrets.token_hex(8), len(self._numbers) + 1)
        self._processes[process] = number
        self.busy_at = time.monotonic()
        process.send({"do": "watch", "watched": self.watched})
        return _Taker(self, process, f"p{number}:")

    def left(self, process: Process) -> None:
        """Close the questions and sessions of a process that has gone, and mark its running calls as lost."""
        number = self._processes.pop(process, None)
        self.busy_at = time.monotonic()
        prefix = f"p{number}:"
        if number in self._processes.values():
            return  # it is here again already
        for key in [key for key, each in self.questions.items() if each.process is process]:
            self._answered(key, {"place": "gone"})
        for key, call in self.calls.items():
            if key.startswith(prefix) and call["state"] == "running":
                self._changed(key, {"state": "lost"})
        for key, session in self.sessions.items():
            if key.startswith(prefix) and session["open"]:
                session["open"] = False
                self.ring.add({"type": "session", "session": session})
                self._drop_held(key)

    @property
    def connected(self) -> int:
        """How many processes are connected."""
        return len(self._processes)

    def is_held(self, key: str) -> bool:
        """Return whether a terminal or job is known."""
        return key in self._owners

    def owner(self, key: str) -> Process | None:
        """Return the connected process of a call or session."""
        prefix = key.partition(":")[0]
        return next((each for each, number in self._processes.items() if f"p{number}" == prefix), None)

    # ── browsers ──

    @property
    def watched(self) -> bool:
        """True if a user can answer: a browser shows the page, or did a moment ago, or an address was just shown."""
        return self.browsers > 0 or time.monotonic() < self._seen + PAGE_LIMITS.absent_seconds

    def note_user(self) -> None:
        """Note that a user is about to look, or has looked until now."""
        self._seen = self.busy_at = time.monotonic()
        self.tell_watched()

    def tell_watched(self) -> None:
        """Tell every process whether a user can answer."""
        for process in self._processes:
            process.send({"do": "watch", "watched": self.watched})

    def state(self) -> dict[str, Any]:
        """Return everything that a browser shows at first."""
        return {
            "boot": self.boot,
            "now": time.time(),
            "quiet": PAGE_LIMITS.quiet_seconds,
            "questions": [each.card for each in self.questions.values()],
            "sessions": [*self.sessions.values()],
            "calls": [*self.calls.values()],
            "held": [*self.held.values()],
        }

    def detail(self, key: str) -> dict[str, Any] | None:
        """Return all that is known about a call."""
        call = self.calls.get(key)
        if call is None:
            return None
        output = self.outputs.get(key)
        return {**call, **self._details.get(key, {}), "output": output.shown() if output else None}

    # ── messages ──

    def take_session(self, key: str, message: Message, _process: Process) -> None:
        known = self.sessions.get(key)
        root, client = (one_line(str(message.get(name, "")), _NAME) for name in ("root", "client"))
        session = {"id": key, "root": root, "client": client, "time": float(message.get("time", 0)), "open": True}
        session |= {"path": str(message.get("root", "")), "session": one_line(str(message.get("session", "")), 100)}
        if known == session:
            return
        self.sessions[key] = session
        closed = [each for each, found in self.sessions.items() if not found["open"]]
        for old in closed[: max(0, len(self.sessions) - _SESSIONS)]:
            del self.sessions[old]
        self.ring.add({"type": "session", "session": session})

    def take_session_end(self, key: str, _message: Message, _process: Process) -> None:
        session = self.sessions.get(key)
        if session is not None:
            session["open"] = False
            self.ring.add({"type": "session", "session": session})
        self._drop_held(key)

    def take_begin(self, key: str, message: Message, _process: Process) -> None:
        if key in self.calls:
            return
        self._count += 1
        call: dict[str, Any] = {
            name: one_line(str(message.get(name, "")), _NAME) for name in ("dialect", "tool", "target")
        }
        call |= {"id": key, "n": self._count, "session": key.rpartition("/")[0], "state": "running", "by": ""}
        call |= {"time": float(message.get("time", 0)), "took": None, "error": "", "number": message.get("number")}
        self.calls[key] = call
        self._keep_details(key, {"params": visible(str(message.get("params", "")))})
        while len(self.calls) > PAGE_LIMITS.calls:
            old, _ = self.calls.popitem(last=False)
            self.outputs.pop(old, None)
            self._drop_details(old)
        self.ring.add({"type": "call", "call": call})

    def take_end(self, key: str, message: Message, _process: Process) -> None:
        if key not in self.calls:
            return
        known = {
            "state": "done" if message.get("success") else "failed",
            "took": float(message.get("took", 0)),
            "by": one_line(str(message.get("by", "")), _NAME),
            "error": one_line(str(message.get("error", "")), _NAME),
            "changed": len(message.get("files") or ()),
        }
        self._keep_details(
            key,
            {
                "answer": visible(str(message.get("answer", ""))),
                "warnings": [visible(str(each)) for each in message.get("warnings") or ()],
                "files": [one_line(str(each), _NAME) for each in message.get("files") or ()][:1000],
                "facts": _facts(message.get("metadata")),
            },
        )
        self._changed(key, known)

    def take_output(self, key: str, message: Message, _process: Process) -> None:
        session, _, name = key.partition("/")
        held = session in self.sessions and name.startswith(_HELD_NAMES)  # it may print before it is listed
        if key not in self.calls and not held:
            return
        output = self.outputs.setdefault(key, LiveOutput(PAGE_LIMITS.output_bytes, raw=held))
        piece = output.add(as_bytes(str(message.get("data", ""))), int(message.get("skipped", 0)))
        self.ring.add({"type": "output", "of": key, **piece})

    def take_question(self, key: str, message: Message, process: Process) -> None:
        if key in self.questions and self.questions[key].card["state"] == "open":
            self.questions[key].process = process
            return
        prefix = key.partition(":")[0]
        session, call = (f"{prefix}:{message.get(name)}" for name in ("session", "call"))
        diff = Diff.of(str(message.get("diff", "")))
        about = {"id": key, "session": session, "call": call, "time": float(message.get("time", 0)), "state": "open"}
        card = question_card(message["facts"]) | about | {"n": len(self.questions)}
        card |= {"diff": diff.summary, "diff_cut": int(message.get("diff_cut", 0))}
        asked, since = key.partition(":")[2], time.monotonic()
        self.questions[key] = OpenQuestion(card, message["facts"], process, asked, since, diff)
        self.ring.add({"type": "question", "question": card})

    def take_answered(self, key: str, message: Message, _process: Process) -> None:
        self._answered(key, message)

    def take_answer_refused(self, key: str, message: Message, _process: Process) -> None:
        question = self.questions.get(key)
        if question is not None:
            question.card.pop("answering", None)
            self.ring.add({"type": "refused", "question": key, "why": visible(str(message.get("why", "")))})

    def take_held(self, key: str, message: Message, process: Process) -> None:
        self.held[key] = held_list(key, message)
        for each in self.held[key]["items"]:
            self._owners[each["id"]] = process
        self.ring.add({"type": "held", "held": self.held[key]})

    # ── changes ──

    def _answered(self, key: str, message: Message) -> None:
        question = self.questions.get(key)
        if question is None or question.card["state"] != "open":
            return
        answered = {"place": one_line(str(message.get("place") or "cancelled"), 40), "allowed": message.get("allowed")}
        answered |= {"reason": one_line(str(message.get("reason", "")), 1000), "at": time.time()}
        question.card |= {"state": "answered", "answered": answered}
        question.diff = None
        self.ring.add({"type": "answered", "question": key, "answered": answered})
        done = [key for key, each in self.questions.items() if each.card["state"] == "answered"]
        for old in done[:-_ANSWERED]:
            del self.questions[old]

    def _changed(self, key: str, known: dict[str, Any]) -> None:
        self.calls[key] |= known
        self.ring.add({"type": "call-changed", "call": key, "known": known})

    def _drop_held(self, key: str) -> None:
        """Forget the terminals and jobs of a session, and tell the browsers."""
        if self.held.pop(key, None) is not None:
            for each in [each for each in self._owners if each.startswith(f"{key}/")]:
                del self._owners[each]
            for each in [each for each in self.outputs if each.startswith(f"{key}/") and each not in self.calls]:
                del self.outputs[each]
            self.ring.add({"type": "held", "held": {"session": key, "items": []}})

    def _keep_details(self, key: str, known: dict[str, Any]) -> None:
        found = self._details.setdefault(key, {})
        found |= known
        self._details_size += sum(len(each) for each in known.values())
        while self._details_size > PAGE_LIMITS.details_chars and len(self._details) > 1:
            self._drop_details(next(iter(self._details)))

    def _drop_details(self, key: str) -> None:
        self._details_size -= sum(len(each) for each in self._details.pop(key, {}).values())


class _Taker:
    """Takes the messages of one process."""

    def __init__(self, hub: PageHub, process: Process, prefix: str) -> None:
        self._hub, self._process, self._prefix = hub, process, prefix

    def __call__(self, message: Message) -> None:
        kind = message.get("type")
        if kind not in _KINDS:
            return
        names = {"session": "session", "session-end": "session", "held": "session", "output": "of"}
        name = names.get(kind, "question" if kind.startswith(("question", "answer")) else "call")
        take = getattr(self._hub, f"take_{kind.replace('-', '_')}")
        take(f"{self._prefix}{message[name]}", message, self._process)


def _facts(metadata: Any) -> list[list[str]]:
    """Return what an answer reports besides its text, such as the sandbox and the exit code of a command."""
    if not isinstance(metadata, dict):
        return []
    shown = {name: each if isinstance(each, str) else json.dumps(each) for name, each in metadata.items()}
    return [
        [one_line(name.replace("_", " ").capitalize(), _NAME), one_line(each, 2000)] for name, each in shown.items()
    ]


def held_list(key: str, message: Message) -> dict[str, Any]:
    """Return the terminals and jobs of a session, as browsers see them."""
    items = [
        {
            "id": f"{key}/{each['name']}",
            "name": one_line(str(each["name"]), _NAME),
            "command": one_line(str(each.get("command", "")), _NAME),
            "terminal": bool(each.get("terminal")),
            "running": bool(each.get("running")),
            "ending": one_line(str(each.get("ending", "")), _NAME),
            "time": float(each.get("time", 0)),
        }
        for each in message.get("items", ())
    ]
    return {"session": key, "items": items}
