"""Forgetting: entries that are too old or too much go from the journal, and then contents that no entry names. Session
logs go when they are as old, and records of intent whose directory never came back.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from handrail.kernel.host.state_dir import State, write_whole
from handrail.kernel.journal.journal import Journal, JournalEntry, decode, lines_backwards
from handrail.model.limits import DAY, Limits

_YOUNG_SECONDS = 3600
"""What was written so lately may belong to an entry that is not written yet."""


@dataclass(frozen=True, slots=True)
class Pruned:
    entries: int
    blobs: int
    bytes: int


def prune(state: State, journal: Journal, *, days: float, most_bytes: int) -> Pruned:
    """Keep the newest entries, as many as are young enough and fit; always the last one, so that numbers go on."""
    with state.lock():
        blobs = {blob: (size, written, packed) for blob, size, written, packed in journal.blobs.listed()}
        named = _named_by_index(state)
        start, dropped, size = None, 0, 0
        for at, line in lines_backwards(journal.path):
            entry = decode(line)
            new = {blob for blob in _blobs(entry) if blob not in named and blob in blobs} if entry else set()
            size += sum(blobs[blob][0] for blob in new)
            if dropped or (start is not None and entry and _too_much(entry, days, size, most_bytes)):
                dropped += 1
            else:
                start, named = at, named | new
        if dropped and start is not None:
            _cut(journal.path, start)
        freed = [
            blob for blob, (_, written, _) in blobs.items() if blob not in named and _is_old(written, _YOUNG_SECONDS)
        ]
        for blob in freed:
            journal.blobs.drop(blob)
    for blob in blobs.keys() - freed:
        if not blobs[blob][2]:
            journal.blobs.pack(blob)
    return Pruned(dropped, len(freed), sum(blobs[blob][0] for blob in freed))


def prune_daily(state: State, journal: Journal, limits: Limits) -> None:
    """Once a day, by whoever closes a workspace."""
    with suppress(OSError):  # housekeeping: a disk that says no has said so to the calls that matter
        os.close(os.open(journal.pruned, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        os.utime(journal.pruned)
        with state.lock():
            for directory in (state.pending, state.sessions):
                for name in os.listdir(directory):
                    with suppress(OSError):  # the others can go all the same
                        _drop_if_old(os.path.join(directory, name), limits.journal_days * DAY)
        if journal.on and os.path.exists(journal.path):
            prune(state, journal, days=limits.journal_days, most_bytes=limits.journal_bytes)


def _drop_if_old(path: str, seconds: float) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a record of intent is locked while its process lives
        if _is_old(os.fstat(fd).st_mtime, seconds):
            os.unlink(path)
    finally:
        os.close(fd)


def _too_much(entry: JournalEntry, days: float, size: int, most_bytes: int) -> bool:
    return size > most_bytes or _is_old(entry.time, days * DAY)


def _is_old(moment: float, seconds: float) -> bool:
    return moment < time.time() - seconds


def _named_by_index(state: State) -> set[str]:
    from handrail.kernel.journal.command_changes import index_path, load_index  # noqa: PLC0415  it loads what few prunings need

    return {node[1] for _, node in load_index(index_path(state)).values() if node[0] == "file"}


def _blobs(entry: JournalEntry) -> Iterator[str]:
    for file in entry.files:
        for node in (file.before, file.after):
            if node is not None and node.kind == "file" and node.kept:
                yield node.kept


def _cut(path: str, start: int) -> None:
    """Leave out what comes before `start`, whole or not at all."""
    with open(path, "rb") as file:
        file.seek(start)
        write_whole(path, file.read())
