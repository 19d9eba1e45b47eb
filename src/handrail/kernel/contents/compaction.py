"""Rewrites packs: without the contents that are not needed, compressed, and many small packs as one.

A new pack is complete, and on the disk, before the old ones are removed, so a kill or a full disk at any moment loses
nothing. Damaged records are left out, because no reader ever uses them. Packs to which another process is just adding
stay as they are.
"""

import os
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import NamedTuple

from handrail.kernel.contents.old_blobs import OldBlobs
from handrail.kernel.contents.pack import INDEX_SUFFIX, SUFFIX, Pack, PackWriter, create_locked, lock_pack
from handrail.kernel.contents.pack_format import START, DamagedRecord, Record, content_of, stored_bytes, whole_records
from handrail.kernel.contents.packs import FULL_BYTES, names_in, new_path, pack_paths

PART = ".part"
_SMALL_BYTES = FULL_BYTES // 16
_LEVEL = 1
_AT_ONCE = 64
"""The most packs whose locks are held at once."""
_MOVED = 2000
"""The most old contents in one new pack."""


class _Source(NamedTuple):
    """Holds a pack whose lock is held, and its records that stay."""

    pack: Pack
    fd: int
    records: list[Record]
    dropped: int
    size: int

    @property
    def needed(self) -> int:
        """The bytes that its records take."""
        return sum(record.end - record.at for record in self.records)

    @property
    def is_raw(self) -> bool:
        """True if bytes are not compressed or not part of a record."""
        return any(not record.compressed for record in self.records) or (self.size != self.needed + START)


class Interrupted(Exception):  # noqa: N818  the caller asked for it
    """Says that a rewrite was stopped before its end; the old packs are as they were."""


def drop(path: str, unwanted: Collection[bytes], *, sync: bool) -> set[bytes]:
    """Remove contents from all packs, and return those that are gone. The caller makes sure that nothing needs them.

    A content stays if another process is just adding to its pack.
    """
    stay = set[bytes]()
    for group in _groups(path):
        sources = [_source(each, unwanted) for each in group]
        for each, source in zip(group, sources, strict=True):
            if source is None:
                stay.update(_fingerprints(each))
        smallest_first = sorted((each for each in sources if each), key=lambda each: each.needed)
        _rewrite(path, smallest_first, _has_unwanted, sync=sync, together=1)  # takes the least room on a full disk
    return set(unwanted) - stay


def tidy(path: str, *, sync: bool) -> None:
    """Compress what is not compressed yet, make one pack of many small ones, and move old contents into packs."""
    for group in _groups(path):
        sources = [source for each in group if (source := _source(each))]
        small = [source for source in sources if source.size < _SMALL_BYTES]
        chosen = [source for source in sources if source.is_raw] + (small if len(small) > 1 else [])
        _rewrite(path, sources, chosen.__contains__, sync=sync, together=FULL_BYTES)
    _move_old(path, sync=sync)


def compress(path: str, pack: str, *, sync: bool, stop: Callable[[], bool]) -> None:
    """Compress the contents of one pack, if no process adds to it. Raises OSError or `Interrupted`."""
    source = _source(pack)
    _rewrite(path, [source] if source else [], lambda _: True, sync=sync, together=FULL_BYTES, stop=stop)


def sweep(path: str) -> None:
    """Remove what killed processes left: unfinished packs, and indexes without a pack."""
    names = names_in(path)
    for name in names:
        if name.endswith(PART) and _is_abandoned(f"{path}/{name}"):
            _unlink(f"{path}/{name}")
    for name in names:
        stem, is_index, _ = name.partition(INDEX_SUFFIX)
        pack = f"{path}/{stem}{SUFFIX}"
        if is_index and not os.path.exists(pack + PART) and not os.path.exists(pack):
            _unlink(f"{path}/{name}")


def _is_abandoned(part: str) -> bool:
    """Return whether no process holds the lock of the pack to which an unfinished file belongs."""
    stem = part.removesuffix(PART).removesuffix(SUFFIX).removesuffix(INDEX_SUFFIX)
    for pack in (f"{stem}{SUFFIX}{PART}", f"{stem}{SUFFIX}"):
        fd = lock_pack(pack)
        if fd is not None:
            os.close(fd)
        elif os.path.exists(pack):
            return False
    return True


