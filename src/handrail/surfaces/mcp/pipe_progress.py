"""Reports every second that calls still run: one thread for all calls; it starts with the first that wants reports."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from handrail.surfaces.mcp.mcp_protocol import Json, progress_text


class _Running:
    def __init__(self, token: int | str) -> None:
        self.token, self.seconds = token, 1
        self.due = time.monotonic() + 1


class PipeProgress:
    """Reports the progress of calls whose client sent a token."""

    def __init__(self, send: Callable[[Json], None]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._running: dict[_Running, None] = {}
        self._wanted = threading.Event()
        self._started = False

    @contextmanager
    def of(self, params: Json) -> Iterator[None]:
        """Report the progress of one call until the block ends, if its client wants that."""
        meta = params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if not isinstance(token, int | str) or isinstance(token, bool):
            yield
            return
        call = _Running(token)
        with self._lock:
            self._running[call] = None
            if not self._started:
                self._started = True
                threading.Thread(target=self._report, name="handrail-progress", daemon=True).start()
        self._wanted.set()
        try:
            yield
        finally:
            with self._lock:  # no report follows the answer
                del self._running[call]

    def _report(self) -> None:
        while True:
            self._wanted.wait()
            with self._lock:
                now = time.monotonic()
                for call in self._running:
                    if call.due <= now:
                        progress = {"progressToken": call.token, "progress": call.seconds}
                        params = progress | {"message": progress_text(call.seconds)}
                        self._send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
                        call.seconds, call.due = call.seconds + 1, call.due + 1
                pause = min([call.due - now for call in self._running], default=None)
                if pause is None:
                    self._wanted.clear()
            time.sleep(pause or 0)  # a call that begins meanwhile is due later
