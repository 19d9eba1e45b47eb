"""Resolves every path inside one open directory, the root. Handrail reaches files only through this module."""

import errno
import os
import posixpath
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NoReturn

from handrail.kernel.fs.placeholder import is_placeholder
from handrail.kernel.fs.resolver import O_PATH, Openat2, PathWalk, Place, Resolver, place_of
from handrail.model.faults import (
    AccessDenied,
    AlreadyExists,
    BlockedByFile,
    Conflict,
    DanglingLink,
    DirectoryNotFound,
    Fault,
    IsDirectory,
    LinkLoop,
    NotADirectory,
    NotFound,
    OutsideRoot,
    PathTooLong,
    SpecialFile,
    WriteFailed,
)
from handrail.model.limits import Limits
from handrail.model.paths import GivenPath, quote, relative_to_root, split

if TYPE_CHECKING:
    from handrail.kernel.fs.protected_files import ProtectedFiles

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_KINDS: list[tuple[Callable[[int], bool], str]] = [
    (stat.S_ISFIFO, "FIFO"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "character device"),
    (stat.S_ISBLK, "block device"),
]
_FAULTS: dict[int, Callable[[str], Fault]] = {
    errno.EXDEV: OutsideRoot,
    errno.ENOENT: NotFound,
    errno.ENOTDIR: NotADirectory,
    errno.EISDIR: IsDirectory,
    errno.EEXIST: AlreadyExists,
    errno.ELOOP: LinkLoop,
    errno.ENOLINK: DanglingLink,
    errno.EACCES: AccessDenied,
    errno.EPERM: AccessDenied,
    errno.EAGAIN: Conflict,
    errno.ENAMETOOLONG: PathTooLong,
    errno.ENXIO: lambda path: SpecialFile(path, "socket"),
}


