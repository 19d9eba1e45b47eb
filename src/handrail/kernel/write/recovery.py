"""Putting right what a commit left: roll back one that is not done, finish one that is. Every step can be repeated."""

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Literal

from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.resolver import Place
from handrail.kernel.fs.syscalls import exchange_names
from handrail.kernel.write.finish import GONE, Finish
from handrail.kernel.write.intent_log import Intent, Step, file_mark
from handrail.kernel.write.subtree import drop_names
from handrail.model.faults import AccessDenied
from handrail.model.paths import quote

_NONE_HELD: Mapping[str, int] = MappingProxyType({})


class Recovery:
    def __init__(self, boundary: FsBoundary, finish: Finish, *, sync: bool) -> None:
        self._boundary, self._finish, self._sync = boundary, finish, sync

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
        except (*GONE, AccessDenied):
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
            self._in_directory(step, self._drop_spares, held)
        for rel in intent.gone if stands else reversed(intent.made):
            self._finish.remove_if_empty(rel)
        if stands:
            self._finish.enter(intent)
        intent.end()

    def _in_directory(self, step: Step, act: Callable[[Step, int], bool], held: Mapping[str, int]) -> bool:
        try:
            kept = held.get(step.directory)
            fd = os.dup(kept) if kept is not None else self._boundary.open_any_directory(quote(step.directory) or ".")
        except GONE:
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
    def _drop_spares(step: Step, fd: int) -> bool:
        drop_names((step.temp, step.old), fd, whole=step.turns)
        return False


def _is(mark: list[int] | None, found: os.stat_result | None) -> bool:
    """Whether this is the file of that mark. A directory stays the same whatever is put into it."""
    if found is None or mark is None:
        return False
    return found.st_ino == mark[0] if stat.S_ISDIR(found.st_mode) else file_mark(found) == mark


def _standing(step: Step, fd: int) -> tuple[os.stat_result | None, ...]:
    return tuple(Place(fd, name, "").stat() for name in (step.name, step.temp, step.old))
