"""Makes the n-th system call of the writer that changes anything fail."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from handrail.kernel.contents import compaction, pack, pack_index, packs
from handrail.kernel.fs import metadata, syscalls
from handrail.kernel.host import state_dir
from handrail.kernel.journal import blobs, journal
from handrail.kernel.write import intent_log, publish, recovery, redo_log, subtree
from handrail.kernel.write import writer as commit

CHANGING = {
    *(
        "write",
        "pwrite",
        "ftruncate",
        "fsync",
        "fdatasync",
        "link",
        "symlink",
        "rename",
        "replace",
        "unlink",
        "mkdir",
        "makedirs",
    ),
    *("rmdir", "fchmod", "fchown", "setxattr", "removexattr", "open", "rename_to_free_name", "exchange_names"),
}
Call = Callable[..., Any]
Act = Callable[[str, Call, tuple[Any, ...], dict[str, Any]], Any]


class FaultyOs:
    """Replaces the os module. Counts calls that change something; call number `at` (and later) goes to `act`."""

    def __init__(self, at: int, act: Act, *, lasting: bool, missing: tuple[str, ...]) -> None:
        self._at, self._act, self._lasting, self._missing = at, act, lasting, missing
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name) if name not in self._missing else failing(errno.ENOTSUP)
        return self.guard(name, real) if name in CHANGING else real

    def guard(self, name: str, real: Call) -> Call:
        def call(*args: Any, **options: Any) -> Any:
            if name == "open" and not args[1] & os.O_CREAT:
                return real(*args, **options)
            self.calls.append(name)
            number = len(self.calls)
            if number == self._at or (self._lasting and number > self._at):
                return self._act(name, real, args, options)
            # A sync is counted but not done: no test cuts the power.
            return None if name in ("fsync", "fdatasync", "sync_whole") else real(*args, **options)

        return call

    @property
    def reached(self) -> bool:
        return len(self.calls) >= self._at


@contextmanager
def faults(at: int, act: Act, *, lasting: bool = False, missing: tuple[str, ...] = ()) -> Iterator[FaultyOs]:
    """Replace os in all modules of the writer. `missing` names calls that fail as unsupported."""
    faulty: Any = FaultyOs(at, act, lasting=lasting, missing=missing)
    modules: tuple[Any, ...] = (publish, commit, metadata, recovery, intent_log, state_dir, journal, blobs, subtree)
    modules += (compaction, pack, pack_index, packs, syscalls, redo_log)
    own: list[tuple[Any, str]] = [(publish, "rename_to_free_name"), (publish, "exchange_names")]
    own += [(recovery, "exchange_names"), (redo_log, "sync_whole")]
    real = [getattr(module, name) for module, name in own]
    for module in modules:
        module.os = faulty
    for (module, name), call in zip(own, real, strict=True):
        setattr(module, name, faulty.guard(name, failing(errno.ENOTSUP) if name in missing else call))
    try:
        yield faulty
    finally:
        for module in modules:
            module.os = os
        for (module, name), call in zip(own, real, strict=True):
            setattr(module, name, call)


def failing(code: int) -> Act:
    def act(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return act


def killed(*_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def killed_in_the_middle(name: str, real: Call, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    short(name, real, args, options)
    os.kill(os.getpid(), signal.SIGKILL)


def short(name: str, real: Call, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Write only the first half, like a disk that is nearly full; do other calls completely."""
    if name in ("write", "pwrite"):
        handle, data, *rest = args
        args = (handle, data[: (len(data) + 1) // 2], *rest)
    return real(*args, **options)


class ShortThenFull:
    """Does one short write, then fails every write with "no space left"."""

    def __init__(self) -> None:
        self._full = False

    def __call__(self, name: str, real: Call, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if name not in ("write", "pwrite"):
            return real(*args, **options)
        if self._full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._full = True
        return short(name, real, args, options)
