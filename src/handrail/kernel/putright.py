"""Putting right what a commit left: roll back one that is not done, finish one that is. Every step can be repeated."""

import errno
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType

from handrail.faults import LinkLoop, NotADirectory, NotFound, OutsideRoot, ProtectedPath
from handrail.kernel.boundary import FsBoundary
from handrail.kernel.journal import Journal
from handrail.kernel.record import Record, Step
from handrail.kernel.resolve import Place, exchange_names
from handrail.kernel.trees import remove
from handrail.paths import quote

_DISK_FAILS = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
_NONE_HELD: Mapping[str, int] = MappingProxyType({})


class PutRight:
    def __init__(self, boundary: FsBoundary, journal: Journal, *, sync: bool) -> None:
        self._boundary, self._journal, self._sync = boundary, journal, sync

    def roll_back(self, record: Record, held: Mapping[str, int] = _NONE_HELD) -> None:
        """A directory that is still held is the right one wherever it was moved to; the others are found by name."""
        stands = record.done
        if not record.done:
            for step in reversed(record.steps):
                stands |= self._in_directory(step, self._restore, held)
        for step in record.steps:
            self._in_directory(step, self.drop_spares, held)
        for rel in record.gone if stands else reversed(record.made):
            self.remove_if_empty(rel)
        if stands:
            self.remember(record)
        record.end()

    def remember(self, record: Record, *, again: bool = True) -> None:
        """Enter in the journal what was done, once. Only a configuration that demands it lets this fail."""
        if not record.line:
            return
        enter = self._journal.ensure if again else self._journal.append
        try:
            enter(record.line.encode())
        except OSError as error:
            if self._journal.mode == "required":
                raise
            self._journal.trouble = error.strerror or str(error)

    def _in_directory(self, step: Step, act: Callable[[Step, int], bool], held: Mapping[str, int]) -> bool:
        try:
            kept = held.get(step.directory)
            fd = os.dup(kept) if kept is not None else self._boundary.open_any_directory(quote(step.directory) or ".")
        except (NotFound, NotADirectory, OutsideRoot, LinkLoop):
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
        now, temp, old = (Place(fd, name, "").stat() for name in (step.name, step.temp, step.old))
        ours = _is_new(step, now)
        if ours and temp is not None and not _is_new(step, temp):
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
        for name in (step.temp, step.old):
            with suppress(FileNotFoundError, IsADirectoryError):  # a directory of this name is else none of ours
                if step.turns:
                    remove(fd, name)
                else:
                    os.unlink(name, dir_fd=fd)
        return False

    def remove_if_empty(self, rel: str) -> None:
        with suppress(NotFound, NotADirectory, OutsideRoot, LinkLoop, ProtectedPath):
            place = self._boundary.locate(quote(rel), follow=False)
            try:
                os.rmdir(place.name, dir_fd=place.dir_fd)
            except OSError as error:
                if error.errno in _DISK_FAILS:
                    raise  # to be tried again; if it is not empty, or gone, it is somebody else's matter
            finally:
                place.close()


def _is_new(step: Step, found: os.stat_result | None) -> bool:
    """Whether this is the file that the commit wrote. A directory stays the same whatever is put into it."""
    if found is None or step.identity is None:
        return False
    if stat.S_ISDIR(found.st_mode):
        return found.st_ino == step.identity[0]
    return [found.st_ino, found.st_size, found.st_mtime_ns] == step.identity
