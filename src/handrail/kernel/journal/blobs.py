"""Stores the file contents of one workspace, each content once, named by its fingerprint.

`kernel/contents/` keeps the contents in packs: append-only files that several processes use at once. A content is
written uncompressed, because a commit waits for it; a thread compresses many of them a little later. Reading checks the
fingerprint: a damaged content is never returned. Contents that earlier versions stored in files of their own are read
too, until pruning moves them into packs. `snapshot.py` copies the whole history of a workspace, with `Blobs.copy_to`.
"""

import os
import threading
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256

from handrail.kernel.contents.old_blobs import OldBlobs
from handrail.kernel.contents.packs import Gone, Packs, all_records

_IDLE_SECONDS = 1.0
_WORTH_BYTES = 1 << 20
"""A thread compresses a pack if it has as many uncompressed bytes as this, and as compressed ones."""
_REMEMBERED_BYTES = 1 << 20


class BlobLost(Exception):  # noqa: N818  not an error of the program: the caller turns it into a conflict or a warning
    """Says that a blob is missing or damaged."""

    def __init__(self, blob: str, why: str) -> None:
        super().__init__(f"blob {blob[:12]} is {why}")


def fingerprint(data: bytes) -> str:
    """Return the name of the blob for a content."""
    return sha256(data).hexdigest()  # fast, because processors have instructions for SHA-256


class Blobs:
    """Stores, returns and removes the blobs of one workspace."""

    def __init__(self, path: str, *, sync: bool) -> None:
        self.path, self._sync = path, sync
        self._packs, self._old = Packs(path), OldBlobs(path)
        self._latest = b"", sha256(b"").digest()
        """The last content and its fingerprint: the result of one edit is often the start of the next."""
        self._count, self._batches, self._lock = 0, 0, threading.RLock()
        self._closing = threading.Event()
        self._idler: threading.Thread | None = None

    def put(self, data: bytes) -> str:
        """Store a content, if it is not stored yet, and return its fingerprint. Raises OSError."""
        latest, known = self._latest
        key = known if data == latest else sha256(data).digest()
        if len(data) <= _REMEMBERED_BYTES:
            self._latest = data, key
        with self._lock:
            self._packs.add(data, key)
            if not self._batches:
                self._packs.flush()
                self._rest_later()
        return key.hex()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Write the contents that the block stores in few system calls. At the end all are written. Raises OSError."""
        with self._lock:
            self._batches += 1
        try:
            yield
        finally:
            with self._lock:
                self._batches -= 1
                self._packs.flush()
                self._rest_later()

    def get(self, blob: str) -> bytes:
        """Return the content of a blob. Raises `BlobLost`."""
        try:
            with self._lock:
                self._packs.flush()
                return self._packs.read(bytes.fromhex(blob))
        except Gone as gone:
            why = str(gone)
        except OSError as error:
            why = f"damaged ({error})"
        except ValueError:
            why = "missing"
        try:
            data = self._old.read(blob)
        except (OSError, zlib.error) as error:
            raise BlobLost(blob, f"damaged ({error})") from None
        if data is None:
            raise BlobLost(blob, why)
        if fingerprint(data) != blob:
            raise BlobLost(blob, "damaged (the fingerprint of its content differs)")
        return data

    def has(self, blob: str) -> bool:
        """Return whether a blob is stored."""
        with self._lock:
            return self._packs.has(bytes.fromhex(blob)) or self._old.has(blob)

    def listed(self) -> Iterator[tuple[str, int, float, bool]]:
        """Yield every blob with its size on the disk, its time of writing, and whether it is compressed in a pack."""
        for record in all_records(self.path):
            yield record.fingerprint.hex(), record.size, record.written, record.compressed
        for blob, size, written in self._old.listed():
            yield blob, size, written, False

    def sweep(self) -> None:
        """Remove what killed processes left."""
        from handrail.kernel.contents import compaction  # noqa: PLC0415  most processes find no pack at all

        if os.path.isdir(self.path):
            compaction.sweep(self.path)
            self._old.sweep()

    def drop(self, blobs: Collection[str]) -> set[str]:
        """Remove blobs, and return those that are gone: one stays if another process is just adding to its pack."""
        from handrail.kernel.contents import compaction  # noqa: PLC0415

        self._rest()
        gone = compaction.drop(self.path, {bytes.fromhex(blob) for blob in blobs}, sync=self._sync)
        for blob in blobs:
            self._old.drop(blob)
        return {each.hex() for each in gone}

    def tidy(self) -> None:
        """Compress all blobs, and move those of earlier versions into packs. Raises OSError."""
        from handrail.kernel.contents import compaction  # noqa: PLC0415

        self._rest()
        with suppress(compaction.Interrupted):
            compaction.tidy(self.path, sync=self._sync)

    def copy_to(self, path: str) -> None:
        """Copy all blobs into another directory, with hard links where that is possible. Raises OSError.

        A pack with several names is never added to again, so neither directory changes the other.
        """
        from handrail.kernel.contents.copy_contents import copy_contents  # noqa: PLC0415

        self._rest()
        copy_contents(self.path, path)

    def close(self) -> None:
        """Stop the thread, and let go of the pack. Pruning compresses the rest later, so that closing is fast."""
        self._closing.set()
        if self._idler is not None:
            self._idler.join()
        self._rest()

    def _rest(self) -> None:
        with self._lock:
            self._packs.release()

    def _rest_later(self) -> None:
        self._count += 1
        if self._idler is None or not self._idler.is_alive():
            self._idler = threading.Thread(target=self._rest_when_idle, name="handrail-packer", daemon=True)
            self._idler.start()

    def _rest_when_idle(self) -> None:
        """Let go of the pack, so that another process can use it, and compress it if that is worth the work."""
        waiting = -1
        while self._count != waiting:  # wait until no new blobs arrive: calls come first
            waiting = self._count
            if self._closing.wait(_IDLE_SECONDS):
                return
        with self._lock:
            pack = self._packs.own
            if pack is None or self._batches:
                return
            self._packs.release()
        if pack.raw >= _WORTH_BYTES and 2 * pack.raw >= pack.end:
            from handrail.kernel.contents import compaction  # noqa: PLC0415

            with suppress(OSError, compaction.Interrupted):  # a full disk, or this process ends: pruning does it later
                compaction.compress(self.path, pack.path, sync=self._sync, stop=self._closing.is_set)
