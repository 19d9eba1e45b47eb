"""Writes changes to the files of a workspace: all changes of a commit or none, even after a failure or kill -9.

The story of a commit:

1. Lock: the caller holds the lock of the workspace. The writer first cleans up after killed processes.
2. Locate: the writer opens the directory of each change. It checks that the file is still the one that the change is
   based on, and that the path is the one that the approver saw. Otherwise it raises `Conflict`.
3. Plan: the writer saves an intent, which names everything that the commit will create, replace or remove.
4. Prepare: the writer creates missing directories and writes the new contents to temporary files.
5. Compose: the journal stores the old and new contents, and the writer saves the journal line in the intent.
6. Publish: links, renames and exchanges of names put the new files in place. The old files get second names.
7. Done: the intent file says that all files are published.
8. Clean up: the writer removes second names and empty directories, appends the journal line and ends the intent.

A failure before step 7 rolls the commit back: at once, or, after a kill, when the next process opens the workspace or
commits (`recovery.py`). The one exception is a single file on a file system that has neither exchanges nor hard links:
one rename replaces it, no old file is left, and recovery finishes the commit. A failure in step 8 does not undo the
commit; the next commit or open repeats the cleanup.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal, Self

from handrail.kernel.fs.boundary import FsBoundary, faults_for
from handrail.kernel.fs.metadata import copy_metadata
from handrail.kernel.fs.parallel import MANY, parallel_map
from handrail.kernel.fs.placeholder import is_placeholder
from handrail.kernel.fs.resolver import Place
from handrail.kernel.fs.syscalls import begin_sync, can_sync_whole, sync_whole, write_all
from handrail.kernel.fs.trees import Trees, in_memory
from handrail.kernel.host.state_dir import State
from handrail.kernel.journal.commit_entry import CommittedChange, changed_paths
from handrail.kernel.journal.journal import Journal, Origin
from handrail.kernel.write.durability import Durability
from handrail.kernel.write.finish import Finish
from handrail.kernel.write.intent_log import Intent, IntentLog, Step, file_mark
from handrail.kernel.write.planned_change import PlannedChange, close_file, new_state, version_after
from handrail.kernel.write.preconditions import expect
from handrail.kernel.write.publish import publish, swap_directory
from handrail.kernel.write.recovery import Recovery
from handrail.kernel.write.subtree import build, drop_names
from handrail.model.faults import Conflict, IsDirectory, PathFault, WriteFailed
from handrail.model.files import Change, MakeDirectory, Node, Put, Remove, RemoveDirectory, Restore, Version, mode_for
from handrail.model.limits import Limits

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNKNOWN = Origin()
_SyncTime = Literal["never", "later", "now"]


class Writer:
    """Commits changes to the files of one workspace, and recovers commits of killed processes."""

    def __init__(self, trees: Trees, state: State, journal: Journal, limits: Limits, durability: str = "full") -> None:
        self._trees, self._state, self._journal = trees, state, journal
        self._intents = IntentLog(state.pending)
        self._durability = Durability(trees, state, limits, durability)
        self._trouble = ""
        self._finish = Finish(trees, journal)
        self._recovery = Recovery(trees, self._finish, sync=self._durability.directories)

    def targets(self, changes: list[Change], tree: FsBoundary | None = None) -> list[str]:
        """Return the resolved path of each change in a tree, by default the workspace.

        Raises every fault that is known in advance.
        """
        return [self._target(tree or self._trees.workspace, change) for change in changes]

    def _target(self, tree: FsBoundary, change: Change) -> str:
        work = self._locate(tree, change)
        work.place.close()
        return work.place.target

    @contextmanager
    def locked(self, path: str) -> Iterator[Self]:
        """Hold the lock of the workspace, so that no other process writes meanwhile. A fault names `path`."""
        with faults_for(path), self._state.lock():
            yield self

    def commit(self, changes: list[Change], approved: list[str], origin: Origin = _UNKNOWN) -> list[Version | None]:
        """Make all changes or none; the caller holds the lock.

        `approved` are the targets that the approver saw; another target is a `Conflict`. Returns the version of each
        new file; None if a change leaves no file.
        """
        self._recover()
        return self._commit(changes, approved, origin)

    def _commit(self, changes: list[Change], approved: list[str], origin: Origin | None) -> list[Version | None]:
        """Make a commit after recovery. Without an origin, the journal gets no entry."""
        intent = self._intents.begin(self._trees.workspace.identity)
        works: list[PlannedChange] = []
        try:
            for change, target in zip(changes, approved, strict=True):
                works.append(self._locate(self._trees.of(target), change, target))
            logged = self._durability.begin(works)
            self._carry_out(intent, works, origin, logged=logged)
            self._clean_up(intent, works)
            if logged:
                self._durability.end()
            return [version_after(work) for work in works]
        except BaseException:
            self._roll_back(intent, works)
            raise
        finally:
            for work in works:
                work.place.close()
                close_file(work)

    def close(self) -> None:
        """Remove the intent file of this process, and the log."""
        self._intents.close()
        self._durability.close()

    @property
    def changed_later(self) -> list[str]:
        """The files that a redo after a loss of power left as they were."""
        return self._durability.changed_later

    def recover(self) -> int:
        """Finish or roll back the commits of killed processes. Returns the number of these commits."""
        with self._state.lock():
            self._journal.blobs.sweep()
            count = self._recover()
            self._durability.checkpoint()
            return count

    def _recover(self) -> int:
        count = 0
        for intent in self._intents.abandoned():
            intent.foreign = not self._recovery.claim(intent)
            if not intent.foreign:
                self._recovery.roll_back(intent)
                count += 1
        if count:
            self._durability.checkpoint()  # a record of what was rolled back must not be redone
        self._durability.redo(self._recovery, lambda changes, targets: self._commit(changes, targets, None))
        return count

    def _roll_back(self, intent: Intent, works: list[PlannedChange]) -> None:
        """Roll back or finish this commit. If the disk refuses, leave it to the next commit or open."""
        if intent.pid != os.getpid():
            return  # a child process forked meanwhile: the parent continues the commit
        held = {work.step.directory: work.place.dir_fd for work in works if work.step and not work.place.rest}
        intent.made = [rel for rel in intent.made if rel in intent.created]
        try:
            self._recovery.roll_back(intent, held)
            self._durability.checkpoint()
        except (OSError, PathFault) as error:
            self._intents.leave()
            self._trouble = str(error.strerror if isinstance(error, OSError) else f"cannot reach {error.path}")

    def take_trouble(self) -> str:
        """Return why the cleanup of the last commit failed, and forget it; empty if it did not fail."""
        trouble, self._trouble = self._trouble, ""
        return trouble

    # ── locate ──

    def _locate(self, boundary: FsBoundary, change: Change, approved: str | None = None) -> PlannedChange:
        changes_link_itself = isinstance(change, (Remove, Restore, RemoveDirectory))
        place, found = boundary.locate_with_stat(change.path, follow=not changes_link_itself, future=True)
        try:
            if isinstance(change, Put) and found and stat.S_ISDIR(found.st_mode):
                found = None if is_placeholder(place.dir_fd, place.name) else found  # the file replaces it
            _check(boundary, change, place, found, approved)
        except BaseException:
            place.close()
            raise
        return PlannedChange(change, place, found, target=place.target)

    # ── plan, prepare, compose, publish ──

    def _carry_out(self, intent: Intent, works: list[PlannedChange], origin: Origin | None, *, logged: bool) -> None:
        sync = len(works) > 1 and self._durability.files
        for number, work in enumerate(works):
            self._plan(intent, work, number)
        intent.save(sync=False)
        self._prepare_all(intent, works, sync=sync)
        if origin is not None:
            self._compose(intent, works, origin)
        for work in works:
            _sync_later(work)
        intent.save(sync=sync)
        if logged:
            with faults_for(works[0].change.path):
                self._durability.append(intent, works)
        parallel_map(partial(_publish, alone=len(works) == 1), works)
        if self._durability.directories:
            for fd in {work.step.directory: work.place.dir_fd for work in works if work.step}.values():
                os.fsync(fd)
        intent.mark_done(sync=sync)

    def _prepare_all(self, intent: Intent, works: list[PlannedChange], *, sync: bool) -> None:
        """Write the new contents to temporary files. If there are few files, `_sync_later` syncs them."""
        whole = sync and len(works) >= MANY and can_sync_whole()
        when: _SyncTime = "never" if whole or not self._durability.files else "later" if len(works) < MANY else "now"
        for work in works:
            with _conflict_if_changed(work.change.path):
                self._enter_directory(intent, work)
        parallel_map(partial(self._prepare, sync=when), works)
        for fd in [work.unsynced for work in works if work.unsynced >= 0 and len(works) > 1]:
            begin_sync(fd)  # gains nothing for a single file, whose sync follows at once
        if whole:
            sync_whole(work.place.dir_fd for work in works)

    def _compose(self, intent: Intent, works: list[PlannedChange], origin: Origin) -> None:
        """Store the contents and complete the journal line, before any change is visible."""
        if not self._journal.on:
            return
        done = [CommittedChange(work.change, work.target, work.place, work.found, work.made) for work in works]
        made = [rel for rel in intent.made if rel in intent.created]
        try:
            line = self._journal.compose(origin, changed_paths(self._journal.blobs, done, made))
        except OSError as error:
            why = error.strerror or str(error)
            if self._journal.mode == "required":
                raise WriteFailed(works[0].change.path, f"cannot write the required journal: {why}") from error
            self._journal.trouble = why
        else:
            intent.line = line.decode()

    def _clean_up(self, intent: Intent, works: list[PlannedChange]) -> None:
        try:
            parallel_map(_drop_spares, works)
            for rel in intent.gone:
                self._finish.remove_if_empty(rel)
            self._finish.enter(intent, again=False)
            intent.end()
        except OSError:
            self._roll_back(intent, works)  # no error: the commit is done, and this only repeats the cleanup

    def _plan(self, intent: Intent, work: PlannedChange, number: int) -> None:
        """Add to the intent what this change will create, replace or remove."""
        if isinstance(work.change, RemoveDirectory):
            intent.gone.append(work.target)
        elif not isinstance(work.change, MakeDirectory):
            _plan_directories(intent, work, (work.place.name, *work.place.rest)[:-1])
            work.step = self._plan_step(work, number)
            intent.steps.append(work.step)
        elif not work.found:  # a directory that exists is not part of the commit: a rollback must not remove it
            _plan_directories(intent, work, (work.place.name, *work.place.rest))

    def _plan_step(self, work: PlannedChange, number: int) -> Step:
        directory, _, name = work.place.target.rpartition("/")
        temp, old = self._intents.spare_names(number)
        step = Step(directory, name, temp, old, creates=work.found is None)
        step.removes = new_state(work.change) is None
        step.swaps_directory = isinstance(work.change, Restore) and work.change.swaps_directory
        step.found = file_mark(work.found) if work.found else None
        return step

    def _enter_directory(self, intent: Intent, work: PlannedChange) -> None:
        """Create the missing directories, and open the directory of the file."""
        for part in work.missing:
            work.place = self._descend(intent, work.place, part)
        if isinstance(work.change, MakeDirectory) and work.change.mode is not None and work.missing:
            os.fchmod(work.place.dir_fd, work.change.mode | stat.S_IRWXU)

    def _prepare(self, work: PlannedChange, *, sync: _SyncTime) -> None:
        """Create the new file, link or directory of a change under its temporary name."""
        new = new_state(work.change)
        if work.step is None or new is None:
            return
        with _conflict_if_changed(work.change.path):
            if isinstance(new, Node) and new.kind != "file":
                build(work.place.dir_fd, work.step.temp, new, sync=sync != "never")
                work.made = Place(work.place.dir_fd, work.step.temp, "").stat()
            else:
                work.made = self._write(work, work.step, new, sync=sync)
            if work.made is not None:
                work.step.identity = file_mark(work.made)

    def _write(self, work: PlannedChange, step: Step, new: Put | Node, *, sync: _SyncTime) -> os.stat_result:
        exact = isinstance(new, Node)
        replaces = work.found is not None and stat.S_ISREG(work.found.st_mode)
        base = work.change.base if isinstance(work.change, (Put, Restore)) and replaces else None
        mode = mode_for(new, base)
        private = replaces or exact or in_memory(work.target)
        fd = os.open(step.temp, _NEW, 0o600 if private else mode & 0o777, dir_fd=work.place.dir_fd)
        try:
            write_all(fd, new.data)
            if base is not None and work.found is not None:
                copy_metadata(fd, work.place, work.found, mode, same_content=base.data == new.data)
            elif exact:
                os.fchmod(fd, mode)
            if sync == "now":
                os.fsync(fd)
            return os.fstat(fd)
        finally:
            if sync == "later":
                work.unsynced = fd
            else:
                os.close(fd)

    def _descend(self, intent: Intent, place: Place, part: str) -> Place:
        try:
            os.mkdir(part, 0o700 if in_memory(place.rel) else 0o777, dir_fd=place.dir_fd)
            intent.created.add(place.rel)
            if self._durability.directories:
                os.fsync(place.dir_fd)
        except FileExistsError:
            if place.rel in intent.made and place.rel not in intent.created:
                intent.made.remove(place.rel)  # another process created it: a rollback must not remove it
        fd = os.open(part, _DIRECTORY, dir_fd=place.dir_fd)
        os.close(place.dir_fd)
        first, *rest = place.rest or ("",)
        return Place(fd, first, f"{place.rel}/{first}" if first else place.rel, tuple(rest))


def _check(
    boundary: FsBoundary, change: Change, place: Place, found: os.stat_result | None, approved: str | None
) -> None:
    """Raise a fault if the change does not fit the entry found, or is not the one that was approved."""
    is_file = not isinstance(change, (MakeDirectory, RemoveDirectory))
    if is_file and boundary.split(change.path).wants_directory:
        raise IsDirectory(change.path)
    try:
        expect(change, place, found, access=approved is None)
    except PathFault:
        if approved is None:
            raise
        raise Conflict(change.path) from None  # the files changed after the approval: the caller must retry
    if isinstance(change, Restore) and boundary.protected is not None:
        for rel, _, _ in change.inner_changes():
            boundary.protected.check_name(change.path, f"{place.target}/{rel}")
    if approved not in (None, place.target):
        raise Conflict(change.path)


def _plan_directories(intent: Intent, work: PlannedChange, missing: tuple[str, ...]) -> None:
    """Add the missing directories of a change to the intent, outermost first."""
    parents = work.place.rel.split("/")[:-1]
    rels = ["/".join([*parents, *missing[: n + 1]]) for n in range(len(missing))]
    intent.made.extend(rel for rel in rels if rel not in intent.made)
    work.missing = missing


def _sync_later(work: PlannedChange) -> None:
    """Sync a new file that was written without a sync, and close it."""
    if work.unsynced >= 0:
        with _conflict_if_changed(work.change.path):
            os.fsync(work.unsynced)
            close_file(work)


class _conflict_if_changed(faults_for):  # noqa: N801  used like a function, as its base class
    """Turns "file changed since the check" errors into `Conflict`, so that the router retries the edit."""

    __slots__ = ()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and error.errno in (errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise Conflict(self._path) from None
        super().__exit__(kind, error, trace)


def _publish(work: PlannedChange, *, alone: bool) -> None:
    change, fd = work.change, work.place.dir_fd
    if work.step is None:
        return
    with _conflict_if_changed(change.path):
        if (
            isinstance(change, Restore)
            and change.swaps_directory
            and change.base is not None
            and work.found is not None
        ):
            swap_directory(work.step, fd, work.found, change.base, change.path)
            work.spares = (work.step.temp, work.step.old)
        else:
            work.spares = publish(work.step, fd, work.found, change.path, alone=alone)


def _drop_spares(work: PlannedChange) -> None:
    if work.step is not None:
        drop_names(work.spares, work.place.dir_fd, whole=work.step.swaps_directory)
