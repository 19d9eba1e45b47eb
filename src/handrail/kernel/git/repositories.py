"""Finds the git directories and `.git` files of a workspace from git's own records; the tree is not walked."""

import os
import posixpath
import stat
from collections.abc import Iterator
from typing import NamedTuple

from handrail.kernel.fs.small_files import FILE, open_file
from handrail.model.limits import Limits
from handrail.ops.git_names import Index, pointed_to, read_index

_SMALL = 1 << 16
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class GitDirectory(NamedTuple):
    """A git directory beneath the root, and the tree that it belongs to."""

    path: str
    linked: bool = False
    """Whether it is one of a linked worktree, which shares the rest with another."""


class Repositories(NamedTuple):
    directories: list[GitDirectory]
    files: list[str]
    """`.git` files of submodules and linked worktrees."""
    submodules: list[str]
    """The trees that an index names as submodules, with a `.git` or without."""
    unread: list[str]
    """Indexes that are too large to be read, and the first tree beyond the limit."""
    odd: list[tuple[str, tuple[int, ...]]]
    """Indexes that name something outside of their tree, and what each is known by."""


Known = dict[str, tuple[tuple[int, ...], Index | None]]
"""By the path of an index: what it was known by, and what it names (None: too large)."""


def read_plain(dir_fd: int, path: str, most: int) -> bytes | None:
    """Reads a regular file beneath `dir_fd`, no link on the way; None where there is none, or a larger one."""
    try:
        fd = open_file(dir_fd, path, FILE)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            return None
        data = b""
        while len(data) <= most and (more := os.read(fd, most + 1 - len(data))):
            data += more
        return data if len(data) <= most else None
    finally:
        os.close(fd)


def kind_at(dir_fd: int, path: str) -> str:
    """Says what stands at `path`, no link on the way: absent, directory, link, file, special or unreachable."""
    try:
        fd = open_file(dir_fd, path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    except OSError:
        return "unreachable"
    try:
        mode = os.fstat(fd).st_mode
    finally:
        os.close(fd)
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "file" if stat.S_ISREG(mode) else "special"


def below(tree: str, name: str) -> str:
    return f"{tree}/{name}" if tree else name


def find(root_fd: int, root: str, limits: Limits, known: Known | None = None) -> Repositories:
    """Finds them from the top: its worktrees, the submodules in each index, and so on down, as far as the limit."""
    found, waiting, seen = Repositories([], [], [], [], []), [""], set[str]()
    known = {} if known is None else known
    while waiting:
        tree = waiting.pop(0)
        dot_git = below(tree, ".git")
        kind = kind_at(root_fd, dot_git) if tree not in seen else "absent"
        if kind == "absent":
            continue
        seen.add(tree)
        if len(seen) > limits.guarded_repositories:
            found.unread.append(dot_git)
            break
        if kind == "directory":
            found.directories.append(GitDirectory(dot_git))
            waiting += _worktrees(root_fd, root, dot_git, found)
            git_directory = dot_git
        else:  # one that is no file cannot be guarded, as whoever tries will say
            found.files.append(dot_git)
            git_directory = place_of(root_fd, tree, root)
        if git_directory:
            for index in _indexes(root_fd, git_directory):
                names = _names_of(root_fd, index, limits, known)
                if names is None:
                    found.unread.append(index)
                elif not names.plain:
                    found.odd.append((index, known[index][0]))
                trees = [below(tree, link) for link in names.links] if names else []
                found.submodules.extend(trees)
                waiting += trees
    return found


def place_of(root_fd: int, tree: str, root: str) -> str:
    """The git directory that the `.git` file of a tree leads to, beneath the root; empty where it lies elsewhere."""
    place = pointed_to(read_plain(root_fd, below(tree, ".git"), _SMALL) or b"")
    parts = place.split("/")
    while parts and parts[0] == "..":
        parts.pop(0)
    if not place or ".." in parts:  # behind a link `..` would lead elsewhere
        return ""
    found = inside(root, posixpath.join(root, tree, place))
    return found if kind_at(root_fd, found) == "directory" else ""


def inside(root: str, path: str) -> str:
    path = posixpath.normpath(path)
    return path[len(root) + 1 :] if path.startswith(f"{root.rstrip('/')}/") else ""


def _worktrees(root_fd: int, root: str, dot_git: str, found: Repositories) -> Iterator[str]:
    """The trees of the linked worktrees that lie beneath the root."""
    for name in names_in(root_fd, f"{dot_git}/worktrees"):
        own = f"{dot_git}/worktrees/{name}"
        told = (read_plain(root_fd, f"{own}/gitdir", _SMALL) or b"").decode(errors="surrogateescape").strip()
        tree = inside(root, posixpath.join(root, own, posixpath.dirname(told))) if told else ""
        if tree and kind_at(root_fd, f"{tree}/.git") == "file":
            found.directories.append(GitDirectory(own, linked=True))
            yield tree


def open_directory(root_fd: int, path: str) -> int:
    """Opens a directory, no link on the way. One that its owner cannot list, git can still use: it is opened up."""
    try:
        return open_file(root_fd, path, _DIRECTORY)
    except PermissionError:
        fd = open_file(root_fd, path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            found = os.fstat(fd)
            if found.st_uid != os.geteuid() or not stat.S_ISDIR(found.st_mode):
                raise
            os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(found.st_mode) | stat.S_IRWXU)
        finally:
            os.close(fd)
        return open_file(root_fd, path, _DIRECTORY)


def names_in(root_fd: int, path: str) -> list[str]:
    """The names in a directory, no link on the way; none where there is no such directory."""
    try:
        fd = open_directory(root_fd, path)
    except OSError:
        return []
    try:
        return sorted(os.listdir(fd))
    finally:
        os.close(fd)


def _indexes(root_fd: int, git_directory: str) -> list[str]:
    names = names_in(root_fd, git_directory)
    return [f"{git_directory}/{name}" for name in names if name == "index" or name.startswith("sharedindex.")]


def _names_of(root_fd: int, index: str, limits: Limits, known: Known) -> Index | None:
    try:
        about = os.stat(index, dir_fd=root_fd, follow_symlinks=False)
    except OSError:  # it went again
        return Index([])
    sign = (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    if index not in known or known[index][0] != sign:
        found = read_index(read_plain(root_fd, index, limits.edit_bytes) or b"")
        too_large = len(found.links) > limits.scan_directories or about.st_size > limits.edit_bytes
        known[index] = sign, None if too_large else found
    return known[index][1]
