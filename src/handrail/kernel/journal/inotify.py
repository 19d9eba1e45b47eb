"""Which directories something happened in, as Linux reports it: so that a scan need not look into all the others.

The system tells of every change made through a name in a watched directory, on file systems of this machine. What it
cannot tell (a change made through another name of the same file, or on another machine) is for the scan to look for.
"""

import ctypes
import os
import struct
import sys
from contextlib import suppress

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED, _CREATE, _DELETE = 0x02, 0x04, 0x08, 0xC0, 0x100, 0x200
_EXCL_UNLINK, _ONLYDIR = 0x04000000, 0x01000000
_MASK = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED | _CREATE | _DELETE | _EXCL_UNLINK | _ONLYDIR
_OVERFLOW, _IGNORED, _ISDIR = 0x4000, 0x8000, 0x40000000
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 18
_NUL = b"\0"
# ext, XFS, Btrfs, tmpfs, ZFS, F2FS, overlay, bcachefs
_LOCAL = {0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x2FC12FC1, 0xF2F52010, 0x794C7630, 0xCA451A4E}


class Watcher:
    """`changed()` is None where anything may have happened: at first, after too many events, where it can't work."""

    def __init__(self, root_fd: int, directories: int) -> None:
        self._room, self._paths, self._sure, self._fd = directories, dict[int, str](), False, -1
        if sys.platform == "linux" and _file_system(root_fd) in _LOCAL:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)

    @property
    def works(self) -> bool:
        return self._fd >= 0

    def add(self, fd: int, path: str) -> None:
        """Watch an open directory, before it is listed."""
        if self._fd < 0:
            return
        watch = self._libc.inotify_add_watch(self._fd, b"/proc/self/fd/%d" % fd, _MASK)
        if watch < 0 or len(self._paths) >= self._room:
            self.close()
        else:
            self._paths[watch] = path

    def begin(self) -> None:
        """All that is watched is about to be listed: from here on events tell the whole story."""
        self._read()
        self._sure = self._fd >= 0

    def changed(self) -> set[str] | None:
        """A directory that came under a name is another one than was watched there, and so are all beneath it."""
        found = self._read()
        if not self._sure or self._fd < 0:
            return None
        return found

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._sure = -1, False
        self._paths.clear()

    def _read(self) -> set[str]:
        found: set[str] = set()
        came: set[str] = set()
        with suppress(BlockingIOError):
            while self._fd >= 0:
                data = os.read(self._fd, _BUFFER)
                at = 0
                while at < len(data):
                    watch, mask, _, size = _EVENT.unpack_from(data, at)
                    name = data[at + _EVENT.size : at + _EVENT.size + size]
                    at += _EVENT.size + size
                    if mask & _OVERFLOW:
                        self._sure = False
                    elif mask & _IGNORED and watch in self._paths:
                        found.add(self._paths.pop(watch))  # another may have its name by now, which is not watched
                    elif watch in self._paths:
                        found.add(path := self._paths[watch])
                        if mask & _ISDIR and mask & (_CREATE | _MOVED):
                            came.add(f"{path}/{os.fsdecode(name.rstrip(_NUL))}".lstrip("/"))
        return found | self._beneath(came) if came else found

    def _beneath(self, came: set[str]) -> set[str]:
        """What is watched there; most that come were not there before."""
        stems = tuple(f"{path}/" for path in came.intersection(self._paths.values()))
        return {path for path in self._paths.values() if f"{path}/".startswith(stems)} if stems else set()


def _file_system(fd: int) -> int:
    buffer = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None, use_errno=True).fstatfs(fd, buffer):
        return 0
    return int(ctypes.c_ulong.from_buffer(buffer).value) & 0xFFFFFFFF
