"""Moves entries of a git directory into a directory that git does not read, and back."""

import os
import stat

from handrail.kernel.git.repositories import kind_at, open_directory, read_plain
from handrail.ops.git_names import ASIDE

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_NAME = 240
"""The longest name in bytes that is kept: the system allows 255, and a number may follow."""


class Aside:
    """Moves entries of one git directory. Raises OSError if one cannot be moved."""

    def __init__(self, root_fd: int, directory: str) -> None:
        self._path, self._top = f"{directory}/{ASIDE}", _open_to_change(root_fd, directory)
        try:
            self._fd = _aside_in(self._top)
        except OSError:
            os.close(self._top)
            raise
        self._taken, self._numbers = set(os.listdir(self._fd)), dict[str, int]()

    def move(self, name: str) -> str:
        """Move an entry, and return its new path. `name` is its path in the git directory."""
        parent, _, last = name.rpartition("/")
        source = _open_to_change(self._top, parent) if parent else os.dup(self._top)
        try:
            new = self._free_name(last)
            _rename(source, last, self._fd, new)
        finally:
            os.close(source)
        self._taken.add(new)
        return f"{self._path}/{new}"

    def _free_name(self, last: str) -> str:
        stem = last if len(os.fsencode(last)) <= _LONGEST_NAME else "entry"
        number = self._numbers.get(stem, 0)
        while (new := f"{stem}.{number}" if number else stem) in self._taken:
            number += 1
        self._numbers[stem] = number
        return new

    def put_back(self, kept: str, name: str) -> None:
        """Move an entry back to its name at the top of the git directory, if that name does not exist."""
        if kind_at(self._fd, kept) != "absent" and kind_at(self._top, name) == "absent":
            _rename(self._fd, kept, self._top, name)

    def close(self) -> None:
        os.close(self._fd)
        os.close(self._top)


def rename_submodule(root_fd: int, tree: str) -> str:
    """Rename the `.git` of a submodule, so that git ignores it; return its new path."""
    fd = _open_to_change(root_fd, tree)
    try:
        taken = set(os.listdir(fd))
        new = next(new for n in range(len(taken) + 1) if (new := f".git.{ASIDE}{n or ''}") not in taken)
        os.rename(".git", new, src_dir_fd=fd, dst_dir_fd=fd)
    finally:
        os.close(fd)
    return f"{tree}/{new}"


def head_of(root_fd: int, directory: str) -> str:
    """Return the content of HEAD. If it has changed, an unfinished operation does not apply any more."""
    return (read_plain(root_fd, f"{directory}/HEAD", 4096) or b"").decode(errors="surrogateescape")


def _open_to_change(dir_fd: int, path: str) -> int:
    """Open a directory, and let its owner change it: a command may have taken the permission away."""
    fd = open_directory(dir_fd, path)
    try:
        about = os.fstat(fd)
        if about.st_uid == os.geteuid() and about.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            os.fchmod(fd, stat.S_IMODE(about.st_mode) | stat.S_IRWXU)
    except OSError:
        os.close(fd)
        raise
    return fd


def _rename(source: int, name: str, target: int, new: str) -> None:
    """Rename an entry. To move a directory, its owner needs the permission to change the directory itself."""
    try:
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
    except PermissionError:
        os.close(_open_to_change(source, name))
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)


def _aside_in(top: int) -> int:
    """Open the directory for offences in a git directory, and create it if it is missing."""
    try:
        os.mkdir(ASIDE, 0o755, dir_fd=top)
    except FileExistsError:
        return _open_to_change(top, ASIDE)
    aside, owner = os.open(ASIDE, _DIRECTORY, dir_fd=top), os.fstat(top)
    if os.geteuid() == 0 and owner.st_uid != 0:
        os.chown(aside, owner.st_uid, owner.st_gid)
    return aside
