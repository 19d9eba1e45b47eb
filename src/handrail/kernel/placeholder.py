"""Directories that are only there because a sandbox stands on them: marked, so that no listing shows them."""

import os

MARK = "user.handrail.placeholder"


def is_placeholder(dir_fd: int, name: str) -> bool:
    try:
        return os.getxattr(f"/proc/self/fd/{dir_fd}/{name}", MARK, follow_symlinks=False) == b"1"
    except (OSError, AttributeError):  # no mark, or a system without marks
        return False
