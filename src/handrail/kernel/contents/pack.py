"""Reads one pack, and adds contents to one pack.

A whole record never disappears from a pack, so readers need no lock.
"""

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress

from handrail.kernel.contents.pack_format import (
    HEADER_BYTES,
    START,
    DamagedRecord,
    Record,
    content_of,
    header,
    new_start,
    record_at,
    records,
    stored_bytes,
    token_of,
)
from handrail.kernel.contents.pack_index import DamagedIndex, PackIndex, write_index
from handrail.kernel.fs.syscalls import pwrite_all

SUFFIX = ".pack"
INDEX_SUFFIX = ".index"
_READ = os.O_RDONLY | os.O_CLOEXEC
_INDEXED = 256
"""The most records behind the index when a process lets go of a pack."""
_BUFFERED_BYTES = 1 << 20


class Pack:
    """Knows where the contents of one pack lie. `look` reads the records that were added since the last call of it."""

    def __init__(self, path: str) -> None:
        self.path, self.index_path = path, path.removesuffix(SUFFIX) + INDEX_SUFFIX
        self.token = b""
        self.index: PackIndex | None = None
        self.behind: dict[bytes, int] = {}
        """The offsets of the records behind the index."""
        self.raw = 0
        """The number of bytes that are stored uncompressed."""
        self.end = 0
        """The end of the last whole record before any damage."""
        self.torn = False
        """True if the bytes behind `end` are no whole record."""
        self.damaged = False
        """True if whole records lie behind damaged bytes."""

    def look(self, fd: int | None = None) -> None:
        """Learn the records up to the present end of the file. Raises OSError."""
        if fd is not None:
            self._look(fd)
            return
        fd = os.open(self.path, _READ)
        try:
            self._look(fd)
        finally:
            os.close(fd)

    def _look(self, fd: int, *, by_index: bool = True) -> None:
        size = os.fstat(fd).st_size
        if size < self.end:
            self.token = b""  # the disk lost bytes that were there at the last look
        if not self.token and not self._begin(fd, size, by_index=by_index):
            self.torn = size > 0
            return
        if size == self.end:
            self.torn = self.damaged = False
            return
        self.torn = False
        for found in records(fd, self.token, self.end, size):
            if isinstance(found, int):
                self.torn = True
                continue
            self.damaged |= self.torn
            self.know(found)

    def _begin(self, fd: int, size: int, *, by_index: bool) -> bool:
        token = token_of(fd)
        if token is None:
            return False
        self.token, self.end, self.raw = token, START, 0
        self.behind.clear()
        self.index = None
        if by_index:
            with suppress(DamagedIndex):
                self.index = PackIndex(self.index_path, token, size)
                self.end, self.raw = self.index.covered, self.index.raw
        return True

    def know(self, record: Record) -> None:
        """Add a record behind the last one."""
        self.behind[record.fingerprint] = record.at
        if not record.compressed:
            self.raw += record.size
        if not self.torn:
            self.end = record.end

    def offset(self, fingerprint: bytes) -> int | None:
        """Return the offset of the newest record of a content; None if the pack has none."""
        at = self.behind.get(fingerprint)
        if at is None and self.index is not None:
            try:
                at = self.index.find(fingerprint)
            except DamagedIndex:
                self._learn_without_index()
                at = self.behind.get(fingerprint)
        return at

    def _learn_without_index(self) -> None:
        """Find all records by reading the pack itself: the index is damaged, or was replaced by a newer one."""
        self.token = b""
        with suppress(OSError):  # the pack is gone
            fd = os.open(self.path, _READ)
            try:
                self._look(fd, by_index=False)
            finally:
                os.close(fd)

    def read(self, fingerprint: bytes, at: int) -> bytes:
        """Return the content of a record. Raises OSError if the pack is gone, `DamagedRecord` if the record is."""
        fd = os.open(self.path, _READ)
        try:
            record = record_at(fd, self.token, at)
            if record is None or record.fingerprint != fingerprint:
                raise DamagedRecord("its header is overwritten")
            return content_of(record, stored_bytes(fd, record))
        finally:
            os.close(fd)

    def remove(self) -> None:
        """Remove the pack and its index; the caller holds its lock."""
        os.unlink(self.path)
        with suppress(OSError):  # without its pack it is ignored, and removed by the next sweep
            os.unlink(self.index_path)


