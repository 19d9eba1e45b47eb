"""Takes snapshots of directories, to compare them."""

import os
import stat
from typing import Any

Tree = dict[str, tuple[Any, ...]]


def snapshot(top: str | os.PathLike[str], *, precise: bool = False) -> Tree:
    """Return kind, mode and content of every name below `top`; if `precise`, also inode and time of change."""
    found: Tree = {}
    _collect(os.fspath(top), "", found, precise=precise)
    return found


def _collect(top: str, rel: str, found: Tree, *, precise: bool) -> None:
    for entry in os.scandir(os.path.join(top, rel)):
        name = os.path.join(rel, entry.name)
        about = entry.stat(follow_symlinks=False)
        mark = (about.st_ino, about.st_mtime_ns) if precise else ()
        found[name] = (*_contents(entry, about), *mark)
        if entry.is_dir(follow_symlinks=False):
            _collect(top, name, found, precise=precise)


def _contents(entry: "os.DirEntry[str]", about: os.stat_result) -> tuple[Any, ...]:
    mode = stat.S_IMODE(about.st_mode)
    if entry.is_symlink():
        return ("link", os.readlink(entry.path))
    if not entry.is_file(follow_symlinks=False):
        return (stat.filemode(about.st_mode)[0], mode)
    if about.st_size > 1 << 30:
        return ("sparse", mode, about.st_size)
    with open(entry.path, "rb") as file:
        return ("file", mode, file.read())
