"""Connects this process with the page's server. One thread sends reports and hands on what the page asks for.

Nothing here waits for the server: a report is queued, and a server that does not read in time loses the connection.
Sessions, running calls and open questions are sent again after a new connection.
"""

import os
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from handrail.kernel.host.state_dir import read_text
from handrail.kernel.page.page_messages import LONGEST, Message, as_text, decoded, encoded
from handrail.kernel.page.page_place import exists, page_secret, page_socket

_CHUNK = 1 << 16
_FLUSH_SECONDS = 0.05
"""How often the output of commands is sent."""
_AGAIN_SECONDS = 1.0
"""How long a process waits after it could not connect."""
_CONNECT_SECONDS = 1.0
_LONGEST_PATH = 100
_Taker = Callable[[Message], None]


class _Standing(NamedTuple):
    message: Message
    size: int
    take: _Taker | None


class _Printed:
    """Holds output that was not sent yet: at most one chunk, the newest."""

    def __init__(self) -> None:
        self.data, self.skipped = bytearray(), 0

    def add(self, chunk: bytes) -> None:
        self.data += chunk
        if (excess := len(self.data) - _CHUNK) > 0:
            del self.data[:excess]
            self.skipped += excess


class PageLink:
    """Holds the connection of this process. `open` says whether there is one."""

    def __init__(self, most_bytes: int) -> None:
        """`most_bytes` is how much may wait to be sent; with more, the connection is given up."""
        self.open = False
        self.watched: bool | None = None
        """Whether a user can answer on the page: a browser shows it, or will soon. None: not known yet."""
        self._most, self._path = most_bytes, page_socket()
        self._lock = threading.RLock()
        self._queue: deque[tuple[Message, int]] = deque()
        self._waiting = 0
        self._standing: dict[str, _Standing] = {}
        self._printed: dict[str, _Printed] = {}
        self._retry_at = 0.0
        self._socket: socket.socket | None = None
        self._wake = -1
        self._name = os.urandom(16).hex()
        """By this the server knows the process again after a lost connection."""

    # ── called by the threads of calls ──

    def there(self) -> bool:
        """Return whether the page's server is connected; connect if its socket exists."""
        return self.open or (exists(self._path) and self._connect())

    def send(self, message: Message, size: int = 0) -> None:
        """Queue a message; without a connection it is dropped."""
        with self._lock:
            if self.open:
                self._put(message, size)

    def stand(self, key: str, message: Message, size: int = 0, take: _Taker | None = None) -> None:
        """Send a message, and again after every new connection until `settle`. `take` gets what the page says to it."""
        with self._lock:
            self._standing[key] = _Standing(message, size, take)
            self.send(message, size)

    def settle(self, key: str, message: Message, size: int = 0) -> None:
        """Send the last message about something that has ended."""
        with self._lock:
            if self._standing.pop(key, None) is not None:
                self.send(message, size)

    def print(self, of: str, chunk: bytes) -> None:
        """Send a chunk of output soon; of output that comes too fast only the newest part is sent."""
        with self._lock:
            if self.open:
                first = not self._printed
                self._printed.setdefault(of, _Printed()).add(chunk)
                if first:
                    self._wake_up()

    # ── the connection ──

    def _connect(self) -> bool:
        with self._lock:
            if self.open or time.monotonic() < self._retry_at:
                return self.open
            self._retry_at = time.monotonic() + _AGAIN_SECONDS
            try:
                secret = read_text(page_secret())
                found = connected(self._path)
            except OSError:  # a killed server leaves its socket behind
                return False
            wake, self._wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
            self._socket, self.open = found, True
            self._put({"type": "hello", "secret": secret, "process": self._name}, 0)
            for standing in self._standing.values():
                self._put(standing.message, standing.size)
            work = (found, wake)
            threading.Thread(target=self._run, args=work, name="handrail-page", daemon=True).start()
            return True

    def _put(self, message: Message, size: int) -> None:
        """Queue a message; give the connection up if too much is waiting."""
        self._waiting += size
        if self._waiting > self._most:
            self._lose()
            return
        self._queue.append((message, size))
        if len(self._queue) == 1:
            self._wake_up()

    def _wake_up(self) -> None:
        with suppress(OSError):  # a full pipe wakes the thread, too
            os.write(self._wake, b".")

    def _lose(self) -> None:
        """End the connection, and end every wait for an answer of the page."""
        with self._lock:
            if not self.open:
                return
            self.open, self.watched = False, None
            self._queue.clear()
            self._printed.clear()
            self._waiting = 0
            os.close(self._wake)  # ends the thread
            takers = [standing.take for standing in self._standing.values() if standing.take]
        for take in takers:
            take({"do": "lost"})

    def forget(self) -> None:
        """Drop everything and send nothing: this is a forked child, which has neither the thread nor the sessions."""
        self._lock = threading.RLock()
        if self._socket is not None:
            self._socket.close()
        if self.open:  # otherwise the number belongs to another file by now
            os.close(self._wake)
        self.open, self.watched = False, None
        self._socket = None
        self._queue.clear()
        self._standing.clear()
        self._printed.clear()

    # ── the thread ──

    def _run(self, link: socket.socket, wake: int) -> None:
        out, received = bytearray(), bytearray()
        poller = select.poll()
        poller.register(wake, select.POLLIN)
        flushed = time.monotonic()
        try:
            while self.open and self._socket is link:
                unsent = out or self._queue  # the queue may hold more than was encoded at once
                poller.register(link, select.POLLIN | (select.POLLOUT if unsent else 0))
                pause = None if not self._printed else max(0.0, flushed + _FLUSH_SECONDS - time.monotonic()) * 1000
                for fd, event in poller.poll(pause):
                    if fd == wake:
                        if not os.read(wake, _CHUNK):
                            return
                    elif event & ~select.POLLOUT and not self._receive(link, received):
                        return
                if time.monotonic() >= flushed + _FLUSH_SECONDS:
                    self._flush_printed()
                    flushed = time.monotonic()
                self._fill(out)
                if out:
                    with suppress(BlockingIOError):
                        del out[: link.send(out)]
        except (OSError, ValueError):
            return
        finally:
            link.close()
            os.close(wake)
            if self._socket is link:
                self._lose()

    def _flush_printed(self) -> None:
        with self._lock:
            printed, self._printed = self._printed, {}
        for of, each in printed.items():
            data = bytes(each.data)
            self.send({"type": "output", "of": of, "data": as_text(data), "skipped": each.skipped}, len(data))

    def _fill(self, out: bytearray) -> None:
        """Encode queued messages, as many as the connection may take soon."""
        while len(out) < _CHUNK:
            with self._lock:
                if not self._queue:
                    return
                message, size = self._queue.popleft()
                self._waiting -= size
            out += encoded(message)

    def _receive(self, link: socket.socket, received: bytearray) -> bool:
        """Read and carry out messages; return False at the end of the connection."""
        try:
            chunk = link.recv(_CHUNK)
        except BlockingIOError:
            return True
        received += chunk
        if not chunk or len(received) > LONGEST:
            return False
        *lines, rest = bytes(received).split(b"\n")
        received[:] = rest
        for line in lines:
            self._take(decoded(line))
        return True

    def _take(self, message: Message) -> None:
        if message.get("do") == "watch":
            self.watched = bool(message.get("watched"))
        with self._lock:
            if message.get("to") is None:
                takers = [each.take for each in self._standing.values() if each.take]
            else:
                standing = self._standing.get(str(message["to"]))
                takers = [standing.take] if standing and standing.take else []
        for take in takers:
            take(message)


