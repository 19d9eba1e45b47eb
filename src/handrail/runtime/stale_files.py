"""Remembers what a session last saw of each file, so that it does not edit a file that others changed since."""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from handrail.kernel.fs.reader import Reader
from handrail.model.faults import PathFault, StaleFile
from handrail.model.files import File, Version
from handrail.model.paths import quote

_FILES_AT_MOST = 4096


class _Saw(NamedTuple):
    version: Version
    data: bytes | None
    """None if only a part was read, or if there is no room to remember it."""


class SeenFiles:
    """Remembers files by their resolved path.

    Calls of one session may run in parallel: a version that the session wrote itself counts as seen, even if an older
    read of the file is noted later.
    """

    def __init__(self, room: int) -> None:
        self._files: OrderedDict[str, _Saw] = OrderedDict()
        self._own: dict[str, Version | None] = {}
        self._room, self._held, self._lock = room, 0, threading.Lock()

    def note(self, place: str, version: Version, data: bytes | None) -> None:
        """Remember what the session has read."""
        with self._lock:
            self._drop(place)
            self._files[place] = _Saw(version, data)
            self._held += len(data or b"")
            while self._held > self._room:
                self._forget_oldest_content()
            if len(self._files) > _FILES_AT_MOST:
                self._drop(next(iter(self._files)))

    def wrote(self, place: str, version: Version | None, data: bytes | None) -> None:
        """Remember what the session has written; None if it deleted the file. Call it under the writer's lock."""
        if version is None:
            self.forget(place)
        else:
            self.note(place, version, data)
        with self._lock:
            self._own[place] = version

    def forget(self, place: str) -> None:
        """Forget a file."""
        with self._lock:
            self._drop(place)

    def known(self) -> list[str]:
        """Return the files that the session knows, the oldest first."""
        with self._lock:
            return [
                *self._files,
                *(place for place, version in self._own.items() if version and place not in self._files),
            ]

    def knows(self, place: str) -> bool:
        """Return whether the session has read or written the file, and has not found it missing since."""
        with self._lock:
            return place in self._files or self._own.get(place) is not None

    def changed(self, place: str, now: File | None) -> str | None:
        """Return how the file differs from what the session knows: `changed`, `deleted`, or None."""
        with self._lock:
            saw = self._files.get(place)
            if saw is None or (place in self._own and self._own[place] == (now and now.version)):
                return None
        if now is None:
            return "deleted"
        return None if saw.version == now.version or saw.data == now.data else "changed"

    def fault(self, path: str, place: str, now: File | None) -> StaleFile:
        """Return the fault for a stale file, with the diff if both contents are known."""
        from handrail.ops.text.unified_diff import hunks  # noqa: PLC0415  only stale files need it

        with self._lock:
            saw = self._files.get(place)
        how = self.changed(place, now) or "changed"
        if now is None or saw is None or saw.data is None or b"\0" in saw.data + now.data:
            return StaleFile(path, how)
        return StaleFile(path, how, _in_short("".join(hunks(saw.data, now.data))))

    @contextmanager
    def own_command(self, reader: Reader, text: str = "") -> Iterator[None]:
        """Count changes during a command as the session's own; changes that others made before stay stale.

        A command that prints a file counts as reading it: a dialect may have no other way to read.
        """
        printed = {place: _version(reader, place) for place in self._printed_by(text)}
        versions = {place: _version(reader, place) for place in list(self._files)}
        before = {place: version for place, version in versions.items() if self._is_known(reader, place, version)}
        try:
            yield
        finally:
            for place, version in before.items():
                if _version(reader, place) != version:
                    now = _read_if_there(reader, place)
                    self.wrote(place, now.version if now else None, now.data if now else None)
            for place, version in printed.items():
                now = _read_if_there(reader, place)
                if now is not None and now.version == version:
                    self.note(place, now.version, now.data)

    def _printed_by(self, text: str) -> list[str]:
        """Return the files among those of the session that a command prints, by their names."""
        named = [place for place in list(self._files) if place.rpartition("/")[2] in text]
        if not named:
            return []
        from handrail.ops.shell.printed_names import printed_names  # noqa: PLC0415  only for commands that name a file

        printed = printed_names(text)
        return [place for place in named if place.rpartition("/")[2] in printed]

    def _is_known(self, reader: Reader, place: str, version: Version | None) -> bool:
        saw = self._files.get(place)
        if saw is not None and saw.version == version:
            return True
        return self.changed(place, _read_if_there(reader, place)) is None

    def _drop(self, place: str) -> None:
        saw = self._files.pop(place, None)
        self._held -= len(saw.data or b"") if saw else 0

    def _forget_oldest_content(self) -> None:
        place, saw = next((place, saw) for place, saw in self._files.items() if saw.data)
        self._files[place] = saw._replace(data=None)
        self._held -= len(saw.data or b"")


def _version(reader: Reader, place: str) -> Version | None:
    try:
        return Version.of(reader.boundary.stat(quote(place), follow=False))
    except PathFault:
        return None


def _read_if_there(reader: Reader, place: str) -> File | None:
    try:
        return reader.read_if_there(quote(place))
    except PathFault:
        return None


def _in_short(diff: str, lines: int = 40, chars: int = 4000) -> str:
    parts = diff.split("\n")[:lines]
    short = "\n".join(parts)[:chars]
    return short if short == diff else f"{short.rstrip()}\n…"
