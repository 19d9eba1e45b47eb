"""Keeps the files of a run: lines of JSON, each appended whole, and small files, replaced whole."""

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from handrail.kernel.host.state_dir import make_private, read_text, write_whole

Json = dict[str, Any]
_NAME_CHARS = 120


def append_line(path: str, line: Mapping[str, Any], *, sync: bool = False) -> None:
    """Append one JSON line, whole even if another process appends at the same moment or this one is killed.

    A line that a killed process left torn is ended first, so that it spoils no other.
    """
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        size = os.fstat(fd).st_size
        torn = size and os.pread(fd, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + json.dumps(line).encode() + b"\n"
        if os.write(fd, data) != len(data):
            raise OSError(errno.ENOSPC, "the disk is full", path)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def file_name(text: str) -> str:
    """Return a name for a file that stands for a text: readable, safe anywhere, and different for different texts."""
    from urllib.parse import quote  # noqa: PLC0415  runs only

    data = text.encode(errors="surrogatepass")
    name = quote(data, safe=" @#=+,")
    return name if len(name) <= _NAME_CHARS else f"{name[:_NAME_CHARS]}%{hashlib.sha256(data).hexdigest()[:16]}"


def replace_lines(path: str, lines: Iterable[Mapping[str, Any]]) -> None:
    """Replace a file of JSON lines whole."""
    write_whole(path, "".join(json.dumps(line) + "\n" for line in lines).encode(), sync=False)


def read_lines(path: str) -> Iterator[Json]:
    """Yield the objects of a file of JSON lines; leave out torn lines. A missing file has none."""
    with suppress(FileNotFoundError), open(path, encoding="utf-8") as file:
        for line in file:
            with suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict):
                    yield found


def read_tail(path: str, start: int) -> tuple[list[bytes], int]:
    """Return the whole lines of a file from a byte on, and where the next ones begin."""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        file.seek(start)
        data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        return whole.splitlines(), start + len(whole)
    return [], start


def replace_json(path: str, value: Any) -> None:
    """Replace a small JSON file whole."""
    write_whole(path, json.dumps(value, indent=1).encode(), sync=False)


def replace_text(path: str, text: str) -> None:
    """Replace a text file whole."""
    write_whole(path, text.encode(errors="backslashreplace"), sync=False)


def read_json(path: str) -> Any:
    """Return the content of a small JSON file; None if it does not exist or is not JSON."""
    with suppress(ValueError):
        return json.loads(read_text(path) or "null")
    return None


def lock_run(directory: str) -> int | None:
    """Take the lock of a run. Return its handle, for `unlock`; None if another process, or another call, holds it."""
    fd = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def unlock(fd: int) -> None:
    """Give up the lock that `lock_run` took. The end of the process gives it up, too."""
    os.close(fd)


def run_place(directory: str, *parts: str) -> str:
    """Return a path in the directory of a run, and make the directories on the way."""
    path = os.path.join(os.path.abspath(directory), *parts)
    make_private(os.path.dirname(path))
    return path


def exists(path: str) -> bool:
    return os.path.exists(path)


def absolute(path: str, beside: str | None = None) -> str:
    """Return the absolute form of a path, which is relative to the directory of a file, or to the current one."""
    start = os.path.dirname(os.path.abspath(beside)) if beside else os.getcwd()
    return os.path.abspath(os.path.join(start, os.path.expanduser(path)))


def current_directory() -> str:
    return os.getcwd()


def read_bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write_bytes(path: str, data: bytes) -> None:
    """Replace a file whole."""
    write_whole(path, data, sync=False)


def remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
