"""Reports a session to the page: its calls, its output, its questions; carries out what the user asks for there."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Event
from typing import TYPE_CHECKING, Any

from handrail.kernel.page.page_link import PageLink, page_link
from handrail.kernel.page.page_messages import Later, Message, as_bytes
from handrail.kernel.page.page_place import program_name
from handrail.kernel.process.jobs import Job, number_of
from handrail.kernel.process.runner import ending_of
from handrail.kernel.process.terminals import Terminal
from handrail.model.approval import Question, Verdict, compact
from handrail.model.faults import Fault
from handrail.model.page_limits import PAGE_LIMITS
from handrail.model.terminal_faults import UnknownTerminal
from handrail.policy.question_facts import question_diff, question_facts

if TYPE_CHECKING:
    from handrail.runtime.session import Session
    from handrail.tools.tool import ToolResult

_TARGET = 200
"""The most characters of what a call is about, in the list."""


asking_call: ContextVar["LiveCall | None"] = ContextVar("asking_call", default=None)
"""The call that asks, if the page knows it."""


class PageSession:
    """Reports one session."""

    def __init__(self, session: "Session") -> None:
        self.session, self.id = session, session.id
        self.limits = session.services.limits
        self.link: PageLink = page_link(PAGE_LIMITS.queue_bytes)
        about = {"root": session.services.boundary.root, "client": session.client or program_name()}
        self._held: list[dict[str, Any]] = []
        facts = {"type": "session", "session": self.id, "time": time.time(), **about}
        self.link.stand(f"session {self.id}", facts, take=self._take)

    def there(self) -> bool:
        """Return whether the page's server is connected."""
        return self.link.there()

    def close(self) -> None:
        """Report the end of the session."""
        self.link.settle(f"held {self.id}", {"type": "held", "session": self.id, "items": []})
        self.link.settle(f"session {self.id}", {"type": "session-end", "session": self.id})

    def begin(self, tool: tuple[str, str], given: Any, paths: Iterable[str], number: int, cancel: Event) -> "LiveCall":
        """Report that a call begins; `tool` is the dialect and the name."""
        return LiveCall(self, tool, given, paths, number, cancel)

    def print_held(self, name: str, chunk: bytes) -> None:
        """Report output of a terminal or job; nothing at its end."""
        if chunk:
            self.link.print(f"{self.id}/{name}", chunk)
        else:
            self.report_held()

    def report_held(self) -> None:
        """Report which terminals and jobs there are."""
        items = held_items(self.session)
        if items or self._held:
            self._held = items
            message = {"type": "held", "session": self.id, "items": items}
            self.link.stand(f"held {self.id}", message)

    def _take(self, message: Message) -> None:
        """Carry out what the user asks of a terminal or job: in a thread of its own, because that may take a while."""
        if message.get("do") in ("type", "end"):
            threading.Thread(target=self._act, args=(message,), name="handrail-page-act", daemon=True).start()

    def _act(self, message: Message) -> None:
        name, limits = str(message.get("held")), self.limits
        with suppress(Fault, ValueError):  # it has ended meanwhile, or cannot be typed into
            program = held_program(self.session, name)
            if message["do"] == "end":
                program.end(limits.end_patience_seconds)
                self.report_held()
                return
            data = as_bytes(str(message.get("data")))
            if program.type_unseen(data, limits.terminal_write_seconds):
                self.link.print(f"{self.id}/{name}", shown_typing(data))