def lock_pack(path: str) -> int | None:
    """Return a handle that holds the lock of a pack; None if a process holds it, or the pack is gone."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    return _locked(fd)


def create_locked(path: str) -> int | None:
    """Create a file and hold its lock; None if another process took it first, because it looked abandoned."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    return _locked(fd)


def _locked(fd: int) -> int | None:
    """Lock an open file and return its handle; close it and return None if it is held elsewhere or has no name."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_nlink:
            return fd
    except BlockingIOError:
        pass
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


class PackWriter:
    """Adds contents to a pack whose lock it holds. A failed addition leaves no trace in the pack."""

    def __init__(self, pack: Pack, fd: int) -> None:
        self.pack, self._fd, self._pid = pack, fd, os.getpid()
        self._waiting: list[bytes] = []
        self._records: dict[bytes, Record] = {}
        self._bytes = 0

    @property
    def is_ours(self) -> bool:
        """False in a forked child: the pack belongs to the parent."""
        return self._pid == os.getpid()

    def prepare(self) -> bool:
        """Cut off a torn end, and begin an empty pack. Returns False if nothing may be added to this pack."""
        pack, found = self.pack, os.fstat(self._fd)
        if found.st_nlink > 1:
            return False  # a copy of the state directory shares it
        pack.look(self._fd)
        if pack.damaged or (not pack.token and found.st_size >= START):
            return False
        if not pack.token:
            start = new_start()
            os.ftruncate(self._fd, 0)
            pwrite_all(self._fd, start, 0)
            pack.look(self._fd)
        elif pack.torn:
            os.ftruncate(self._fd, pack.end)
            pack.torn = False
        return True

    def add(self, fingerprint: bytes, data: bytes, *, compressed: bool = False, written: float = 0) -> None:
        """Add a content; `flush` writes it. Raises OSError as `flush` does."""
        head = header(self.pack.token, fingerprint, len(data), compressed=compressed, written=written)
        at = self.pack.end + self._bytes
        self._records[fingerprint] = Record(fingerprint, at, len(data), 0, compressed)
        self._waiting += head, data
        self._bytes += HEADER_BYTES + len(data)

    @property
    def is_full(self) -> bool:
        """True if enough was added for a flush."""
        return self._bytes >= _BUFFERED_BYTES

    def flush(self) -> list[bytes]:
        """Write what was added, and return the fingerprints. Raises OSError, and forgets what was not written whole."""
        if not self._waiting:
            return []
        added, waiting = list(self._records.values()), self._waiting
        self._records, self._waiting, self._bytes = {}, [], 0
        try:
            pwrite_all(self._fd, b"".join(waiting), self.pack.end)
        except OSError:
            size = os.fstat(self._fd).st_size
            self._know(record for record in added if record.end <= size)  # a reader may know them already
            os.ftruncate(self._fd, self.pack.end)
            raise
        self._know(added)
        return [record.fingerprint for record in added]

    def _know(self, added: Iterable[Record]) -> None:
        for record in added:
            self.pack.know(record)

    def has(self, fingerprint: bytes) -> bool:
        """Return whether a content was added since the last flush."""
        return fingerprint in self._records

    def is_stored(self, fingerprint: bytes, data: bytes) -> bool:
        """Return whether the pack has this content, and its bytes are not damaged."""
        at = self.pack.offset(fingerprint)
        record = None if at is None else record_at(self._fd, self.pack.token, at)
        if record is None or record.fingerprint != fingerprint:
            return False
        stored = stored_bytes(self._fd, record)
        return _gives(record, stored, data)

    def sync(self) -> None:
        """Wait until all is on the disk."""
        os.fsync(self._fd)

    def index(self, most: int = 0) -> None:
        """Write the index, if more than `most` records lie behind it. It only saves time: a failure is no error."""
        pack = self.pack
        if len(pack.behind) <= most or pack.damaged or pack.torn:
            return
        try:
            offsets = (pack.index.offsets() if pack.index else {}) | pack.behind
            write_index(pack.index_path, pack.token, pack.end, pack.raw, offsets.items())
        except (OSError, DamagedIndex):
            with suppress(OSError):
                os.unlink(pack.index_path)

    def release(self) -> None:
        """Let go of the pack; index it if many records were added."""
        if self.is_ours:
            self.index(_INDEXED)
        os.close(self._fd)


def _gives(record: Record, stored: bytes, data: bytes) -> bool:
    if not record.compressed:
        return stored == data
    with suppress(DamagedRecord):
        return content_of(record, stored) == data
    return False
