"""Stores the layers over one root directory, and keeps each whole if this process is killed at any moment.

    STATE/layers/NAME-KEY/                 the store of one root
        named/LAYER/layer.json             what a layer consists of; written last: without it a layer is half made
                    upper, work, mounted   its changes (`upper.py`)
                    journal.jsonl, …       the state of its workspace: its journal, its memory and so on
        sessions/                          the session logs of all layers
        frozen/ID/upper                    changes that several layers share; they never change again

The lower layers of a layer are its frozen ones, the newest first, and the root below them. A fork freezes the changes
of its parent: their new place is written into `layer.json` before they move, so that opening can finish the move.
Opening and closing sweep: what no layer names and no process holds is removed, half-made layers included.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, Self

from handrail.kernel.host.state_dir import existing_directory, layers_of, make_private, read_text, write_whole
from handrail.kernel.layers.flatten import flatten
from handrail.kernel.layers.upper import Upper, clear, is_busy
from handrail.model.limits import DAY

DEFAULT = "default"
TEMPORARY = "temporary-"
"""The names of layers that are removed when they close begin with this."""
_NAMED, _FROZEN, _RECORD = "named", "frozen", "layer.json"
_ABANDONED_SECONDS = 7 * DAY
"""The time after which the layer of a fork whose process was killed is removed."""


class LayerRecord(NamedTuple):
    """Holds what `layer.json` says."""

    root: str
    frozen: tuple[str, ...] = ()
    """The frozen layers below this one, the newest first."""
    forked: bool = False
    """True for a layer that a fork or a snapshot made: it is removed when it closes."""
    since: int = 0
    """The last journal entry before the changes began: older ones are about changes that were applied or discarded."""
    began: int = 0
    """The time in nanoseconds when the layer was empty: it did not begin with what changed in the root later."""


class LayerStore:
    """Finds, makes, forks and removes the layers of one root."""

    def __init__(self, root: str) -> None:
        self.root, self.path = root, layers_of(root)
        for name in (_NAMED, _FROZEN):
            make_private(os.path.join(self.path, name))
        found = os.lstat(self.path)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise PermissionError(13, "it belongs to another user, or other users can reach it", self.path)

    @property
    def sessions(self) -> str:
        """The directory of the session logs, which stay when a layer is removed."""
        return os.path.join(self.path, "sessions")

    @classmethod
    def of(cls, path: str) -> Self:
        """Return the store of a directory. Raises NotADirectory, NotFound and OSError."""
        return cls(os.path.realpath(existing_directory(path)))

    def place(self, name: str) -> str:
        """Return the directory of a layer."""
        return os.path.join(self.path, _NAMED, name)

    def frozen(self, name: str) -> str:
        """Return the directory of a frozen layer."""
        return os.path.join(self.path, _FROZEN, name)

    def record(self, name: str) -> LayerRecord | None:
        """Return what a layer consists of; None if there is no such layer."""
        try:
            facts = json.loads(read_text(os.path.join(self.place(name), _RECORD)) or "null")
            return (
                None
                if facts is None
                else LayerRecord(facts["root"], tuple(facts["frozen"]), facts["forked"], facts["since"], facts["began"])
            )
        except (ValueError, KeyError, TypeError):
            raise OSError(5, "its record is damaged", self.place(name)) from None

    def write(self, name: str, record: LayerRecord, *, sync: bool = True) -> None:
        """Write what a layer consists of, which makes it whole."""
        write_whole(os.path.join(self.place(name), _RECORD), json.dumps(record._asdict()).encode(), sync=sync)

    def open(self, name: str) -> tuple[Upper, LayerRecord]:
        """Open a layer; make it if there is none. Raises LayerBusy."""
        with self.locked():
            self._sweep()
            upper = Upper.open(self.place(name))
            try:
                record = self.record(name)
                if record is None:
                    record = LayerRecord(self.root, forked=name.startswith(TEMPORARY), began=time.time_ns())
                    self.write(name, record, sync=False)
                self._finish_freezing(upper, record)
            except BaseException:
                upper.close()
                raise
            return upper, record

    def flat(self, record: LayerRecord) -> str | None:
        """Return one frozen layer that shows what all of a layer show; None if none is there. Needs the lock."""
        if len(record.frozen) < 2:
            return record.frozen[0] if record.frozen else None
        return self._flattened(record)

    def names(self) -> list[str]:
        """Return the names of all whole layers."""
        return sorted(name for name in os.listdir(os.path.join(self.path, _NAMED)) if self.record(name))

    def is_open(self, name: str) -> bool:
        """Return whether a process has a layer open."""
        return is_busy(self.place(name))

    def age(self, name: str) -> float:
        """Return the seconds since a layer was made, forked or emptied."""
        return time.time() - os.stat(os.path.join(self.place(name), _RECORD)).st_mtime

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from changing the store for the time of the block."""
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    # forking

    def freeze(self, upper: Upper, name: str, most: int) -> LayerRecord:
        """Freeze the changes of a layer that is not mounted, and give it an empty upper. Call it under the lock.

        More than `most` frozen layers become one. If that is not possible, they stay: many layers only take time.
        """
        record = self._set_aside(upper, name)
        if len(record.frozen) > most:
            with contextlib.suppress(OSError):  # the disk is full, or the tree too deep
                record = record._replace(frozen=(self._flattened(record),))
                self.write(name, record)
        return record

    def forget(self, upper: Upper, name: str, since: int) -> LayerRecord:
        """Make a layer that is not mounted empty, at one moment. Call it under the lock, and `sweep` afterwards."""
        record = self._set_aside(upper, name)._replace(frozen=(), since=since, began=time.time_ns())
        self.write(name, record)
        return record

    def settled(self, upper: Upper, name: str) -> LayerRecord:
        """Finish what a failed step has begun with a layer that is not mounted; return its record."""
        record = self.record(name) or LayerRecord(self.root)
        self._finish_freezing(upper, record)
        return record

    def _set_aside(self, upper: Upper, name: str) -> LayerRecord:
        """Move the changes of a layer into a frozen one."""
        record = self.settled(upper, name)
        if upper.is_empty():
            return record
        made = os.urandom(8).hex()
        make_private(self.frozen(made))
        record = record._replace(frozen=(made, *record.frozen))
        self.write(name, record)
        self._finish_freezing(upper, record)
        return record

    def _finish_freezing(self, upper: Upper, record: LayerRecord) -> None:
        """Move changes to the place that the record names; a killed process may have written only the record."""
        if record.frozen and not os.path.lexists(os.path.join(self.frozen(record.frozen[0]), "upper")):
            there = self.frozen(record.frozen[0])
            os.rename(os.path.join(upper.path, "upper"), os.path.join(there, "upper"))
        upper.renew()

    def _flattened(self, record: LayerRecord) -> str:
        """Make one frozen layer out of several; return its name."""
        made = os.urandom(8).hex()
        place = self.frozen(made)
        make_private(place)
        try:
            flatten([os.path.join(self.frozen(each), "upper") for each in record.frozen], os.path.join(place, "upper"))
        except BaseException:
            clear(place)
            raise
        return made

    def add(self, record: LayerRecord, fill: Callable[[str], None]) -> str:
        """Make a layer; return its name. Call it under the lock.

        `fill` writes the state of its workspace into its directory, and the upper, if that is not empty.
        """
        name = f"fork-{os.urandom(6).hex()}"
        make_private(self.place(name))
        fill(self.place(name))
        self.write(name, record, sync=False)
        return name

    # removing

    def remove(self, name: str) -> None:
        """Remove a layer that is not open, and the frozen ones that no other layer needs."""
        with self.locked():
            self._remove(name)
            self._sweep()

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            fd = os.open(self.place(name), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.unlink(_RECORD, dir_fd=fd)  # from now on it counts as half made
            finally:
                os.close(fd)
        clear(self.place(name))

    def sweep(self) -> None:
        """Remove what killed processes left half made, and what no layer needs."""
        with self.locked():
            self._sweep()

    def _sweep(self) -> None:
        needed, doubtful = set[str](), False
        for name in os.listdir(os.path.join(self.path, _NAMED)):
            try:
                record = self.record(name)
            except OSError:
                doubtful = True
                continue
            abandoned = record is None or (record.forked and self.age(name) > _ABANDONED_SECONDS)
            if abandoned and not is_busy(self.place(name)):
                self._remove(name)
                continue
            needed.update(record.frozen if record else ())
        for name in [] if doubtful else os.listdir(os.path.join(self.path, _FROZEN)):
            if name not in needed:
                clear(self.frozen(name))