class faults_for:  # noqa: N801  used like a function; costs half as much as a generator
    """Turns an OSError into the fault for `path`, as the caller wrote it."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise_fault(error, self._path)


def raise_fault(error: OSError, path: str) -> NoReturn:
    """Raise the fault that an OSError means for `path`."""
    make = _FAULTS.get(error.errno or 0)
    raise (make(path) if make else WriteFailed(path, error.strerror or str(error))) from error


class FsBoundary:
    """Holds the root directory open; opens and locates paths inside it, and rejects paths that lead outside."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        limits: Limits | None = None,
        resolver: Literal["auto", "openat2", "walk"] = "auto",
        mount: str = "",
    ) -> None:
        given = os.path.abspath(root)
        limits = limits or Limits()
        with faults_for(given):
            self.fd = os.open(given, _DIRECTORY | (os.O_NOFOLLOW if mount else 0))
        found = os.fstat(self.fd)
        self.identity = (found.st_dev, found.st_ino)
        self.root = mount or os.path.realpath(given)
        """The root's path, for messages and to split absolute paths; never opened again."""
        self.mount = mount
        """The only path by which callers know this root, and with which its resolved paths begin; usually empty."""
        self._elsewhere = False
        """True if the root is shown under a path that another system has, such as a container image."""
        self._roots = (self.root, given) if given != self.root and not mount else (self.root,)
        self._walk = PathWalk(self.fd, self._roots, limits)
        fast = resolver == "openat2" or (resolver == "auto" and Openat2.works(self.fd))
        self._fast = Openat2(self.fd, self._walk, limits.resolve_retries) if fast else None
        self._resolver: Resolver = self._fast or self._walk
        self.resolver = "openat2" if fast else "walk"
        self.is_view = False
        """True if the handle shows a layer over the root, and not the root itself."""
        self.protected: ProtectedFiles | None = None
        """The protected files. The session sets them when it has read the settings."""

    def show(self, fd: int, root: str = "") -> None:
        """Work in the view of a layer from now on, under the same number of the handle and a path, if given."""
        self.is_view = True
        os.dup2(fd, self.fd, inheritable=False)
        if root:
            self.root, self._roots, self._elsewhere = root, (root,), True
            self._walk.roots = self._roots

    def close(self) -> None:
        """Close the root and forget its handle: the system may reuse the number for another directory."""
        fd, self.fd = self.fd, -1
        self._walk.root_fd = -1
        if self._fast:
            self._fast.root_fd = -1
        os.close(fd)

    def split(self, path: str) -> GivenPath:
        """Split a path into components relative to the root. Raises a fault for an absolute path outside."""
        return split(path, self._roots, windows=sys.platform == "win32")

    def relative_glob(self, glob: str) -> str | None:
        """Return an absolute glob relative to the root; None if it is relative, or does not lead below the root."""
        return relative_to_root(glob, self._roots) or None

    def was_replaced(self) -> bool:
        """Return whether the root's path now names another directory. The open handle keeps the original."""
        if self._elsewhere:
            return False  # the host knows no such path
        try:
            now = os.stat(self.root)
        except OSError:
            return True
        return (now.st_dev, now.st_ino) != self.identity

    def open_file(self, path: str) -> tuple[int, os.stat_result, str]:
        """Open a regular file for reading.

        Returns the handle, its stat result and its path inside the root with links resolved; this path is empty if
        the system cannot tell it. Anything but a regular file is not opened: opening a FIFO could block, and opening
        a device could trigger an action.
        """
        given = self._permitted(path)
        try:
            if self._fast is None:
                fd, found = self._open_walked(given)
                return fd, found, self._named(self._canonical(fd))
            handle, place = self._open_fast(self._fast, given.parts, O_PATH)
            try:
                found = os.fstat(handle)
                self._check_handle(given, handle, found, place)
                self._expect_file(given, found.st_mode)
                return self._reopen(handle, given), found, self._named(place or self._canonical(handle))
            finally:
                os.close(handle)
        except OSError as error:
            self._raise_reading(error, given)

    @staticmethod
    def _open_fast(fast: Openat2, parts: tuple[str, ...], flags: int) -> tuple[int, str | None]:
        """Open a path with openat2. Returns the handle and the resolved path; None as path if a link led there."""
        if ".." not in parts:
            try:
                return fast.open(parts, flags, links=False), "/".join(parts)
            except OSError as error:
                if error.errno != errno.ELOOP:
                    raise
        return fast.open(parts, flags), None

    def _reopen(self, handle: int, given: GivenPath) -> int:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            return os.open(f"/proc/self/fd/{handle}", flags)
        except FileNotFoundError:  # no /proc here
            return self._open_walked(given)[0]

    def _open_walked(self, given: GivenPath) -> tuple[int, os.stat_result]:
        self._expect_file(given, self._stat(given, follow=True).st_mode)
        fd = self._walk.open(given.parts, os.O_RDONLY)
        try:
            found = os.fstat(fd)
            self._check_handle(given, fd, found, None)
            if not stat.S_ISREG(found.st_mode):
                raise Conflict(given.given)
        except BaseException:
            os.close(fd)
            raise
        return fd, found

    def _expect_file(self, given: GivenPath, mode: int) -> None:
        if stat.S_ISREG(mode):
            if given.wants_directory:
                raise NotADirectory(given.given)
            return
        if stat.S_ISDIR(mode):
            hidden = is_placeholder(self.fd, "/".join(given.parts))  # for tools a placeholder does not exist
            raise NotFound(given.given) if hidden else IsDirectory(given.given)
        if stat.S_ISLNK(mode):  # the walk followed all links: another process has just created this one
            raise Conflict(given.given)
        raise SpecialFile(given.given, next((name for test, name in _KINDS if test(mode)), "special file"))

    def open_directory(self, path: str) -> int:
        """Open a directory; the caller closes the handle."""
        given = self._permitted(path)
        try:
            fd = self._resolver.open(given.parts, _DIRECTORY)
        except OSError as error:
            try:
                self._raise_reading(error, given)
            except NotFound:
                raise DirectoryNotFound(path) from error
        if self.protected is not None:
            self._check_handle(given, fd, os.fstat(fd), None, close=True)
        return fd

    @contextmanager
    def directory(self, path: str) -> Iterator[int]:
        """Open a directory and close it at the end of the block."""
        fd = self.open_directory(path)
        try:
            yield fd
        finally:
            os.close(fd)

    def open_any_directory(self, path: str) -> int:
        """Open a directory even if it is protected, so that recovery can clean up after a killed process."""
        with faults_for(path):
            return self._resolver.open(self.split(path).parts, _DIRECTORY)

    def stat(self, path: str, *, follow: bool = True) -> os.stat_result:
        """Return the stat result of a path; without `follow`, that of a link itself."""
        given = self._permitted(path)
        try:
            return self._stat(given, follow=follow)
        except OSError as error:
            self._raise_reading(error, given)

    def _raise_reading(self, error: OSError, given: GivenPath) -> NoReturn:
        """Raise the fault that an OSError means to a reader: nothing exists below a file."""
        if error.errno == errno.ENOTDIR:
            with faults_for(given.given):
                try:
                    self._walk.locate_to_read(given.parts).close()
                except NotADirectoryError:  # a component before the last one, or in the target of a link
                    raise NotFound(given.given) from error
        raise_fault(error, given.given)

    def _blocker(self, parts: tuple[str, ...]) -> str | None:
        """Return the part of a path that is no directory although other components follow; None if there is none."""
        for count in range(1, len(parts) + 1):
            try:
                self._walk.locate_to_read(parts[:count]).close()
            except OSError as error:
                return "/".join(parts[: count - 1]) if error.errno == errno.ENOTDIR and count > 1 else None
        return None

    def _stat(self, given: GivenPath, *, follow: bool) -> os.stat_result:
        place = self._walk.locate_to_read(given.parts, follow=follow)
        try:
            found = os.stat(place.name or ".", dir_fd=place.dir_fd, follow_symlinks=False)
            self._check_place(given, place.rel, found)
            return found
        finally:
            place.close()

    # Protected paths are checked three times: as written, after resolving links, and by inode.

    def _permitted(self, path: str) -> GivenPath:
        given = self.split(path)
        if self.protected is not None:
            self.protected.check_name(path, posixpath.normpath("/".join(given.parts)))
        return given

    def _check_handle(
        self, given: GivenPath, fd: int, found: os.stat_result, place: str | None, *, close: bool = False
    ) -> None:
        if self.protected is None:
            return
        try:
            place = self._canonical(fd) if place is None else place
            if place is None:  # no /proc, or another mount: resolve the path again by name
                located = self._walk.locate_to_read(given.parts)
                located.close()
                place = located.rel
            self._check_place(given, place, found)
        except BaseException:
            if close:
                os.close(fd)
            raise

    def _check_place(self, given: GivenPath, place: str, found: os.stat_result | None) -> None:
        if self.protected is not None:
            self.protected.check_name(given.given, place)
            if found is not None:
                self.protected.check_file(given.given, found)

    def locate(self, path: str, *, follow: bool = True, future: bool = False) -> Place:
        """Return the directory and the name that a change of `path` applies to.

        With `follow`, a final link is followed if it stays inside the root; otherwise the change applies to the link
        itself. With `future`, parent directories may be missing.
        """
        return self.locate_with_stat(path, follow=follow, future=future)[0]

    def locate_with_stat(
        self, path: str, *, follow: bool = True, future: bool = False
    ) -> tuple[Place, os.stat_result | None]:
        """Locate a path like `locate`; return the place and the stat result of its entry, None if there is no entry."""
        given = self._permitted(path)
        try:
            place, found = self._locate_fast(given) or self._locate_walked(given, follow=follow, future=future)
        except OSError as error:
            if error.errno != errno.ENOTDIR or (blocker := self._blocker(given.parts)) is None:
                raise_fault(error, path)
            raise (BlockedByFile(path, quote(blocker)) if future else NotFound(path)) from error
        try:
            self._check_place(given, place.target, found)
            if given.wants_directory and found is not None and not stat.S_ISDIR(found.st_mode):
                raise NotADirectory(path)
        except BaseException:
            place.close()
            raise
        return (place._replace(rel=self.shown(place.rel)) if self.mount else place), found

    def shown(self, rel: str) -> str:
        """Return a path inside the root as answers and records have it."""
        return f"{self.mount}/{rel}".rstrip("/") if self.mount else rel

    def _named(self, place: str | None) -> str:
        """Return the resolved path of an open file; empty if the system cannot tell it."""
        return self.shown(place) if place else place or ""

    def _locate_walked(self, given: GivenPath, *, follow: bool, future: bool) -> tuple[Place, os.stat_result | None]:
        place = self._walk.locate(given.parts, follow=follow, future=future)
        try:
            return place, None if place.rest else place.stat()
        except BaseException:
            place.close()
            raise

    def _locate_fast(self, given: GivenPath) -> tuple[Place, os.stat_result | None] | None:
        """Locate a path by one openat2 of its parent. Returns None if a link, a missing parent or `..` needs a walk."""
        if self._fast is None or not given.parts or given.parts[-1] == "..":
            return None
        try:
            fd, parent = self._open_fast(self._fast, given.parts[:-1], _DIRECTORY)
        except FileNotFoundError:
            return None
        parent = self._canonical(fd) if parent is None else parent
        place = Place(fd, given.parts[-1], f"{parent}/{given.parts[-1]}" if parent else given.parts[-1])
        found = place.stat() if parent is not None else None
        if parent is None or (found is not None and stat.S_ISLNK(found.st_mode)):
            os.close(fd)
            return None
        return place, found

    def _canonical(self, fd: int) -> str | None:
        return place_of(fd, self.fd)
