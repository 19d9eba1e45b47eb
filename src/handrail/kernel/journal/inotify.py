"""Reports the directories in which something changed, with Linux inotify, so that a scan can skip all the others.

Linux reports every change that a process makes through a name in a watched directory, on local file systems. It does
not report a change through another name of the same file, or from another machine; the scan must find these changes.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED, _CREATE, _DELETE = 0x02, 0x04, 0x08, 0xC0, 0x100, 0x200
_EXCL_UNLINK, _ONLYDIR = 0x04000000, 0x01000000
_MASK = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _EXCL_UNLINK | _ONLYDIR
NAMES = _MOVED | _CREATE | _DELETE | _EXCL_UNLINK | _ONLYDIR
"""The mask for a watch that reports only new, renamed and deleted names."""
_OVERFLOW, _IGNORED, _ISDIR = 0x4000, 0x8000, 0x40000000
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 18
_NUL = b"\0"
# ext, XFS, Btrfs, tmpfs, ZFS, F2FS, overlay, bcachefs
_LOCAL = {0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x2FC12FC1, 0xF2F52010, 0x794C7630, 0xCA451A4E}


class Watcher:
    """Watches directories. Knows no changes before `begin()`, after too many events, or if inotify does not work."""

    def __init__(self, root_fd: int, directories: int, mask: int = _MASK) -> None:
        self._mask, self._room, self._paths, self._sure, self._fd = mask, directories, dict[int, str](), False, -1
        if sys.platform == "linux" and _file_system(root_fd) in _LOCAL:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)

    @property
    def works(self) -> bool:
        """True if directories are watched."""
        return self._fd >= 0

    def add(self, fd: int, path: str) -> None:
        """Watch an open directory. Call this before listing it."""
        if self._fd < 0:
            return
        watch = self._libc.inotify_add_watch(self._fd, b"/proc/self/fd/%d" % fd, self._mask)
        if watch < 0 or len(self._paths) >= self._room:
            self.close()
        else:
            self._paths[watch] = path

    def begin(self) -> None:
        """Start a complete scan: the events from now on contain all changes after it."""
        self._read()
        self._sure = self._fd >= 0

    def changed(self) -> set[str] | None:
        """Return the directories in which something changed since the last call; None if any may have changed.

        If a directory appears under a watched name, it replaced the watched one; the result contains it and all
        watched directories in it.
        """
        found = self._read()
        if not self._sure or self._fd < 0:
            return None
        return found

    def close(self) -> None:
        """Stop watching."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._sure = -1, False
        self._paths.clear()

    def _read(self) -> set[str]:
        found: set[str] = set()
        came: set[str] = set()
        with suppress(BlockingIOError):
            while self._fd >= 0:
                for watch, mask, name in _events(os.read(self._fd, _BUFFER)):
                    if mask & _OVERFLOW:
                        self._sure = False
                    elif mask & _IGNORED and watch in self._paths:
                        found.add(self._paths.pop(watch))  # another directory may have its name now, and is not watched
                    elif watch in self._paths:
                        found.add(path := self._paths[watch])
                        if mask & _ISDIR and mask & (_CREATE | _MOVED):
                            came.add(f"{path}/{name}".lstrip("/"))
        return found | self._watched_in(came) if came else found

    def _watched_in(self, came: set[str]) -> set[str]:
        """Return the watched directories in these ones; usually none, because most of these are new."""
        stems = tuple(f"{path}/" for path in came.intersection(self._paths.values()))
        return {path for path in self._paths.values() if f"{path}/".startswith(stems)} if stems else set()


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Yield watch, mask and name of each event in a buffer."""
    at = 0
    while at < len(data):
        watch, mask, _, size = _EVENT.unpack_from(data, at)
        at += _EVENT.size + size
        yield watch, mask, os.fsdecode(data[at - size : at].rstrip(_NUL))


def _file_system(fd: int) -> int:
    """Return the number that identifies the type of a file system; 0 if unknown."""
    buffer = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None, use_errno=True).fstatfs(fd, buffer):
        return 0
    return int(ctypes.c_ulong.from_buffer(buffer).value) & 0xFFFFFFFF
