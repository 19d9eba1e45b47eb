"""Recognizes placeholders: empty directories that a sandbox creates as mount points, and that no listing shows."""

import os

SPARE = ".handrail-"
"""The prefix of temporary names: new files before they are published, and old files before they are removed."""

MARK = "user.handrail.placeholder"


def is_placeholder(dir_fd: int, name: str) -> bool:
    """Return whether a directory has the mark of a placeholder."""
    try:
        return os.getxattr(f"/proc/self/fd/{dir_fd}/{name}", MARK, follow_symlinks=False) == b"1"
    except (OSError, AttributeError):  # no mark, or a system without extended attributes
        return False


def is_empty_directory(dir_fd: int, name: str) -> bool:
    """Return whether a name is an empty directory, as a placeholder is on a file system without extended attributes."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError:  # not found, or not a directory: the caller that reads it reports that
        return False
    try:
        return not os.listdir(fd)
    finally:
        os.close(fd)
