"""A line for the person while a call takes its time: on a terminal, on standard error, and gone when it is over."""

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
    def __init__(self, stream: TextIO | None = None, patience: float = Limits().progress_seconds) -> None:
        out = sys.stderr if stream is None else stream
        self._stream = out if can_erase(out) else None
        self._patience = patience
        self._lock = threading.Lock()
        self._asking = self._shown = False

    @contextmanager
    def during(self, tool: str) -> Iterator[None]:
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
        started, told = time.monotonic(), 0.0
        while not over.wait(max(0.05, min(1.0, self._patience))):
            with self._lock:
                if self._asking:
                    started = time.monotonic()  # the person's own time does not count
                    continue
                told = time.monotonic() - started
                if told >= self._patience and self._stream is not None:
                    self._stream.write(f"{_ERASE}… {one_line(tool)} {told:.0f}s")
                    self._stream.flush()
                    self._shown = True

    def _erase(self) -> None:
        if self._shown and self._stream is not None:
            self._stream.write(_ERASE)
            self._stream.flush()
            self._shown = False

    def asking(self, approver: Approver | None) -> Approver | None:
        """The same asker, with the line out of its way."""
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
