"""Opens paths inside an open directory, the root, in two ways: `Openat2` asks Linux, `PathWalk` opens each component.

Both ways give the same results. Both raise OSError with the error numbers of Linux; EXDEV means that the path leaves
the root, ENOLINK that it ends in a dangling link.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
from collections import deque
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple, Protocol

from handrail.kernel.fs.syscalls import os_error
from handrail.model.limits import Limits

_OPENAT2 = 437
_RESOLVE = 0x08 | 0x02  # BENEATH | NO_MAGICLINKS
_NO_LINKS = 0x04
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NONBLOCK
O_PATH = getattr(os, "O_PATH", 0)
# Error numbers of opening or reading a name that another process has just replaced.
_EXCHANGED = (errno.ELOOP, errno.ENOTDIR, errno.EINVAL, errno.ENOENT)
_PLAIN = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Place(NamedTuple):
    """Holds the position of one entry: its open directory, which the caller closes, and its name; '' for the root."""

    dir_fd: int
    name: str
    rel: str
    """The path of `name` inside the root, links resolved."""
    rest: tuple[str, ...] = ()
    """The components after `name`, if `name` is a parent directory that does not exist yet."""

    @property
    def target(self) -> str:
        """The whole path inside the root, links resolved."""
        return "/".join([self.rel, *self.rest]) if self.rest else self.rel

    def stat(self) -> os.stat_result | None:
        """Return the stat result of the entry itself, without following a link; None if there is no entry."""
        try:
            return os.stat(self.name or ".", dir_fd=self.dir_fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def close(self) -> None:
        os.close(self.dir_fd)


class Resolver(Protocol):
    """Opens a path inside the root."""

    def open(self, parts: tuple[str, ...], flags: int) -> int: ...


@cache
def _syscall() -> Any:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    return call


def openat2(dir_fd: int, path: bytes, how: bytes) -> int:
    """Open a path below a directory; `how` is the packed `open_how`. Return the negative error number on failure."""
    fd: int = _syscall()(_OPENAT2, dir_fd, path, how, len(how))
    return fd if fd >= 0 else -ctypes.get_errno()


class Openat2:
    """Opens paths with `openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)`; leaves absolute links to `PathWalk`."""

    def __init__(self, root_fd: int, walk: "PathWalk", retries: int) -> None:
        self.root_fd, self._walk, self._retries = root_fd, walk, retries
        self._how: dict[tuple[int, bool], bytes] = {}

    def open(self, parts: tuple[str, ...], flags: int, *, links: bool = True) -> int:
        """Open a path and return the handle.

        Without `links`, raises ELOOP if any component is a link, or if the path seems to leave the root, as it may
        while another process moves a directory.
        """
        how = self._how.get((flags, links))
        if how is None:
            resolve = _RESOLVE if links else _RESOLVE | _NO_LINKS
            how = self._how[flags, links] = struct.pack("=QQQ", _with_plain(flags), 0, resolve)
        path = os.fsencode("/".join(parts)) or b"."
        for _ in range(self._retries):
            fd = openat2(self.root_fd, path, how)
            if fd >= 0:
                return fd
            code = -fd
            if code == errno.EXDEV and not links:
                raise os_error(errno.ELOOP)
            if code == errno.EXDEV:
                return self._walk.open(parts, flags)  # an absolute link may still lead back into the root
            if code not in (errno.EAGAIN, errno.EINTR):
                raise os_error(code)
        raise os_error(errno.EAGAIN)

    @staticmethod
    def works(root_fd: int) -> bool:
        """Return whether this system has openat2."""
        if sys.platform != "linux":
            return False
        try:
            os.close(Openat2(root_fd, PathWalk(root_fd, (), Limits()), 8).open((), _DIRECTORY))
        except OSError:
            return False
        return True


class PathWalk:
    """Resolves paths component by component and checks every link; keeps parents open, so that `..` returns to them."""

    def __init__(self, root_fd: int, roots: tuple[str, ...], limits: Limits) -> None:
        self.root_fd, self.roots, self._limits = root_fd, roots, limits

    def open(self, parts: tuple[str, ...], flags: int) -> int:
        """Open a path and return the handle; retry if another process replaces an entry meanwhile."""
        for _ in range(self._limits.resolve_retries):
            place = self.locate_to_read(parts)
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
        raise os_error(errno.EAGAIN)

    def locate_to_read(self, parts: tuple[str, ...], *, follow: bool = True) -> Place:
        """Locate a path like `locate`, but report a dangling link as a file that does not exist."""
        try:
            return self.locate(parts, follow=follow)
        except OSError as error:
            raise (os_error(errno.ENOENT) if error.errno == errno.ENOLINK else error) from None

    def locate(self, parts: tuple[str, ...], *, follow: bool = True, future: bool = False) -> Place:
        """Return the directory and the name of the last component.

        The last component may be missing. With `future`, directories before it may be missing, too. Without `follow`,
        a final link is not followed.
        """
        for _ in range(self._limits.resolve_retries):
            with suppress(BlockingIOError):  # EAGAIN: another process renamed an entry during the walk
                return self._locate(parts, follow=follow, future=future)
        raise os_error(errno.EAGAIN)

    def _locate(self, parts: tuple[str, ...], *, follow: bool, future: bool) -> Place:
        route = _Route(self.root_fd, parts)
        try:
            while route.todo:
                part = route.todo.popleft()
                if part == "..":
                    route.leave()
                    continue
                mode = route.mode(part)
                if mode is None:
                    return _missing(route, part, future=future)
                if stat.S_ISLNK(mode) and (route.todo or follow):
                    self._follow(route, part)
                elif route.todo:
                    route.enter(part, mode)
                else:
                    return route.place(part)
            return route.place_of_directory()
        finally:
            route.close()

    def _follow(self, route: "_Route", name: str) -> None:
        """Replace a link by its target. An absolute target must lie in the root; the route restarts there."""
        route.links += 1
        if route.links > self._limits.links:
            raise os_error(errno.ELOOP)
        route.ends_in_link = route.ends_in_link or not route.todo
        target = route.read_link(name)
        if target.startswith("/"):
            target = self._inside_root(target)
            route.restart()
        route.todo.extendleft(reversed([part for part in target.split("/") if part not in ("", ".")]))

    def _inside_root(self, target: str) -> str:
        for root in self.roots:
            stem = root.rstrip("/")
            if target == stem or target.startswith(stem + "/"):
                return target[len(stem) :]
        raise os_error(errno.EXDEV)


class _Route:
    """Holds the progress of one walk: the open directories from the root on, and the components left to resolve."""

    def __init__(self, root_fd: int, parts: tuple[str, ...]) -> None:
        self._handles, self._names = [os.dup(root_fd)], list[str]()
        self.todo = deque(parts)
        self.links = 0
        self.ends_in_link = False
        """True if the last component of the path was a link."""

    def mode(self, name: str) -> int | None:
        """Return the mode of an entry of the current directory; None if there is no such entry."""
        try:
            return os.stat(name, dir_fd=self._handles[-1], follow_symlinks=False).st_mode
        except FileNotFoundError:
            return None

    def enter(self, name: str, mode: int) -> None:
        """Open a directory in the current one and make it the current one."""
        if not stat.S_ISDIR(mode):
            raise os_error(errno.ENOTDIR)
        try:
            self._handles.append(os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=self._handles[-1]))
        except OSError as error:
            raise (os_error(errno.EAGAIN) if error.errno in _EXCHANGED else error) from None
        self._names.append(name)

    def leave(self) -> None:
        """Go back to the parent of the current directory."""
        if not self._names:
            raise os_error(errno.EXDEV)
        os.close(self._handles.pop())
        self._names.pop()

    def restart(self) -> None:
        """Go back to the root."""
        while self._names:
            self.leave()

    def read_link(self, name: str) -> str:
        try:
            return os.readlink(name, dir_fd=self._handles[-1])
        except OSError as error:
            raise (os_error(errno.EAGAIN) if error.errno in _EXCHANGED else error) from None

    def place(self, name: str) -> Place:
        """Return the place of an entry of the current directory, and hand its handle over to the caller."""
        return Place(self._handles.pop(), name, "/".join([*self._names, name]), tuple(self.todo))

    def place_of_directory(self) -> Place:
        """Return the place of the current directory in its parent; the root has no parent and an empty name."""
        if not self._names:
            return Place(self._handles.pop(), "", "")
        os.close(self._handles.pop())
        return Place(self._handles.pop(), self._names[-1], "/".join(self._names))

    def close(self) -> None:
        for fd in self._handles:
            os.close(fd)


def _missing(route: _Route, name: str, *, future: bool) -> Place:
    """Return the place of a name that does not exist, if the caller may create it; raise OSError otherwise."""
    if route.ends_in_link:  # creating the target of a dangling link would write to an unexpected path
        raise os_error(errno.ENOLINK)
    if route.todo and (not future or ".." in route.todo):
        raise os_error(errno.ENOENT)
    return route.place(name)


def _with_plain(flags: int) -> int:
    """Add flags against blocking and against a controlling terminal; O_PATH needs neither, and openat2 rejects them."""
    return flags | (os.O_CLOEXEC if flags & O_PATH else _PLAIN)


def _was_exchanged(error: OSError, place: Place) -> bool:
    """Return whether opening failed because another process replaced the entry after the walk had located it."""
    if error.errno != errno.ENOTDIR:
        return error.errno == errno.ELOOP
    now = place.stat()
    return now is not None and (stat.S_ISLNK(now.st_mode) or stat.S_ISDIR(now.st_mode))


def place_of(fd: int, root_fd: int) -> str | None:
    """Return the path of an open file or directory in the root, links resolved; None if the system cannot tell it."""
    try:
        here, top = os.readlink(f"/proc/self/fd/{fd}"), os.readlink(f"/proc/self/fd/{root_fd}")
    except OSError:
        return None
    if here == top:
        return ""
    stem = top.rstrip("/") + "/"
    return here[len(stem) :] if here.startswith(stem) else None
