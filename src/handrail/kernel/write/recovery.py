"""Putting right what a commit left: roll back one that is not done, finish one that is. Every step can be repeated."""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Literal

from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.resolver import Place, exchange_names
from handrail.kernel.journal.journal import Journal
from handrail.kernel.write.intent_log import Intent, Step
from handrail.kernel.write.subtree import remove
from handrail.model.faults import AccessDenied, LinkLoop, NotADirectory, NotFound, OutsideRoot, ProtectedPath
from handrail.model.paths import quote

_DISK_FAILS = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
_GONE = (NotFound, NotADirectory, OutsideRoot, LinkLoop)
_NONE_HELD: Mapping[str, int] = MappingProxyType({})


class Recovery:
    def __init__(self, boundary: FsBoundary, journal: Journal, *, sync: bool) -> None:
        self._boundary, self._journal, self._sync = boundary, journal, sync

    def claim(self, intent: Intent) -> bool:
        """Whether a killed commit was made in the directory that is open here.

        A device number changes from mount to mount and an inode number is used again, so that it is known by its files:
        those that the commit wrote, and those that it found. A copy has files of its own; steps in one are left out.
        """
        here = os.fstat(self._boundary.fd)
        if intent.root[1] != here.st_ino:
            return False
        traces = [(self._trace(step), step) for step in intent.steps]
        intent.steps = [step for trace, step in traces if trace != "strange"]
        if any(trace == "known" for trace, _ in traces):
            return True
        traceless = intent.done or intent.begun or not any(step.identity or step.found for _, step in traces)
        return intent.root[0] == here.st_dev and traceless and len(intent.steps) == len(traces)

    def _trace(self, step: Step) -> Literal["known", "strange", "none"]:
        try:
            fd = self._boundary.open_any_directory(quote(step.directory) or ".")
        except (*_GONE, AccessDenied):
            return "none"
        try:
            now, temp, old = _standing(step, fd)
        finally:
            os.close(fd)
        if any(_is(mark, each) for mark in (step.identity, step.found) for each in (now, temp, old)):
            return "known"
        if step.identity is None and temp is not None:
            return "known"  # it was not finished, so that nothing of the person's can be in it
        return "none" if temp is None and old is None else "strange"

    def roll_back(self, intent: Intent, held: Mapping[str, int] = _NONE_HELD) -> None:
        """A directory that is still held is the right one wherever it was moved to; the others are found by name."""
        stands = intent.done
        if not intent.done:
            intent.begun = True
            with suppress(OSError):  # a full disk: all the more must be taken away
                intent.save(sync=False)
            for step in reversed(intent.steps):
                stands |= self._in_directory(step, self._restore, held)
        for step in intent.steps:
            self._in_directory(step, self.drop_spares, held)
        for rel in intent.gone if stands else reversed(intent.made):
            self.remove_if_empty(rel)
        if stands:
            self.remember(intent)
        intent.end()

    def remember(self, intent: Intent, *, again: bool = True) -> None:
        """Enter in the journal what was done, once. Only a configuration that demands it lets this fail."""
        if not intent.line:
            return
        enter = self._journal.ensure if again else self._journal.append
        try:
            enter(intent.line.encode())
        except OSError as error:
            if self._journal.mode == "required":
                raise
            self._journal.trouble = error.strerror or str(error)

    def _in_directory(self, step: Step, act: Callable[[Step, int], bool], held: Mapping[str, int]) -> bool:
        try:
            kept = held.get(step.directory)
            fd = os.dup(kept) if kept is not None else self._boundary.open_any_directory(quote(step.directory) or ".")
        except _GONE:
            return False  # the directory was taken away, and all that was in it
        try:
            stands = act(step, fd)
            if self._sync and act == self._restore:
                os.fsync(fd)
        finally:
            os.close(fd)
        return stands

    @staticmethod
    def _restore(step: Step, fd: int) -> bool:
        """Whether the new file stays: one that was renamed over the old, where no second name could be had."""
        now, temp, old = _standing(step, fd)
        ours = _is(step.identity, now)
        if ours and temp is not None and not _is(step.identity, temp):
            exchange_names(step.temp, step.name, fd)  # it may be a directory by now, which no rename puts over a file
            return False
        if old is not None and (now is None or ours):
            if ours and step.turns:  # no rename puts a directory over a file, or a file over a directory
                os.rename(step.name, step.temp, src_dir_fd=fd, dst_dir_fd=fd)
            os.rename(step.old, step.name, src_dir_fd=fd, dst_dir_fd=fd)
            return False
        if ours and step.creates:
            os.unlink(step.name, dir_fd=fd)
            return False
        return ours

    @staticmethod
    def drop_spares(step: Step, fd: int) -> bool:
        drop((step.temp, step.old), fd, whole=step.turns)
        return False

    def remove_if_empty(self, rel: str) -> None:
        with suppress(*_GONE, ProtectedPath):
            place = self._boundary.locate(quote(rel), follow=False)
            try:
                os.rmdir(place.name, dir_fd=place.dir_fd)
            except OSError as error:
                if error.errno in _DISK_FAILS:
                    raise  # to be tried again; if it is not empty, or gone, it is somebody else's matter
            finally:
                place.close()


def drop(spares: tuple[str, ...], fd: int, *, whole: bool) -> None:
    """Take second names away, those of `whole` directories too."""
    for name in spares:
        try:
            if whole:
                remove(fd, name)
            else:
                os.unlink(name, dir_fd=fd)
        except (FileNotFoundError, IsADirectoryError):
            pass  # a directory of this name is else none of ours
        except OSError as error:  # a disk that is read-only says so of names that are not there, too
            if error.errno != errno.EROFS or Place(fd, name, "").stat() is not None:
                raise


def mark_of(found: os.stat_result) -> list[int]:
    """What a file is known by wherever it is mounted and whatever it is called."""
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _is(mark: list[int] | None, found: os.stat_result | None) -> bool:
    """Whether this is the file of that mark. A directory stays the same whatever is put into it."""
    if found is None or mark is None:
        return False
    return found.st_ino == mark[0] if stat.S_ISDIR(found.st_mode) else mark_of(found) == mark


def _standing(step: Step, fd: int) -> tuple[os.stat_result | None, ...]:
    return tuple(Place(fd, name, "").stat() for name in (step.name, step.temp, step.old))
