"""Shows the events of a run: text, one line for each call, diffs, progress; or one JSON object a line."""

import json
import time
from typing import Any, TextIO

from handrail.chat.asker import Event
from handrail.kernel.host.terminal import can_erase
from handrail.ops.text.display import one_line, visible
from handrail.runtime.entry_facts import file_diff
from handrail.workspace import Workspace, internals

_ERASE = "\r\x1b[K"
_SHOWN_CHARS = 100
_DIFF_LINES = 60


class JsonLines:
    """Prints each event as one JSON object on one line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __call__(self, event: Event) -> None:
        text = json.dumps(event, ensure_ascii=False).encode(errors="backslashreplace").decode()  # half a surrogate pair
        self._out.write(f"{text}\n")
        self._out.flush()


class RunDisplay:
    """Shows a run to the user at a terminal. In a pipe, only the final answer and errors are printed."""

    def __init__(self, workspace: Workspace, screen: TextIO, out: TextIO) -> None:
        self._workspace, self._screen, self._out = workspace, screen, out
        self._shown = screen.isatty()
        self._same = self._shown and out.isatty()
        self._lines = can_erase(screen)
        self._started, self._column, self._progress = time.monotonic(), 0, False

    def __call__(self, event: Event) -> None:
        getattr(self, f"_{event['type']}")(event)

    def _text(self, event: Event) -> None:
        self._write(visible(event["text"]))

    def _call(self, event: Event) -> None:
        shown = [f"{name}={one_line(str(value), _SHOWN_CHARS)}" for name, value in _named(event["arguments"]).items()]
        self._line(one_line(f"→ {event['tool']} {' '.join(shown)}"))

    def _result(self, event: Event) -> None:
        if event["success"]:
            self._line(f"  ✓ {event['execution_time_ms']:.0f} ms")
            self._changes(event["id"])
        else:
            self._line(f"  ✗ {one_line(event['error']['message'], _SHOWN_CHARS)}")

    def _changes(self, call_id: str) -> None:
        if not self._shown:
            return
        journal = internals(self._workspace).services.journal
        for each in self._workspace.history().entries(5, session=self._workspace.session_id):
            if each.entry.origin.call_id == call_id:
                diff = "".join(file_diff(journal, file) for file in each.entry.files).splitlines()
                more = [f"… {len(diff) - _DIFF_LINES} more lines: handrail show {each.n}"]
                for line in diff if len(diff) <= _DIFF_LINES else diff[:_DIFF_LINES] + more:
                    self._line(f"    {visible(line)}")
                return

    def _step(self, event: Event) -> None:
        money = f", ${event['money']:.4f}" if event["money"] else ""
        seconds = time.monotonic() - self._started
        if self._lines:
            self._write(f"… {event['steps']} steps, {event['tokens']} tokens{money}, {seconds:.0f}s")
            self._progress = True

    def _retry(self, event: Event) -> None:
        self._line(f"handrail: {one_line(event['reason'], 300)}; asking again in {event['seconds']:g} s")

    def _compact(self, event: Event) -> None:
        self._line(f"handrail: summarised {event['messages']} earlier messages")

    def _end(self, event: Event) -> None:
        if event["status"] != "done":
            self._line(f"handrail: {visible(event['reason'])}", always=True)
        self._line(f"handrail: the steps are in {event['trajectory']}")
        if event["answer"] and not self._same:
            self._out.write(f"{visible(event['answer'])}\n")
            self._out.flush()

    def _line(self, text: str, *, always: bool = False) -> None:
        """Show a line of its own."""
        if self._shown or always:
            self._erase()
            start = "\n" * self._column
            self._screen.write(f"{start}{text}\n")
            self._screen.flush()
            self._column = 0

    def _write(self, text: str) -> None:
        if self._shown and text:
            self._erase()
            self._screen.write(text)
            self._screen.flush()
            self._column = 0 if text.endswith("\n") else 1

    def _erase(self) -> None:
        """Erase the progress line."""
        if self._progress:
            self._screen.write(_ERASE)
            self._progress, self._column = False, 0


def _named(arguments: Any) -> dict[str, Any]:
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}
