"""Two ways to open beneath a directory handle, with one meaning: `Openat2` lets Linux do it, `PathWalk` goes by hand.

Both raise OSError with the kernel's own numbers; EXDEV means that the path leaves the root.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
from collections import deque
from contextlib import suppress
from typing import NamedTuple, Protocol

from handrail.kernel.fs.syscalls import os_error
from handrail.model.limits import Limits

_OPENAT2 = 437
_RESOLVE = 0x08 | 0x02  # BENEATH | NO_MAGICLINKS
_NO_LINKS = 0x04
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NONBLOCK
O_PATH = getattr(os, "O_PATH", 0)
# What opening or reading says when the name is no longer what it was looked at as.
_EXCHANGED = (errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.ENOENT)
_PLAIN = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Place(NamedTuple):
    """Where a name lives: an open directory (the caller closes it) and one component. The root's own name is ''."""

    dir_fd: int
    name: str
    rel: str
    rest: tuple[str, ...] = ()
    """Components that follow where `name`, a directory, is still missing."""

    @property
    def target(self) -> str:
        """The whole path beneath the root, links resolved."""
        return "/".join([self.rel, *self.rest]) if self.rest else self.rel

    def stat(self) -> os.stat_result | None:
        """The entry itself, a link not followed; None where there is none."""
        try:
            return os.stat(self.name or ".", dir_fd=self.dir_fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def close(self) -> None:
        os.close(self.dir_fd)


class Resolver(Protocol):
    def open(self, parts: tuple[str, ...], flags: int) -> int: ...


class Openat2:
    """`openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)`; links with absolute targets are left to the walk."""

    def __init__(self, root_fd: int, walk: "PathWalk", retries: int) -> None:
        self.root_fd, self._walk, self._retries = root_fd, walk, retries
        libc = ctypes.CDLL(None, use_errno=True)
        self._syscall = libc.syscall
        self._syscall.restype = ctypes.c_long
        self._syscall.argtypes = (
            ctypes.c_long,
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_char_p,
            ctypes.c_size_t,
        )
        self._how: dict[tuple[int, bool], bytes] = {}

    def open(self, parts: tuple[str, ...], flags: int, *, links: bool = True) -> int:
        """Without `links`, one anywhere on the way is ELOOP, and so is a directory that was just moved."""
        how = self._how.get((flags, links))
        if how is None:
            resolve = _RESOLVE if links else _RESOLVE | _NO_LINKS
            how = self._how[flags, links] = struct.pack("=QQQ", _with_plain(flags), 0, resolve)
        path = os.fsencode("/".join(parts)) or b"."
        for _ in range(self._retries):
            fd: int = self._syscall(_OPENAT2, self.root_fd, path, how, 24)
            if fd >= 0:
                return fd
            code = ctypes.get_errno()
            if code == errno.EXDEV and not links:
                raise os_error(errno.ELOOP)
            if code == errno.EXDEV:
                return self._walk.open(parts, flags)  # an absolute link may still lead back inside
            if code not in (errno.EAGAIN, errno.EINTR):
                raise OSError(code, os.strerror(code))
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    @staticmethod
    def works(root_fd: int) -> bool:
        if sys.platform != "linux":
            return False
        try:
            os.close(Openat2(root_fd, PathWalk(root_fd, (), Limits()), 8).open((), _DIRECTORY))
        except OSError:
            return False
        return True


class PathWalk:
    """Component by component, never through a link unseen; `..` goes back to a handle that is still held."""

    def __init__(self, root_fd: int, roots: tuple[str, ...], limits: Limits) -> None:
        self.root_fd, self._roots, self._limits = root_fd, roots, limits

    def open(self, parts: tuple[str, ...], flags: int) -> int:
        for _ in range(self._limits.resolve_retries):
            place = self.look(parts)
            try:
                fd = os.open(place.name or ".", _with_plain(flags) | os.O_NOFOLLOW, dir_fd=place.dir_fd)
            except OSError as error:
                if not _was_exchanged(error, place):
                    raise
                continue
            finally:
                place.close()
            if not stat.S_ISLNK(os.fstat(fd).st_mode):
                return fd
            os.close(fd)  # O_PATH opens the link itself
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    def look(self, parts: tuple[str, ...], *, follow: bool = True) -> Place:
        """`locate` for reading, where a dangling link is just a file that is not there."""
        try:
            return self.locate(parts, follow=follow)
        except OSError as error:
            raise (os_error(errno.ENOENT) if error.errno == errno.ENOLINK else error) from None

    def locate(self, parts: tuple[str, ...], *, follow: bool = True, future: bool = False) -> Place:
        """The directory and the name that `parts` end in. The last component may be missing; in the `future`
        also those before it.
        """
        for _ in range(self._limits.resolve_retries):
            with suppress(BlockingIOError):  # EAGAIN: a rename raced the walk
                return self._locate(parts, follow=follow, future=future)
        raise os_error(errno.EAGAIN)

    def _locate(self, parts: tuple[str, ...], *, follow: bool, future: bool) -> Place:
        held, names = [os.dup(self.root_fd)], list[str]()
        todo, links, through_link = deque(parts), 0, False
        try:
            while todo:
                part = todo.popleft()
                if part == "..":
                    if not names:
                        raise os_error(errno.EXDEV)
                    os.close(held.pop())
                    names.pop()
                    continue
                mode = self._mode(held[-1], part)
                if mode is None and (through_link or (todo and (not future or ".." in todo))):
                    # Writing through a dangling link would create what it only promises.
                    raise os_error(errno.ENOLINK if through_link else errno.ENOENT)
                if mode is not None and stat.S_ISLNK(mode) and (todo or follow):
                    links += 1
                    through_link = through_link or not todo
                    todo.extendleft(reversed(self._link_parts(part, held, names, links)))
                elif mode is not None and todo:
                    held.append(self._enter(held[-1], part, mode))
                    names.append(part)
                else:
                    return Place(held.pop(), part, "/".join([*names, part]), tuple(todo))
            if names:
                os.close(held.pop())
            return Place(held.pop(), names[-1] if names else "", "/".join(names))
        finally:
            for fd in held:
                os.close(fd)

    @staticmethod
    def _mode(dir_fd: int, name: str) -> int | None:
        try:
            return os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None

    @staticmethod
    def _enter(dir_fd: int, name: str, mode: int) -> int:
        if not stat.S_ISDIR(mode):
            raise os_error(errno.ENOTDIR)
        try:
            return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=dir_fd)
        except OSError as error:
            raise (os_error(errno.EAGAIN) if error.errno in _EXCHANGED else error) from None

    @staticmethod
    def _read_link(name: str, dir_fd: int) -> str:
        try:
            return os.readlink(name, dir_fd=dir_fd)
        except OSError as error:
            raise (os_error(errno.EAGAIN) if error.errno in _EXCHANGED else error) from None

    def _link_parts(self, name: str, held: list[int], names: list[str], links: int) -> list[str]:
        """The components that a link stands for; an absolute one must lead back beneath the root and starts there."""
        if links > self._limits.links:
            raise os_error(errno.ELOOP)
        target = self._read_link(name, held[-1])
        if target.startswith("/"):
            stems = [root.rstrip("/") for root in self._roots]
            stem = next((s for s in stems if target == s or target.startswith(s + "/")), None)
            if stem is None:
                raise os_error(errno.EXDEV)
            target = target[len(stem) :]
            while len(held) > 1:
                os.close(held.pop())
            names.clear()
        return [part for part in target.split("/") if part not in ("", ".")]


def _with_plain(flags: int) -> int:
    """Never block, never become a controlling terminal; openat2 refuses these beside O_PATH, which needs neither."""
    return flags | (os.O_CLOEXEC if flags & O_PATH else _PLAIN)


def _was_exchanged(error: OSError, place: Place) -> bool:
    """Whether opening failed because a link stood for a moment where something else was looked at."""
    if error.errno != errno.ENOTDIR:
        return error.errno == errno.ELOOP
    now = place.stat()
    return now is not None and (stat.S_ISLNK(now.st_mode) or stat.S_ISDIR(now.st_mode))


def place_of(fd: int, root_fd: int) -> str | None:
    """The place of an open file or directory beneath the root, links resolved; None where the system cannot say."""
    try:
        here, top = os.readlink(f"/proc/self/fd/{fd}"), os.readlink(f"/proc/self/fd/{root_fd}")
    except OSError:
        return None
    if here == top:
        return ""
    stem = top.rstrip("/") + "/"
    return here[len(stem) :] if here.startswith(stem) else None
