"""Finds the git directories and `.git` files of a workspace in git's own files, without walking the tree."""

import os
import posixpath
import stat
import time
from collections.abc import Collection, Iterator
from typing import NamedTuple

from handrail.kernel.fs.small_files import FILE, open_file
from handrail.model.limits import Limits
from handrail.ops.git_index import Index, read_index
from handrail.ops.git_names import first_line, pointed_to

_SMALL = 1 << 16
TICK_NS = 20_000_000
"""Two changes within this time may have the same timestamp."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class GitDirectory(NamedTuple):
    """Holds the path of a git directory in the root."""

    path: str
    linked: bool = False
    """True if it belongs to a linked worktree, which shares most files with the main repository."""


class Repositories(NamedTuple):
    """Holds the git directories and `.git` files of a workspace."""

    directories: list[GitDirectory]
    files: list[str]
    """`.git` files of submodules and linked worktrees."""
    submodules: list[str]
    """The trees that an index names as submodules, with or without a `.git`."""
    sparse: list[str]
    """Directories of which an index does not name the entries: every tree in them may be a submodule."""
    unread: list[str]
    """Indexes that are too large to read, and the `.git` of the first tree beyond the limit."""
    odd: list[tuple[str, tuple[int, ...]]]
    """Indexes that name a path outside of their tree, each with its mark."""
    opaque: list[str]
    """Trees whose submodules are not known: the index is odd or too large, or there are too many trees."""


class _Read(NamedTuple):
    """Holds what one index contained."""

    mark: tuple[int, ...]
    """Identity, size and times of the file."""
    names: Index | None
    """None if it is too large."""
    sure: bool
    """True if the file was old enough when it was read: a later change has another mark."""


Known = dict[str, _Read]
"""The indexes that were read, by path."""


def read_plain(dir_fd: int, path: str, most: int) -> bytes | None:
    """Read a regular file in `dir_fd` without following links; return None if it is missing or larger than `most`."""
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
    """Return the kind of an entry, without following links: absent, directory, link, file, special or unreachable."""
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
    """Return the path of a name in a tree; the tree of the root is empty."""
    return f"{tree}/{name}" if tree else name


def find(root_fd: int, root: str, limits: Limits, known: Known | None = None) -> Repositories:
    """Find the repositories of a workspace, up to the limit.

    Starts with the root, and continues with the linked worktrees and the submodules that each index names.
    """
    found, waiting, seen = Repositories([], [], [], [], [], [], []), [""], set[str]()
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
            found.opaque.extend((tree, *waiting))
            break
        if kind == "directory":
            found.directories.append(GitDirectory(dot_git))
            waiting += _worktrees(root_fd, root, dot_git, found)
            git_directory = dot_git
        else:  # if it is not a file, guarding it fails later, and the sandbox reports that
            found.files.append(dot_git)
            git_directory = place_of(root_fd, tree, root)
            waiting += _add_apart(root_fd, root, git_directory, found) if git_directory else ()
        if git_directory:
            waiting += _submodules(root_fd, tree, git_directory, limits, known, found)
    return found


def _submodules(
    root_fd: int, tree: str, git_directory: str, limits: Limits, known: Known, found: Repositories
) -> list[str]:
    """Return the submodules that the indexes of a tree name, and add them and the odd indexes to `found`."""
    trees: list[str] = []
    waiting = [f"{git_directory}/index"]
    while waiting:
        index = waiting.pop()
        names = _names_of(root_fd, index, limits, known)
        if names is None or not names.plain:
            found.opaque.append(tree)
        if names is None:
            found.unread.append(index)
            continue
        if not names.plain:
            found.odd.append((index, known[index].mark))
        trees += [below(tree, link) for link in names.links]
        found.sparse.extend(below(tree, each) for each in names.sparse)
        if names.base and index.endswith("/index"):  # git reads no base of a base
            waiting.append(f"{git_directory}/sharedindex.{names.base}")
    found.submodules.extend(trees)
    return trees


def _add_apart(root_fd: int, root: str, place: str, found: Repositories) -> list[str]:
    """Add a git directory that lies apart from its tree, and the common directory that it names, to `found`.

    Returns the trees of its linked worktrees.
    """
    common, trees = common_of(root_fd, root, place), list[str]()
    for each in dict.fromkeys((common or place, place)):
        if not is_covered(each, [known.path for known in found.directories]):
            linked = common not in ("", place) and each == place  # the placeholder names the directory itself
            found.directories.append(GitDirectory(each, linked))
            trees += () if linked else _worktrees(root_fd, root, each, found)
    return trees


def is_covered(place: str, guarded: Collection[str]) -> bool:
    """Return whether the guard of some git directories covers this one: it is one of them, or a part of one."""
    parts = tuple(f"{each}/{name}/" for each in guarded for name in ("modules", "worktrees"))
    return bool(place) and (place in guarded or place.startswith(parts))


def place_of(root_fd: int, tree: str, root: str) -> str:
    """Return the git directory that the `.git` file or link of a tree leads to; empty if it is not in the root."""
    dot_git = below(tree, ".git")
    if kind_at(root_fd, dot_git) == "link":
        target = _real(root, posixpath.join(root, dot_git))
        if kind_at(root_fd, target) == "directory":
            return target
        content = read_plain(root_fd, target, _SMALL)
    else:
        content = read_plain(root_fd, dot_git, _SMALL)
    place = pointed_to(content or b"")
    found = _real(root, posixpath.join(root, tree, place)) if place else ""
    return found if found and kind_at(root_fd, found) == "directory" else ""


def common_of(root_fd: int, root: str, directory: str) -> str:
    """Return the directory in which git finds the settings and hooks of another one; empty if it is not in the root."""
    place = first_line(read_plain(root_fd, f"{directory}/commondir", _SMALL) or b"")
    return _real(root, posixpath.join(root, directory, place)) if place else ""


def inside(root: str, path: str) -> str:
    """Return an absolute path relative to the root; empty if it is not in the root."""
    path = posixpath.normpath(path)
    return path[len(root) + 1 :] if path.startswith(f"{root.rstrip('/')}/") else ""


def _real(root: str, path: str) -> str:
    """Follow the links in a path as git does, and return it relative to the root; empty if it leads out."""
    try:
        return inside(os.path.realpath(root), os.path.realpath(path))
    except OSError:  # the path is too long
        return ""


def _worktrees(root_fd: int, root: str, dot_git: str, found: Repositories) -> Iterator[str]:
    """Yield the trees of the linked worktrees in the root, and add their git directories to `found`."""
    for name in names_in(root_fd, f"{dot_git}/worktrees"):
        own = f"{dot_git}/worktrees/{name}"
        dot_git_file = first_line(read_plain(root_fd, f"{own}/gitdir", _SMALL) or b"").strip()
        tree = inside(root, posixpath.join(root, own, posixpath.dirname(dot_git_file))) if dot_git_file else ""
        if tree and kind_at(root_fd, f"{tree}/.git") == "file":
            found.directories.append(GitDirectory(own, linked=True))
            yield tree


def open_directory(root_fd: int, path: str) -> int:
    """Open a directory without following links.

    If its owner has no permission to list it, add the permission first: git can use such a directory, too.
    """
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
    """Return the names in a directory, without following links; none if the directory cannot be opened."""
    try:
        fd = open_directory(root_fd, path)
    except OSError:
        return []
    try:
        return sorted(os.listdir(fd))
    finally:
        os.close(fd)


def _names_of(root_fd: int, index: str, limits: Limits, known: Known) -> Index | None:
    """Return the names in an index; None if it is too large. Reads it only if it changed."""
    try:
        about = os.stat(index, dir_fd=root_fd, follow_symlinks=False)
    except OSError:  # deleted meanwhile
        return Index([])
    mark = (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    if index not in known or known[index].mark != mark or not known[index].sure:
        sure = about.st_ctime_ns + TICK_NS < time.time_ns()
        too_large = about.st_size > limits.edit_bytes
        content = read_plain(root_fd, index, limits.edit_bytes)
        unread = Index([], plain=too_large or not stat.S_ISREG(about.st_mode))  # the sweep finds other kinds
        found = unread if content is None else read_index(content)
        too_large |= len(found.links) + len(found.sparse) > limits.scan_directories
        known[index] = _Read(mark, None if too_large else found, sure)
    return known[index].names
