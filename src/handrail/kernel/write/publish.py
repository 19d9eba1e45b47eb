"""Giving a prepared file its name, so that what stands there can come back and nobody's work is lost."""

import errno
import os
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
    """Carry out one step in its open directory, where `found` stood when it was prepared. Returns the names to drop."""
    if found is None:
        _create(step, fd)
        return (step.temp,)
    now = Place(fd, step.name, step.name).stat()
    if now is None or Version.of(now) != Version.of(found):
        raise Conflict(path)
    if step.removes:
        _keep(step, fd, found, path, alone=alone)
        with suppress(FileNotFoundError):  # where hard links are not to be had, keeping has moved it already
            os.unlink(step.name, dir_fd=fd)
        return (step.old,)
    if _exchange(step, fd, found, path):
        return (step.temp,)
    _keep(step, fd, found, path, alone=alone)
    os.rename(step.temp, step.name, src_dir_fd=fd, dst_dir_fd=fd)
    return (step.old,)


def turn(step: Step, fd: int, found: os.stat_result, base: Node, path: str) -> None:
    """Put a directory in the place of a file or a link, or one of these in its place; what stood there stays whole."""
    now = Place(fd, step.name, step.name).stat()
    if now is None or Version.of(now) != Version.of(found):
        raise Conflict(path)
    aside = step.temp
    if not _exchange(step, fd, found, path):
        aside = step.old
        os.rename(step.name, aside, src_dir_fd=fd, dst_dir_fd=fd)
        rename_to_free_name(step.temp, step.name, fd)
    if base.kind == "directory" and not is_still(fd, aside, base):
        raise Conflict(path)  # somebody put something into it at the last moment


def _exchange(step: Step, fd: int, found: os.stat_result, path: str) -> bool:
    """Let old and new change places, so that what somebody else put there meanwhile is met and not lost.

    False where the file system cannot.
    """
    try:
        exchange_names(step.temp, step.name, fd)
    except OSError as error:
        if error.errno not in _NO_EXCHANGE:
            raise
        return False
    met = Place(fd, step.temp, step.temp).stat()
    if met is None or _content_of(met) != _content_of(found):
        raise Conflict(path)  # rolling back gives it its name again
    return True


def _content_of(found: os.stat_result) -> tuple[int, ...]:
    """What a file is known by that a new name does not change."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _keep(step: Step, fd: int, found: os.stat_result, path: str, *, alone: bool) -> None:
    """Give what is about to go a second name, so that it can come back."""
    try:
        os.link(step.name, step.old, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if alone and not step.removes:
            return  # one rename is whole in itself, and moving the file first would let readers find none
        os.rename(step.name, step.old, src_dir_fd=fd, dst_dir_fd=fd)
    kept = Place(fd, step.old, step.old).stat()
    if kept is None or (kept.st_dev, kept.st_ino) != (found.st_dev, found.st_ino):
        raise Conflict(path)  # exchanged at the last moment


def _create(step: Step, fd: int) -> None:
    """Publish under a name that must be free: of many creators one wins."""
    try:
        # Were a link planted in the temporary's place, following it would bring a file from outside in.
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
    """Publish where a sandbox keeps the name free: at no moment could a command create it."""
    exchange_names(step.temp, step.name, fd)
    try:
        os.rmdir(step.temp, dir_fd=fd)
    except OSError:
        exchange_names(step.temp, step.name, fd)  # it is no empty directory: nothing that a sandbox stands on
        raise
