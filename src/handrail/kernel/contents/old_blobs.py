"""Reads the contents that earlier versions stored: one file for each content, named by its fingerprint.

A content is `blobs/a/bcdef…`, or the same with `.z` if it is compressed. Pruning moves these contents into packs.
"""

import os
import zlib
from collections.abc import Iterator
from contextlib import suppress

from handrail.kernel.contents.packs import names_in

_PREFIX_DIGITS = 1


class OldBlobs:
    """Reads and removes the contents of earlier versions in one directory."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self, blob: str) -> bytes | None:
        """Return a content, which the caller checks; None if there is none. Raises OSError or zlib.error."""
        with suppress(FileNotFoundError):
            return _read(self._place(blob))
        with suppress(FileNotFoundError):
            return zlib.decompress(_read(f"{self._place(blob)}.z"))
        return None

    def has(self, blob: str) -> bool:
        """Return whether there is a content."""
        place = self._place(blob)
        return os.path.exists(place) or os.path.exists(f"{place}.z")

    def listed(self) -> Iterator[tuple[str, int, float]]:
        """Yield every content with its size on the disk and its time of writing."""
        for path in self.paths():
            with suppress(FileNotFoundError):
                found = os.stat(path)
                directory, name = path.split("/")[-2:]
                yield directory + name.removesuffix(".z"), found.st_size, found.st_mtime

    def paths(self) -> Iterator[str]:
        """Yield the path of every content."""
        for prefix in names_in(self._path):
            if len(prefix) == _PREFIX_DIGITS:
                for name in names_in(f"{self._path}/{prefix}"):
                    yield f"{self._path}/{prefix}/{name}"

    def written(self, blob: str) -> float:
        """Return the time of writing, in seconds since 1970. Raises OSError."""
        place = self._place(blob)
        return os.stat(place if os.path.exists(place) else f"{place}.z").st_mtime

    def drop(self, blob: str) -> None:
        """Remove a content, and its directory if that is empty."""
        place = self._place(blob)
        for name in (place, f"{place}.z"):
            with suppress(FileNotFoundError):
                os.unlink(name)
        with suppress(OSError):
            os.rmdir(os.path.dirname(place))

    def sweep(self) -> None:
        """Remove what processes of earlier versions left when they were killed."""
        fresh = os.path.join(self._path, "new")
        for name in names_in(fresh):
            if not _alive(name.partition("-")[0]):
                with suppress(OSError):  # another process removed it, or it is none of Handrail's files
                    os.unlink(os.path.join(fresh, name))
        with suppress(OSError):  # it does not exist, or is not empty
            os.rmdir(fresh)

    def _place(self, blob: str) -> str:
        return f"{self._path}/{blob[:_PREFIX_DIGITS]}/{blob[_PREFIX_DIGITS:]}"


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
