"""Reads whole files, pages of large files, and directories. Opens all of them through the boundary."""

import os
import stat
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING

from handrail.kernel.fs.boundary import FsBoundary, raise_fault
from handrail.kernel.fs.line_index import LineIndex
from handrail.kernel.fs.placeholder import is_placeholder
from handrail.model.faults import Conflict, IsDirectory, NotADirectory, NotFound, PathFault, TooLarge
from handrail.model.files import File, FileEntry, Listing, Node, Page, Version, kind_of
from handrail.model.limits import Limits
from handrail.model.paths import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CHUNK = 1 << 20


class Reader:
    """Reads files and directories of a workspace, within the limits."""

    def __init__(self, boundary: FsBoundary, limits: Limits) -> None:
        self.boundary, self._limits, self._lines = boundary, limits, LineIndex()

    def read(self, path: str) -> File:
        """Return a whole file. Raises `TooLarge` if it exceeds the limit for edits."""
        fd, found, place = self.boundary.open_file(path)
        try:
            size, limit = found.st_size, self._limits.edit_bytes
            if size > limit:
                raise TooLarge(path, size, limit)
            data = os.read(fd, size + 1)
            while len(data) != size and len(data) <= limit and (more := os.read(fd, _CHUNK)):
                data += more  # a short read, or the file grows meanwhile
            if len(data) > limit:
                raise TooLarge(path, len(data), limit)
            return File(path, data, Version.of(found), stat.S_IMODE(found.st_mode), place)
        except OSError as error:
            raise_fault(error, path)
        finally:
            os.close(fd)

    def read_if_there(self, path: str) -> File | None:
        """Return a whole file; None if there is none."""
        try:
            return self.read(path)
        except NotFound:
            return None

    def node(self, path: str) -> Node | None:
        """Return the entry under a name with its content, a link as a link; None if there is no such entry.

        Returns None also if the path leads through a link: the entry then has another name.
        """
        try:
            place, found = self.boundary.locate_with_stat(path, follow=False)
        except (NotFound, NotADirectory):
            return None
        try:
            if found is None or place.target != unquote(path):
                return None
            kind, data = kind_of(found.st_mode), b""
            if kind == "link":
                data = os.fsencode(os.readlink(place.name, dir_fd=place.dir_fd))
            elif kind == "file":
                data = self.read(quote(place.target)).data
            return Node(kind, data, stat.S_IMODE(found.st_mode), Version.of(found))
        except OSError as error:
            raise_fault(error, path)
        finally:
            place.close()

    def page(self, path: str, first: int = 1, count: int | None = None, room: int | None = None) -> Page:
        """Return lines `first`, `first` + 1, … of a file of any size, at most `room` bytes; uses constant memory."""
        fd, found, place = self.boundary.open_file(path)
        try:
            room, seconds = room or self._limits.page_bytes, self._limits.page_seconds
            return self._lines.page(fd, found, first, count, room, place, seconds)
        except OSError as error:
            raise_fault(error, path)
        finally:
            os.close(fd)

    def head(self, path: str, count: int) -> tuple[bytes, int]:
        """Return the first `count` bytes of a file, and its size."""
        fd, found, _ = self.boundary.open_file(path)
        try:
            return os.read(fd, count), found.st_size
        finally:
            os.close(fd)

    def entries(self, path: str) -> list[FileEntry]:
        """Return the entries of a directory, sorted by name, without protected files and placeholders.

        A link that leads to something inside the root has the kind of its target.
        """
        with self._scanned(path) as (fd, listed):
            entries = [entry for each in listed if (entry := self._entry(path, each))]
            entries = [e for e in entries if not (e.name[0] == "." and e.is_directory and is_placeholder(fd, e.name))]
        entries.sort(key=itemgetter(0))
        return entries

    def listing(self, path: str) -> Listing:
        """Return the names in a directory by kind. Only links and special files are looked at one by one."""
        directories, files, others = list[str](), list[str](), list[os.DirEntry[str]]()
        with self._scanned(path) as (fd, listed):
            for each in listed:
                if each.is_file(follow_symlinks=False):
                    files.append(each.name)
                elif not each.is_dir(follow_symlinks=False):
                    others.append(each)
                elif each.name[0] != "." or not is_placeholder(fd, each.name):
                    directories.append(each.name)
            entries = [entry for each in others if (entry := self._entry(path, each))]
        return Listing(sorted(directories), sorted(files), sorted(entries))

    def shown_names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted, without protected files and placeholders; look at no entry."""
        with self._scanned(path) as (fd, listed):
            return sorted(each.name for each in listed if each.name[0] != "." or not is_placeholder(fd, each.name))

    @contextmanager
    def _scanned(self, path: str) -> "Iterator[tuple[int, Iterable[os.DirEntry[str]]]]":
        fd = self.boundary.open_directory(path)
        try:
            with os.scandir(fd) as listed:
                yield fd, self._shown(path, listed)
        except OSError as error:
            raise_fault(error, path)
        finally:
            os.close(fd)

    def names(self, path: str) -> list[str]:
        """Return all names in a directory, protected ones and placeholders included."""
        fd = self.boundary.open_directory(path)
        try:
            return sorted(os.listdir(fd))
        finally:
            os.close(fd)

    def _shown(self, path: str, listed: "Iterable[os.DirEntry[str]]") -> "Iterable[os.DirEntry[str]]":
        """Return the entries without the protected ones."""
        protected = self.boundary.protected
        if protected is None:
            return listed
        place = self.boundary.locate(path)
        place.close()
        stem = f"{place.rel}/" if place.rel else ""
        return (each for each in listed if not protected.hides(stem + each.name))

    def _entry(self, directory: str, each: "os.DirEntry[str]") -> FileEntry | None:
        try:
            found = each.stat(follow_symlinks=False)
        except FileNotFoundError:  # deleted after the directory was read
            return None
        if not each.is_symlink():
            return FileEntry(each.name, kind_of(found.st_mode), found.st_size, found.st_mtime_ns)
        try:
            target = self.boundary.stat(quote(f"{unquote(directory)}/{each.name}"))
        except PathFault:
            return FileEntry(each.name, "link", found.st_size, found.st_mtime_ns, is_link=True)
        return FileEntry(each.name, kind_of(target.st_mode), target.st_size, target.st_mtime_ns, is_link=True)

    @staticmethod
    def entry_at(dir_fd: int, name: str) -> FileEntry | None:
        """Return one entry of an open directory, a link as a link; None if it was deleted."""
        try:
            found = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        except OSError:
            return None
        return FileEntry(name, kind_of(found.st_mode), found.st_size, found.st_mtime_ns)

    def stat(self, path: str, *, follow: bool = True) -> FileEntry:
        """Return name, kind, size and time of a path; without `follow`, those of a link itself."""
        found = self.boundary.stat(path, follow=follow)
        name = (self.boundary.split(path).parts or ("",))[-1]
        return FileEntry(name, kind_of(found.st_mode), found.st_size, found.st_mtime_ns)

    def kind(self, path: str) -> str | None:
        """Return the kind of the entry at a path, links followed; None if there is none."""
        try:
            return self.stat(path).kind
        except NotFound:
            return None
        except (IsDirectory, NotADirectory, Conflict):
            return None
