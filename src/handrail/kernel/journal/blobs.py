"""Stores file contents as blobs, each content once, named by its fingerprint.

A blob is written uncompressed, because a commit waits for it; a thread compresses it a little later. A blob is
`blobs/a/bcdef…`, or the same with `.z` once it is compressed. It gets this name when it is complete, so a kill leaves
partial blobs only in `blobs/new`. Reading checks the fingerprint: a damaged blob is never returned.
"""

import os
import threading
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256

from handrail.kernel.fs.syscalls import write_all
from handrail.kernel.host.state_dir import make_private

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_IDLE_SECONDS = 1.0
_PREFIX_DIGITS = 1
"""The digits of a fingerprint that name its directory. Creating a directory is slow; one digit needs only sixteen."""
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
        self._path, self._fresh, self._sync = path, os.path.join(path, "new"), sync
        self._latest = b"", fingerprint(b"")
        """The last content and its fingerprint: the result of one edit is often the start of the next."""
        self._count, self._lock = 0, threading.Lock()
        self._unpacked: deque[str] = deque()
        self._closing = threading.Event()
        self._packer: threading.Thread | None = None

    def put(self, data: bytes) -> str:
        """Store a content, if it is not stored yet, and return its fingerprint. Raises OSError."""
        latest, known = self._latest
        blob = known if data == latest else fingerprint(data)
        if len(data) <= _REMEMBERED_BYTES:
            self._latest = data, blob
        place = self._place(blob)
        if not self._is_there(place, len(data)):
            self._write(place, data)
            self._unpacked.append(blob)
            self._pack_later()
        return blob

    def get(self, blob: str) -> bytes:
        """Return the content of a blob. Raises `BlobLost`."""
        place = self._place(blob)
        try:
            try:
                data = _read(place)
            except FileNotFoundError:
                data = zlib.decompress(_read(f"{place}.z"))
        except FileNotFoundError:
            raise BlobLost(blob, "missing") from None
        except (OSError, zlib.error) as error:
            raise BlobLost(blob, f"damaged ({error})") from None
        if fingerprint(data) != blob:
            raise BlobLost(blob, "damaged (the fingerprint of its content differs)")
        return data

    def has(self, blob: str) -> bool:
        """Return whether a blob is stored."""
        place = self._place(blob)
        return os.path.exists(place) or os.path.exists(f"{place}.z")

    def sweep(self) -> None:
        """Remove partial blobs of killed processes."""
        for name in _names(self._fresh):
            if not _alive(int(name.partition("-")[0])):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._fresh, name))

    def listed(self) -> Iterator[tuple[str, int, float, bool]]:
        """Yield every blob with its size on the disk, its time of writing, and whether it is compressed."""
        for prefix in _names(self._path):
            if len(prefix) == _PREFIX_DIGITS:
                for name in _names(os.path.join(self._path, prefix)):
                    with suppress(FileNotFoundError):
                        found = os.stat(os.path.join(self._path, prefix, name))
                        yield prefix + name.removesuffix(".z"), found.st_size, found.st_mtime, name.endswith(".z")

    def drop(self, blob: str) -> None:
        """Remove a blob."""
        for name in (self._place(blob), f"{self._place(blob)}.z"):
            with suppress(FileNotFoundError):
                os.unlink(name)

    def pack(self, blob: str) -> None:
        """Compress a blob. If that fails, the blob stays uncompressed."""
        place = self._place(blob)
        with suppress(OSError):  # a full disk, or another process has pruned or compressed the blob
            self._write(f"{place}.z", zlib.compress(_read(place), 1), sync=self._sync)
            os.unlink(place)

    def close(self) -> None:
        """Stop the thread that compresses blobs. Pruning compresses the rest later, so that closing is fast."""
        self._closing.set()
        if self._packer is not None:
            self._packer.join()

    def _place(self, blob: str) -> str:
        return f"{self._path}/{blob[:_PREFIX_DIGITS]}/{blob[_PREFIX_DIGITS:]}"

    @staticmethod
    def _is_there(place: str, size: int) -> bool:
        try:
            return os.stat(place).st_size == size
        except FileNotFoundError:
            return os.path.exists(f"{place}.z")

    def _write(self, place: str, data: bytes, *, sync: bool = False) -> None:
        with self._lock:
            self._count += 1
            temp = f"{self._fresh}/{os.getpid()}-{self._count}"
        fd = self._create(temp)
        try:
            try:
                write_all(fd, data)
                if sync:
                    os.fsync(fd)
            finally:
                os.close(fd)
            _move(temp, place)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temp)
            raise

    def _create(self, temp: str) -> int:
        try:
            return os.open(temp, _NEW, 0o600)
        except FileNotFoundError:
            make_private(self._fresh)
            return os.open(temp, _NEW, 0o600)

    def _pack_later(self) -> None:
        with self._lock:
            if self._packer is None or not self._packer.is_alive():
                self._packer = threading.Thread(target=self._pack_when_idle, name="handrail-packer", daemon=True)
                self._packer.start()

    def _pack_when_idle(self) -> None:
        waiting = -1
        while len(self._unpacked) != waiting:  # wait until no new blobs arrive: calls come first
            waiting = len(self._unpacked)
            if self._closing.wait(_IDLE_SECONDS):
                return
        while self._unpacked and not self._closing.is_set():
            self.pack(self._unpacked.popleft())


def _move(temp: str, place: str) -> None:
    try:
        os.rename(temp, place)
    except FileNotFoundError:
        make_private(os.path.dirname(place))
        os.rename(temp, place)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):  # no blob is stored yet, or a file has the name of the directory
        return []


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
