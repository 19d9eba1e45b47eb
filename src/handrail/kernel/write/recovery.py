"""Rolls back a commit that is not done, and finishes one that is done. Every step can be repeated."""

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Literal

from handrail.kernel.fs.resolver import Place
from handrail.kernel.fs.syscalls import exchange_names
from handrail.kernel.fs.trees import Trees
from handrail.kernel.write.finish import GONE, Finish
from handrail.kernel.write.intent_log import Intent, Step, file_mark
from handrail.kernel.write.subtree import drop_names
from handrail.model.faults import AccessDenied
from handrail.model.paths import quote

_NONE_HELD: Mapping[str, int] = MappingProxyType({})


class Recovery:
    """Cleans up after commits that failed or whose process was killed."""

    def __init__(self, trees: Trees, finish: Finish, *, sync: bool) -> None:
        self._trees, self._finish, self._sync = trees, finish, sync

    def claim(self, intent: Intent) -> bool:
        """Return whether a killed process made this commit in the current root.

        Device numbers change between mounts and inode numbers are reused. So the root is recognized by its files: those
        that the commit wrote and those that it found. A copy of the root has other files; steps that belong to other
        files are removed from the intent. The state of a layer belongs to this layer alone, and its files get other
        inode numbers when it is mounted again: there, every intent counts.
        """
        workspace = self._trees.workspace
        if workspace.is_view:
            return True
        here = os.fstat(workspace.fd)
        if intent.root[1] != here.st_ino:
            return False
        traces = [(self._trace(step), step) for step in intent.steps]
        intent.steps = [step for trace, step in traces if trace != "other"]
        if any(trace == "known" for trace, _ in traces):
            return True
        traceless = intent.done or intent.begun or not any(step.identity or step.found for _, step in traces)
        return intent.root[0] == here.st_dev and traceless and len(intent.steps) == len(traces)

    def _trace(self, step: Step) -> Literal["known", "other", "none"]:
        """Return whether the files of a step are known from the intent, are other files, or do not exist."""
        try:
            fd = self._open(step)
        except (*GONE, AccessDenied):
            return "none"
        try:
            now, temp, old = _entries(step, fd)
        finally:
            os.close(fd)
        if any(_is(mark, each) for mark in (step.identity, step.found) for each in (now, temp, old)):
            return "known"
        if step.identity is None and temp is not None:
            return "known"  # the commit did not finish it, so it cannot contain data of the user
        return "none" if temp is None and old is None else "other"

    def roll_back(self, intent: Intent, held: Mapping[str, int] = _NONE_HELD) -> None:
        """Undo a commit that is not done, or finish one that is; then end its intent.

        `held` are open directories by path. They are the right ones even if another process moved them; all others
        are opened by name.
        """
        stays = intent.done
        if not intent.done:
            intent.begun = True
            with suppress(OSError):  # a full disk: removing files is even more important
                intent.save(sync=False)
            for step in reversed(intent.steps):
                stays |= self._in_directory(step, self._restore, held)
        if stays:
            self.finish(intent, held)
        else:
            self._drop_all(intent, held)
            for rel in reversed(intent.made):
                self._finish.remove_if_empty(rel)
        intent.end()

    def finish(self, intent: Intent, held: Mapping[str, int] = _NONE_HELD) -> None:
        """Do the cleanup of a commit whose files are published."""
        self._drop_all(intent, held)
        for rel in intent.gone:
            self._finish.remove_if_empty(rel)
        self._finish.enter(intent)

    def _drop_all(self, intent: Intent, held: Mapping[str, int]) -> None:
        for step in intent.steps:
            self._in_directory(step, self._drop_spares, held)

    def _open(self, step: Step) -> int:
        return self._trees.of(step.directory).open_any_directory(quote(step.directory) or ".")

    def _in_directory(self, step: Step, act: Callable[[Step, int], bool], held: Mapping[str, int]) -> bool:
        try:
            kept = held.get(step.directory)
            fd = os.dup(kept) if kept is not None else self._open(step)
        except GONE:
            return False  # the directory was removed with everything in it
        try:
            stays = act(step, fd)
            if self._sync and act == self._restore:
                os.fsync(fd)
        finally:
            os.close(fd)
        return stays

    @staticmethod
    def _restore(step: Step, fd: int) -> bool:
        """Restore the old file of a step. Returns whether the new file stays.

        It stays if it replaced the old file by a rename, on a file system where the old file got no second name.
        """
        now, temp, old = _entries(step, fd)
        is_new = _is(step.identity, now)
        if is_new and temp is not None and not _is(step.identity, temp):
            exchange_names(step.temp, step.name, fd)  # a rename would fail if either is a directory
            return False
        if old is not None and (now is None or is_new):
            if is_new and step.swaps_directory:  # a rename cannot replace a file by a directory, or the reverse
                os.rename(step.name, step.temp, src_dir_fd=fd, dst_dir_fd=fd)
            os.rename(step.old, step.name, src_dir_fd=fd, dst_dir_fd=fd)
            return False
        if is_new and step.creates:
            os.unlink(step.name, dir_fd=fd)
            return False
        return is_new

    @staticmethod
    def _drop_spares(step: Step, fd: int) -> bool:
        drop_names((step.temp, step.old), fd, whole=step.swaps_directory)
        return False


def _is(mark: list[int] | None, found: os.stat_result | None) -> bool:
    """Return whether a file has this mark. For a directory, only the inode number counts: its content may change."""
    if found is None or mark is None:
        return False
    return found.st_ino == mark[0] if stat.S_ISDIR(found.st_mode) else file_mark(found) == mark


def _entries(step: Step, fd: int) -> tuple[os.stat_result | None, ...]:
    """Return the stat results of the three names of a step."""
    return tuple(Place(fd, name, "").stat() for name in (step.name, step.temp, step.old))
