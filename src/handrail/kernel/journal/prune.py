"""Removes old or excess entries from the journal, then blobs that no entry names.

Also removes old session logs, and old intent files whose directory never came back.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from handrail.kernel.host.state_dir import State, write_whole
from handrail.kernel.journal.journal import Journal, JournalEntry, decode, lines_backwards
from handrail.model.limits import DAY, Limits

_YOUNG_SECONDS = 3600
"""A blob younger than this may belong to an entry that is not written yet."""


class Pruned(NamedTuple):
    """Counts what pruning removed."""

    entries: int
    blobs: int
    bytes: int


class _Blob(NamedTuple):
    size: int
    written: float


class _Selection(NamedTuple):
    """Holds the part of the journal that stays."""

    start: int | None
    """The offset of the oldest entry that stays; None if the journal is empty."""
    dropped: int
    """The number of entries before `start`."""
    blobs: set[str]
    """The blobs that stay."""


def prune(state: State, journal: Journal, *, days: float, most_bytes: int) -> Pruned:
    """Remove entries that are older than `days` or exceed `most_bytes`, then the blobs that no entry names.

    The newest entry always stays, so that the numbers continue. Compresses the blobs that stay.
    """
    with state.lock():
        blobs = {blob: _Blob(size, written) for blob, size, written, _ in journal.blobs.listed()}
        kept = _select(journal, blobs, _named_by_index(state), days=days, most_bytes=most_bytes)
        if kept.dropped and kept.start is not None:
            _cut(journal.path, kept.start)
        freed = _free(journal, blobs, kept.blobs)
    journal.blobs.tidy()
    return Pruned(kept.dropped, len(freed), sum(blobs[blob].size for blob in freed))


def _select(journal: Journal, blobs: dict[str, _Blob], named: set[str], *, days: float, most_bytes: int) -> _Selection:
    """Go back from the newest entry, and select entries until one is too old or the blobs exceed `most_bytes`."""
    start, dropped, size = None, 0, 0
    for at, line in lines_backwards(journal.path):
        entry = decode(line)
        new = {blob for blob in _blobs(entry) if blob not in named and blob in blobs} if entry else set()
        size += sum(blobs[blob].size for blob in new)
        if dropped or (start is not None and entry and _too_much(entry, days, size, most_bytes)):
            dropped += 1
        else:
            start, named = at, named | new
    return _Selection(start, dropped, named)


def _free(journal: Journal, blobs: dict[str, _Blob], named: set[str]) -> set[str]:
    """Remove the blobs that nothing names, and return them; young blobs stay."""
    old = [name for name, blob in blobs.items() if name not in named and _is_old(blob.written, _YOUNG_SECONDS)]
    return journal.blobs.drop(old) if old else set()


def prune_daily(state: State, journal: Journal, limits: Limits) -> None:
    """Prune the journal, old session logs and old intents. Sessions call this at closing if `wants_pruning()`."""
    with suppress(OSError):  # only housekeeping: calls report a failing disk
        os.close(os.open(journal.pruned, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.utime(journal.pruned)
        with state.lock():
            for directory in filter(os.path.isdir, (state.pending, state.sessions)):
                for name in os.listdir(directory):
                    with suppress(OSError):  # continue with the other files
                        _drop_if_old(os.path.join(directory, name), limits.journal_days * DAY)
        if journal.on and os.path.exists(journal.path):
            prune(state, journal, days=limits.journal_days, most_bytes=limits.journal_bytes)


def _drop_if_old(path: str, seconds: float) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a live process holds the lock of its intent file
        if _is_old(os.fstat(fd).st_mtime, seconds):
            os.unlink(path)
    finally:
        os.close(fd)


def _too_much(entry: JournalEntry, days: float, size: int, most_bytes: int) -> bool:
    return size > most_bytes or _is_old(entry.time, days * DAY)


def _is_old(moment: float, seconds: float) -> bool:
    return moment < time.time() - seconds


def _named_by_index(state: State) -> set[str]:
    from handrail.kernel.journal.command_changes import index_path, load_index  # noqa: PLC0415  loads modules that pruning needs rarely

    return {node[1] for _, node in load_index(index_path(state)).values() if node[0] == "file"}


def _blobs(entry: JournalEntry) -> Iterator[str]:
    for file in entry.files:
        for node in (file.before, file.after):
            if node is not None and node.kind == "file" and node.kept:
                yield node.kept


def _cut(path: str, start: int) -> None:
    """Remove everything before `start` from a file, atomically."""
    with open(path, "rb") as file:
        file.seek(start)
        write_whole(path, file.read())