def connected(path: str) -> socket.socket:
    """Return a connection to a Unix socket of this user. Raises OSError."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        found.settimeout(_CONNECT_SECONDS)
        with _short(path) as short:
            found.connect(short)
        if peer_user(found) != os.geteuid():
            raise PermissionError(13, "it belongs to another user", path)
        found.setblocking(False)
    except BaseException:
        found.close()
        raise
    return found


def peer_user(link: socket.socket) -> int:
    """Return the user at the other end of a Unix socket."""
    size = struct.calcsize("3i")
    _pid, user, _group = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(user)


class _short:  # noqa: N801  used as a function
    """Gives a path that fits into the address of a Unix socket: below the handle of its directory if it is long."""

    def __init__(self, path: str) -> None:
        self._path, self._fd = path, -1

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= _LONGEST_PATH:
            return self._path
        directory, name = os.path.split(self._path)
        self._fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._fd}/{name}"

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)


short_path = _short
_link: PageLink | None = None
_making = threading.Lock()


def page_link(most_bytes: int) -> PageLink:
    """Return the connection of this process; all sessions share it."""
    global _link  # noqa: PLW0603  one a process
    with _making:
        if _link is None or _link._path != page_socket():  # noqa: SLF001  another state directory has another page
            _link = PageLink(most_bytes)
            os.register_at_fork(after_in_child=_link.forget)
        return _link
