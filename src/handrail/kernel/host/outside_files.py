"""Reads and writes files outside workspaces, for a user who copies files into a workspace or out of it."""

import os
import stat

from handrail.kernel.host.state_dir import write_whole


def files_below(path: str) -> list[str]:
    """Return the regular files below a directory, relative to it; of a file, an empty name. Raises OSError."""
    if not stat.S_ISDIR(os.stat(path).st_mode):
        return [""]
    found, todo = list[str](), [""]
    while todo:
        stem = todo.pop()
        with os.scandir(os.path.join(path, stem)) as listed:
            for entry in listed:
                if entry.is_dir(follow_symlinks=False):
                    todo.append(f"{stem}{entry.name}/")
                elif entry.is_file(follow_symlinks=False):
                    found.append(f"{stem}{entry.name}")
    return sorted(found)


def read_outside(path: str) -> tuple[bytes, int]:
    """Return the content of a regular file and its permission bits. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(22, "it is not a regular file", path)
        return file.read(), stat.S_IMODE(mode) & 0o777


def make_directory(path: str) -> None:
    """Make a directory and its missing parents. Raises OSError."""
    os.makedirs(path, exist_ok=True)


def write_outside(path: str, data: bytes, mode: int) -> None:
    """Replace a file, or a link, completely or not at all; make missing directories. Raises OSError."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    write_whole(path, data, sync=False)
    os.chmod(path, mode)
