"""One thread that reads on what nobody waits for: terminals between calls, output of background children."""

import os
import select
import threading
from collections.abc import Callable

CHUNK = 65536


class Pump:
    """Calls `take(chunk)` for what arrives and `take(b"")` once at the end; then it closes the handle."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._takers: dict[int, Callable[[bytes], None]] = {}
        self._poller = select.poll()
        self._wake: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None

    def add(self, fd: int, take: Callable[[bytes], None]) -> None:
        os.set_blocking(fd, False)
        with self._lock:
            if self._wake is None:
                self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
                self._poller.register(self._wake[0], select.POLLIN)
                self._thread = threading.Thread(target=self._run, args=self._wake, name="handrail-pump", daemon=True)
                self._thread.start()
            self._takers[fd] = take
            self._poller.register(fd, select.POLLIN)
            os.write(self._wake[1], b".")

    def close(self) -> None:
        """Stop and close every handle. What was added is not told."""
        with self._lock:
            if self._wake is not None:
                os.close(self._wake[1])
                self._wake = None
        if self._thread is not None:
            self._thread.join()

    def _run(self, wake: int, _: int) -> None:
        while True:
            for fd, _event in self._poller.poll():
                if fd != wake:
                    self._read(fd)
                elif not os.read(wake, CHUNK):
                    self._close_all(wake)
                    return

    def _read(self, fd: int) -> None:
        try:
            chunk = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:  # a terminal whose last process ended says EIO
            chunk = b""
        take = self._takers[fd]
        if not chunk:
            with self._lock:
                self._poller.unregister(fd)
                del self._takers[fd]
            os.close(fd)
        take(chunk)

    def _close_all(self, wake: int) -> None:
        with self._lock:
            for fd in (wake, *self._takers):
                os.close(fd)
            self._takers = {}
