"""Directories that are only there because a sandbox stands on them: marked, so that no listing shows them."""

import os

SPARE = ".handrail-"
"""What the names of files on their way in or out begin with."""

MARK = "user.handrail.placeholder"


def is_placeholder(dir_fd: int, name: str) -> bool:
    try:
        return os.getxattr(f"/proc/self/fd/{dir_fd}/{name}", MARK, follow_symlinks=False) == b"1"
    except (OSError, AttributeError):  # no mark, or a system without marks
        return False


def is_empty_directory(dir_fd: int, name: str) -> bool:
    """Tells a placeholder without its mark: not every file system keeps marks."""
    try:
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError:  # absent, or no directory: whoever reads it says what it is
        return False
    try:
        return not os.listdir(fd)
    finally:
        os.close(fd)
