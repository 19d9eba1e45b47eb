"""Shows a progress line on standard error while a call runs, if standard error is a terminal."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from handrail.kernel.host.terminal import can_erase
from handrail.model.approval import Approver, Question, Verdict
from handrail.model.limits import Limits
from handrail.ops.text.display import one_line

_ERASE = "\r\x1b[K"


class Progress:
    """Shows how long a call has been running; erases the line at the end of the call and during questions."""

    def __init__(self, stream: TextIO | None = None, patience: float = Limits().progress_seconds) -> None:
        out = sys.stderr if stream is None else stream
        self._stream = out if can_erase(out) else None
        self._patience = patience
        self._lock = threading.Lock()
        self._asking = self._shown = False

    @contextmanager
    def during(self, tool: str) -> Iterator[None]:
        """Show the progress of one call until the block ends."""
        if self._stream is None:
            yield
            return
        over = threading.Event()
        thread = threading.Thread(target=self._tick, args=(tool, over), name="handrail-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
            self._erase()

    def _tick(self, tool: str, over: threading.Event) -> None:
        started = time.monotonic()
        while not over.wait(max(0.05, min(1.0, self._patience))):
            with self._lock:
                if self._asking:
                    started = time.monotonic()  # the user's time to answer does not count
                    continue
                seconds = time.monotonic() - started
                if seconds >= self._patience and self._stream is not None:
                    self._stream.write(f"{_ERASE}… {one_line(tool)} {seconds:.0f}s")
                    self._stream.flush()
                    self._shown = True

    def _erase(self) -> None:
        if self._shown and self._stream is not None:
            self._stream.write(_ERASE)
            self._stream.flush()
            self._shown = False

    def asking(self, approver: Approver | None) -> Approver | None:
        """Return an approver that erases the line before it asks."""
        if approver is None or self._stream is None:
            return approver

        def ask(question: Question) -> Verdict:
            with self._lock:
                self._asking = True
                self._erase()
            try:
                return approver(question)
            finally:
                with self._lock:
                    self._asking = False

        return ask
