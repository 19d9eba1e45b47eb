"""Accepts the processes of one user: the server's end of the Unix socket, its lock, and its secret."""

import asyncio
import fcntl
import hmac
import os
import secrets
import socket
import stat
from collections.abc import Callable
from contextlib import suppress

from handrail.kernel.host.state_dir import make_private, read_text, write_whole
from handrail.kernel.page.page_link import connected, peer_user, short_path
from handrail.kernel.page.page_messages import LONGEST, Message, decoded, encoded
from handrail.kernel.page.page_place import page_directory, page_secret, page_socket

_HELLO_BYTES = 1 << 12
"""The most bytes that a process can send before it has shown the secret."""
_STRANGERS = 64
"""The most processes that have not shown the secret yet."""
_HELLO_SECONDS = 5.0
"""The time in which a process must show the secret."""
_BACKLOG = 128
_UNREAD_BYTES = 1 << 22
"""How much may wait for a process that does not read; with more, the connection ends."""
_ADDRESS_SECONDS = 10.0


class AlreadyRuns(Exception):  # noqa: N818  not an error: the caller asks the server that runs
    """The user has a server already."""


class Process:
    """Holds the connection with one process."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer, self.name = writer, ""

    def send(self, message: Message) -> None:
        """Send a message; give up a process that does not read."""
        self._writer.write(encoded(message))
        if self._writer.transport.get_write_buffer_size() > _UNREAD_BYTES:
            self._writer.transport.abort()


class PageListener:
    """Holds the socket while the server runs. Raises AlreadyRuns if there is another server, and OSError."""

    def __init__(self) -> None:
        make_private(page_directory())
        found = os.stat(page_directory())
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            raise PermissionError(13, "it must be a directory that only its owner can open", page_directory())
        lock = os.path.join(page_directory(), "lock")
        self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise AlreadyRuns from None
        self._secret = secrets.token_hex(32)
        write_whole(page_secret(), self._secret.encode(), sync=False)
        self.socket = _bound(page_socket())
        self._strangers = 0

    async def serve(
        self, joined: Callable[[Process], Callable[[Message], None]], left: Callable[[Process], None]
    ) -> None:
        """Accept processes for ever. `joined` returns what takes the messages of a process."""

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            process = Process(writer)
            try:
                if await self._is_ours(reader, writer, process):
                    take = joined(process)
                    try:
                        while line := await reader.readline():
                            take(decoded(line))
                    finally:
                        left(process)
            except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError):
                pass  # the process has gone, or is of another version: it does without the page
            except asyncio.CancelledError:
                pass  # the server ends; asyncio would report this task as broken
            finally:
                with suppress(RuntimeError):  # the event loop has ended
                    writer.close()

        server = await asyncio.start_unix_server(talk, sock=self.socket, limit=_HELLO_BYTES)
        async with server:
            await server.serve_forever()

    async def _is_ours(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, process: Process) -> bool:
        """Return whether a process is the user's and can read the state directory, as no confined command can."""
        if peer_user(writer.get_extra_info("socket")._sock) != os.geteuid():  # noqa: SLF001  asyncio wraps the socket
            return False
        if self._strangers >= _STRANGERS:
            return False
        self._strangers += 1
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                hello = decoded(await reader.readline())
        finally:
            self._strangers -= 1
        reader._limit = LONGEST  # type: ignore[attr-defined]  # noqa: SLF001  asyncio offers no other way to raise it
        shown, process.name = hello.get("secret"), str(hello.get("process"))
        return isinstance(shown, str) and hmac.compare_digest(shown.encode(), self._secret.encode())

    def close(self) -> None:
        """Remove the socket, so that no process tries to connect."""
        with suppress(OSError):
            os.unlink(page_socket())
        self.leave()

    def leave(self) -> None:
        """Close the handles only: another process serves."""
        self.socket.close()
        os.close(self._lock)


def _bound(path: str) -> socket.socket:
    """Return a listening socket that only this user can connect to."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # a killed server has left it; this process holds the lock
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    with short_path(path) as short:
        made.bind(short)
        os.chmod(short, 0o600)  # before it listens
    made.listen(_BACKLOG)
    made.setblocking(False)
    return made


def address_of_running(*, seconds: float = _ADDRESS_SECONDS) -> str | None:
    """Return a new address of the server that runs; None if none answers."""
    try:
        with connected(page_socket()) as link:
            link.settimeout(seconds)
            link.sendall(encoded({"type": "hello", "secret": read_text(page_secret()), "process": ""}))
            link.sendall(encoded({"type": "address"}))
            with link.makefile("rb") as lines:
                for line in lines:
                    if (url := decoded(line).get("address")) is not None:
                        return str(url)
    except (OSError, ValueError):
        return None
    return None


def loopback_socket() -> socket.socket:
    """Return a socket on a free port that only this machine can reach."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    made.bind(("127.0.0.1", 0))
    made.listen(_BACKLOG)  # before its address is told
    made.setblocking(False)
    return made
