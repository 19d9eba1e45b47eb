"""Keeps the packs of one directory: finds contents in all of them, and adds new ones to one.

Several processes use one directory at once. A process adds only to a pack whose lock it holds, takes any free pack that
is not full, and creates one if there is none. It lets go of the pack when it is idle. Readers need no lock; a pack that
is gone was replaced by `compaction.py`, and its contents lie in another pack.
"""

import os
from collections.abc import Iterator
from contextlib import suppress

from handrail.kernel.contents.pack import SUFFIX, Pack, PackWriter, create_locked, lock_pack
from handrail.kernel.contents.pack_format import DamagedRecord, Record, whole_records
from handrail.kernel.host.state_dir import make_private

FULL_BYTES = 128 << 20
"""Nothing is added to a pack of this size."""


class Gone(Exception):  # noqa: N818  an answer: the caller says which content is lost
    """Says that no pack has a content, or that the bytes of all its records are damaged."""


class Packs:
    """Finds and adds contents. Not safe for threads: the caller locks."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._packs: dict[str, Pack] = {}
        self._writer: PackWriter | None = None
        self._sure: set[bytes] = set()
        """Contents that the pack of the writer has for certain."""
        self._listed = False

    def add(self, data: bytes, fingerprint: bytes) -> None:
        """Store a content, unless a pack has it and gives it back; `flush` writes it. Raises OSError."""
        writer = self._held()
        if fingerprint in self._sure:
            return
        if writer.has(fingerprint) or writer.is_stored(fingerprint, data) or self._is_elsewhere(fingerprint, data):
            return
        writer.add(fingerprint, data)
        if writer.is_full:
            self.flush()

    def flush(self) -> None:
        """Write all that was added. Raises OSError."""
        if self._writer is not None and self._writer.is_ours:
            self._sure.update(self._writer.flush())
            if self._writer.pack.end >= FULL_BYTES:
                self.release()

    def _is_elsewhere(self, fingerprint: bytes, data: bytes) -> bool:
        for pack in self._others():
            at = pack.offset(fingerprint)
            if at is not None:
                with suppress(OSError, DamagedRecord):
                    return pack.read(fingerprint, at) == data
        return False

    def _others(self) -> list[Pack]:
        return [pack for pack in self._packs.values() if pack is not self.own]

    def read(self, fingerprint: bytes) -> bytes:
        """Return a content. Raises `Gone` or OSError."""
        damage = ""
        for again in (False, True):
            if again or not self._listed:
                self._look()
            for pack in self._packs.values():
                at = pack.offset(fingerprint)
                if at is None:
                    continue
                try:
                    return pack.read(fingerprint, at)
                except FileNotFoundError:
                    continue  # replaced by another pack, which the next look finds
                except DamagedRecord as error:
                    damage = f"damaged ({error})"
        raise Gone(damage or "missing")

    def has(self, fingerprint: bytes) -> bool:
        """Return whether a pack has a content."""
        for again in (False, True):
            if again or not self._listed:
                self._look()
            for pack in self._packs.values():
                if pack.offset(fingerprint) is not None and os.path.exists(pack.path):
                    return True
        return False

    def _look(self) -> None:
        """Learn which packs exist now, and what they hold."""
        self._listed = True
        known, self._packs = self._packs, {}
        for path in pack_paths(self.path):
            pack = known.get(path) or Pack(path)
            with suppress(FileNotFoundError):
                pack.look()
                self._packs[path] = pack

    def _held(self) -> PackWriter:
        """Return the writer, for which this process holds the lock of a pack. Raises OSError."""
        if self._writer is not None and not self._writer.is_ours:
            self.release()
        if self._writer is None:
            self._look()
            self._writer = self._free_pack() or self._new_pack()
            self._packs[self._writer.pack.path] = self._writer.pack
        return self._writer

    def _free_pack(self) -> PackWriter | None:
        if not os.path.isdir(self.path):
            make_private(self.path)
        for pack in self._packs.values():
            fd = lock_pack(pack.path) if pack.end < FULL_BYTES else None
            if fd is not None and (writer := _prepared(pack, fd)):
                return writer
        return None

    def _new_pack(self) -> PackWriter:
        while True:
            pack = Pack(new_path(self.path))
            fd = create_locked(pack.path)
            if fd is None:
                continue
            try:
                if writer := _prepared(pack, fd):
                    return writer
            except OSError:
                with suppress(OSError):
                    os.unlink(pack.path)
                raise

    def release(self) -> None:
        """Let go of the pack that this process adds to."""
        writer, self._writer = self._writer, None
        self._sure.clear()
        if writer is not None:
            writer.release()

    @property
    def own(self) -> Pack | None:
        """The pack that this process adds to."""
        return self._writer.pack if self._writer else None


def _prepared(pack: Pack, fd: int) -> PackWriter | None:
    """Return a writer for a pack whose lock is held; close the handle if nothing may be added to the pack."""
    writer = PackWriter(pack, fd)
    try:
        if writer.prepare():
            return writer
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def new_path(path: str) -> str:
    """Return a path for a new pack, which no other pack ever has."""
    return f"{path}/{os.urandom(6).hex()}{SUFFIX}"


def pack_paths(path: str) -> list[str]:
    """Return the paths of the packs in a directory."""
    return [f"{path}/{name}" for name in names_in(path) if name.endswith(SUFFIX)]


def names_in(path: str) -> list[str]:
    """Return the names in a directory in order; none if it does not exist, because no content is stored yet."""
    try:
        return sorted(os.listdir(path))
    except FileNotFoundError:
        return []


def all_records(path: str) -> Iterator[Record]:
    """Yield every whole record of every pack in a directory."""
    for each in pack_paths(path):
        with suppress(FileNotFoundError):
            fd = os.open(each, os.O_RDONLY | os.O_CLOEXEC)
            try:
                yield from whole_records(fd)
            finally:
                os.close(fd)