class LiveCall:
    """Reports one call while it runs."""

    def __init__(
        self,
        page: PageSession,
        tool: tuple[str, str],
        given: Any,
        paths: Iterable[str],
        number: int,
        cancel: Event,
    ) -> None:
        self.page, self.cancel, self.id = page, cancel, f"{page.id}/{number}"
        self.decided_by = ""
        params = given if isinstance(given, dict) else {}
        size = sum(len(each) for each in params.values() if isinstance(each, str))
        message = {
            "type": "begin",
            "call": self.id,
            "session": page.id,
            "number": number,
            "dialect": tool[0],
            "tool": tool[1],
            "time": time.time(),
            "target": _target(params, paths),
            "params": Later(lambda: _cut(compact(params), PAGE_LIMITS.detail_chars)),
        }
        page.link.stand(self.id, message, size, self._take)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Say in this context which call asks."""
        token = asking_call.set(self)
        try:
            yield
        finally:
            asking_call.reset(token)

    def print(self, chunk: bytes) -> None:
        """Report output of a command."""
        self.page.link.print(self.id, chunk)

    def end(self, result: "ToolResult") -> None:
        """Report the result."""
        message = {
            "type": "end",
            "call": self.id,
            "time": time.time(),
            "took": result.execution_time_ms,
            "success": result.success,
            "error": result.error.code if result.error else "",
            "by": self.decided_by,
            "files": result.files_affected,
            "warnings": result.warnings,
            "metadata": result.metadata,
            "answer": Later(lambda: _cut(result.text, PAGE_LIMITS.detail_chars)),
        }
        size = len(result.output) if isinstance(result.output, str) else PAGE_LIMITS.detail_chars
        self.page.link.settle(self.id, message, size)
        self.page.report_held()

    def _take(self, message: Message) -> None:
        if message.get("do") == "stop":
            self.cancel.set()


class PageQuestion:
    """Asks one question on the page. `answer` is called in the thread of the link with what the page says."""

    def __init__(
        self, page: PageSession, question: Question, call: LiveCall | None, answer: Callable[[Message], None]
    ) -> None:
        from secrets import token_hex  # noqa: PLC0415  only for questions

        self._page, self._answer = page, answer
        self.id = f"question {token_hex(8)}"
        diff = question_diff(question)
        message = {
            "type": "question",
            "question": self.id,
            "session": page.id,
            "call": call.id if call else "",
            "time": time.time(),
            "facts": question_facts(question, page.limits),
            "diff": diff[: PAGE_LIMITS.diff_chars],
            "diff_cut": max(0, len(diff) - PAGE_LIMITS.diff_chars),
        }
        page.link.stand(self.id, message, len(diff), self._take)

    def settle(self, verdict: Verdict | None, place: str) -> None:
        """Report the verdict and the place where it was given; a verdict of None says that there was no answer."""
        message: Message = {"type": "answered", "question": self.id, "place": place}
        if verdict is not None:
            message |= {"allowed": verdict.allowed, "by": verdict.decided_by, "reason": verdict.reason}
        self._page.link.settle(self.id, message)

    def refuse(self, why: str) -> None:
        """Say why an answer was not taken; the question stays open."""
        self._page.link.send({"type": "answer-refused", "question": self.id, "why": why})

    def _take(self, message: Message) -> None:
        if message.get("do") == "answer":
            self._answer(message)


def _cut(text: str, most: int) -> str:
    """Return a text, with a note at its end if it is cut."""
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most} characters not shown …"


def _target(params: dict[str, Any], paths: Iterable[str]) -> str:
    """Return what a call is about: its first path, else its first text."""
    named = [each for name, each in params.items() if name in paths and isinstance(each, str)]
    texts = named or [each for each in params.values() if isinstance(each, str)]
    return texts[0][:_TARGET] if texts else ""


def held_items(session: "Session") -> list[dict[str, Any]]:
    """Return the terminals and jobs of a session, as the page lists them."""
    terminals, jobs = session.known_terminals, session.known_jobs
    items = [
        {
            "name": f"terminal {each.name}",
            "terminal": True,
            "running": each.alive,
            "ending": "" if each.alive else _ending(*ending_of(each.status)),
            "time": each.started_at,
        }
        for each in (terminals.list() if terminals else [])
    ]
    return items + [
        {
            "name": f"job {each.number}",
            "command": each.text,
            "terminal": each.terminal,
            "running": each.running,
            "ending": "" if each.running else _ending(each.exit_code, each.signal),
            "time": each.started_at,
        }
        for each in (jobs.list() if jobs else [])
    ]


def held_program(session: "Session", name: str) -> Terminal | Job:
    """Return a terminal or job by the name that the page uses. Raises UnknownTerminal and UnknownJob."""
    kind, _, rest = name.partition(" ")
    if kind == "job" and session.known_jobs is not None:
        return session.known_jobs.get(number_of(rest))
    if session.known_terminals is None:
        raise UnknownTerminal(rest)
    return session.known_terminals.get(rest)


def shown_typing(data: bytes) -> bytes:
    """Return what a terminal would have echoed: the page shows it, the model does not see it."""
    plain = data.replace(b"\r", b"\r\n")
    return b"".join(map(_shown_byte, plain))


def _shown_byte(byte: int) -> bytes:
    return bytes([byte]) if byte >= 0x20 or byte in b"\r\n\t" else b"^" + bytes([byte ^ 0x40])


def _ending(code: int | None, signal: str | None) -> str:
    return f"ended by {signal}" if signal else f"exit code {code}" if code is not None else "ended"
