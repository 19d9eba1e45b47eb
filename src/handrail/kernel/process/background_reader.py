"""Reads, in one thread, output for which no call waits: of terminals between calls and of background children."""

import os
import select
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

CHUNK = 65536


class BackgroundReader:
    """Calls `take(chunk)` for each chunk that arrives on a handle; at the end closes it and calls `take(b"")`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._takers: dict[int, Callable[[bytes], None]] = {}
        self._poller = select.poll()
        self._wake: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None

    def add(self, fd: int, take: Callable[[bytes], None]) -> None:
        """Read this handle from now on."""
        os.set_blocking(fd, False)
        with self._lock:
            if self._wake is None:
                self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
                self._poller.register(self._wake[0], select.POLLIN)
                self._thread = threading.Thread(target=self._run, args=self._wake, name="handrail-reader", daemon=True)
                self._thread.start()
            self._takers[fd] = take
            self._poller.register(fd, select.POLLIN)
            os.write(self._wake[1], b".")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Read nothing during the block; all that was read before has been taken. The caller may hold no other lock."""
        with self._reading:
            yield

    def close(self) -> None:
        """Stop and close every handle, without a last `take(b"")`."""
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
                    with self._reading:
                        self._read(fd)
                elif not os.read(wake, CHUNK):
                    self._close_all(wake)
                    return

    def _read(self, fd: int) -> None:
        try:
            chunk = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:  # a terminal gives EIO after its last process has ended
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
