"""Gives a prepared file its name. Keeps the old file for a rollback, and detects changes by other processes."""

import errno
import os
import stat
from contextlib import suppress

from handrail.kernel.fs.placeholder import is_placeholder
from handrail.kernel.fs.resolver import Place
from handrail.kernel.fs.syscalls import exchange_names, rename_to_free_name
from handrail.kernel.write.intent_log import Step
from handrail.kernel.write.subtree import is_still
from handrail.model.faults import Conflict
from handrail.model.files import Node, Version

_NO_EXCHANGE = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)


def publish(step: Step, fd: int, found: os.stat_result | None, path: str, *, alone: bool) -> tuple[str, ...]:
    """Carry out one step in its open directory; return the second names to remove afterwards.

    `found` is the old entry as the preparation found it. Raises `Conflict` if another process has changed it.
    """
    if found is None:
        _create(step, fd)
        return (step.temp,)
    now = Place(fd, step.name, step.name).stat()
    if now is None or Version.of(now) != Version.of(found):
        raise Conflict(path)
    if step.removes:
        _keep(step, fd, found, path, alone=alone)
        with suppress(FileNotFoundError):  # on a file system without hard links, _keep has already moved it
            os.unlink(step.name, dir_fd=fd)
        return (step.old,)
    if _exchange(step, fd, found, path):
        return (step.temp,)
    _keep(step, fd, found, path, alone=alone)
    os.rename(step.temp, step.name, src_dir_fd=fd, dst_dir_fd=fd)
    return (step.old,)


def swap_directory(step: Step, fd: int, found: os.stat_result, base: Node, path: str) -> None:
    """Replace a file or link by a directory, or the reverse; keep the whole old entry under a second name."""
    now = Place(fd, step.name, step.name).stat()
    if now is None or Version.of(now) != Version.of(found):
        raise Conflict(path)
    aside = step.temp
    if not _exchange(step, fd, found, path):
        aside = step.old
        os.rename(step.name, aside, src_dir_fd=fd, dst_dir_fd=fd)
        rename_to_free_name(step.temp, step.name, fd)
    if base.kind == "directory" and not is_still(fd, aside, base):
        raise Conflict(path)  # another process has just changed something in it


def _exchange(step: Step, fd: int, found: os.stat_result, path: str) -> bool:
    """Exchange the old and the new file, so that a file that another process has just saved is found and not lost.

    Returns False if the file system cannot exchange names.
    """
    try:
        exchange_names(step.temp, step.name, fd)
    except OSError as error:
        if error.errno not in _NO_EXCHANGE:
            raise
        return False
    replaced = Place(fd, step.temp, step.temp).stat()
    if replaced is None or _content_of(replaced) != _content_of(found):
        raise Conflict(path)  # the rollback gives the file its name back
    return True


def _content_of(found: os.stat_result) -> tuple[int, ...]:
    """Return the facts about a file that a rename does not change."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _keep(step: Step, fd: int, found: os.stat_result, path: str, *, alone: bool) -> None:
    """Give the old file a second name, so that a rollback can restore it.

    A link that goes is moved: in a layer, a second name of a link has another inode number.
    """
    if step.removes and stat.S_ISLNK(found.st_mode):
        os.rename(step.name, step.old, src_dir_fd=fd, dst_dir_fd=fd)
        _expect_kept(step, fd, found, path)
        return
    try:
        os.link(step.name, step.old, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if alone and not step.removes:
            return  # one rename is atomic, and moving the file first would leave a moment without a file
        os.rename(step.name, step.old, src_dir_fd=fd, dst_dir_fd=fd)
    _expect_kept(step, fd, found, path)


def _expect_kept(step: Step, fd: int, found: os.stat_result, path: str) -> None:
    kept = Place(fd, step.old, step.old).stat()
    if kept is None or (kept.st_dev, kept.st_ino) != (found.st_dev, found.st_ino):
        raise Conflict(path)  # another process has just replaced the file


def _create(step: Step, fd: int) -> None:
    """Publish a file under a name that does not exist; if several processes try, one wins."""
    try:
        # If an attacker replaces the temporary file by a link, following it would bring in a file from outside.
        os.link(step.temp, step.name, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    except FileExistsError:
        if not is_placeholder(fd, step.name):
            raise
        _take_over(step, fd)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        rename_to_free_name(step.temp, step.name, fd)


def _take_over(step: Step, fd: int) -> None:
    """Publish a file in place of a placeholder. The name exists at every moment, so no command can create it."""
    exchange_names(step.temp, step.name, fd)
    try:
        os.rmdir(step.temp, dir_fd=fd)
    except OSError:
        exchange_names(step.temp, step.name, fd)  # not an empty directory, so not a placeholder
        raise