def _groups(path: str) -> list[list[str]]:
    paths = pack_paths(path)
    return [paths[first : first + _AT_ONCE] for first in range(0, len(paths), _AT_ONCE)]


def _source(path: str, unwanted: Collection[bytes] = ()) -> _Source | None:
    """Lock a pack and list what stays of it; None if another process holds it, or it is gone."""
    fd = lock_pack(path)
    if fd is None:
        return None
    try:
        found = [*whole_records(fd)]
        stay = [each for each in found if each.fingerprint not in unwanted]
        return _Source(Pack(path), fd, stay, len(found) - len(stay), os.fstat(fd).st_size)
    except BaseException:
        os.close(fd)
        raise


def _fingerprints(path: str) -> set[bytes]:
    """Return the contents of a pack that another process holds."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return set()
    try:
        return {record.fingerprint for record in whole_records(fd)}
    finally:
        os.close(fd)


def _rewrite(
    path: str,
    sources: list[_Source],
    chosen: Callable[[_Source], bool],
    *,
    sync: bool,
    together: int,
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Write what stays of the chosen packs into new ones of about `together` bytes, and remove them. Closes all."""
    try:
        for source in sources:
            if not source.records:
                source.pack.remove()
        waiting = [source for source in sources if source.records and chosen(source)]
        while waiting:
            size, count = 0, 0
            while count < len(waiting) and (not count or size + waiting[count].needed <= together):
                size, count = size + waiting[count].needed, count + 1
            _write_new(path, waiting[:count], sync=sync, stop=stop)
            del waiting[:count]
    finally:
        for source in sources:
            os.close(source.fd)


def _write_new(path: str, sources: list[_Source], *, sync: bool, stop: Callable[[], bool]) -> None:
    """Write what stays of some packs into a new one, and remove them."""
    with _new_pack(path, sync=sync) as writer:
        seen = set[bytes]()
        for source in sources:
            for record in source.records:
                if stop():
                    raise Interrupted
                _copy(source.fd, record, writer, seen)
    for source in sources:
        source.pack.remove()


def _copy(fd: int, record: Record, writer: PackWriter, seen: set[bytes]) -> None:
    """Copy a record, compressed, unless it is damaged or the new pack has its content."""
    if record.fingerprint in seen:
        return
    stored = stored_bytes(fd, record)
    try:
        content_of(record, stored)
    except DamagedRecord:
        return
    seen.add(record.fingerprint)
    small = stored if record.compressed else zlib.compress(stored, _LEVEL)
    writer.add(record.fingerprint, small, compressed=True, written=record.written)


@contextmanager
def _new_pack(path: str, *, sync: bool) -> Iterator[PackWriter]:
    """Give a new pack to the block, and its name to the pack after it; removes it if the block fails."""
    pack = Pack(new_path(path))
    temp = pack.path + PART
    fd = create_locked(temp)
    if fd is None:
        raise Interrupted  # the sweep of another process took it at this moment
    try:
        writer = PackWriter(pack, fd)
        writer.prepare()
        yield writer
        writer.flush()
        if sync:
            os.fsync(fd)
        writer.index()
        os.rename(temp, pack.path)
        if sync:
            _sync_directory(path)
    except BaseException:
        _unlink(temp)
        _unlink(pack.index_path)
        raise
    finally:
        os.close(fd)


def _move_old(path: str, *, sync: bool) -> None:
    """Move the contents that earlier versions stored in files of their own into a pack; drop damaged ones."""
    old = OldBlobs(path)
    names = list({blob for blob, _, _ in old.listed()})
    while names:
        batch, names = names[:_MOVED], names[_MOVED:]
        with _new_pack(path, sync=sync) as writer:
            for blob in batch:
                with suppress(OSError, zlib.error):
                    data = old.read(blob)
                    if data is not None and sha256(data).hexdigest() == blob:
                        small = zlib.compress(data, _LEVEL)
                        writer.add(bytes.fromhex(blob), small, compressed=True, written=old.written(blob))
        for blob in batch:
            old.drop(blob)
    old.sweep()


def _unlink(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _sync_directory(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _has_unwanted(source: _Source) -> bool:
    return source.dropped > 0
