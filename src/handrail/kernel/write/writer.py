"""The one writer. Many files, all or nothing, through directory handles, across failures and kill -9.

Prepared: temporary files hold the new contents and the record of intent names everything. Kept: each file that will
go has a second name. Published: renames and links. Done: the record says so, second names and temporaries go.
Whatever stops it before Done is rolled back, at once or by the next open (`putright.py`); after Done the line in the
journal and clearing away are left.
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
from handrail.kernel.host.state_dir import State
from handrail.kernel.journal.commit_entry import CommittedChange, touched
from handrail.kernel.journal.journal import Journal, Origin
from handrail.kernel.write.finish import Finish
from handrail.kernel.write.intent_log import Intent, IntentLog, Step, file_mark
from handrail.kernel.write.preconditions import expect
from handrail.kernel.write.publish import publish, turn
from handrail.kernel.write.recovery import Recovery
from handrail.kernel.write.subtree import build, drop_names
from handrail.model.faults import (
    Conflict,
    IsDirectory,
    PathFault,
    WriteFailed,
)
from handrail.model.files import (
    Change,
    MakeDirectory,
    Node,
    Put,
    Remove,
    RemoveDirectory,
    Restore,
    Version,
    mode_for,
)
from handrail.model.record import record

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOBODY = Origin()
When = Literal["never", "later", "now"]


@record
class _Work:
    """One change on its way: where it goes, what was found there, and its line in the record."""

    change: Change
    place: Place
    found: os.stat_result | None
    step: Step | None = None
    chain: tuple[str, ...] = ()
    target: str = ""
    made: os.stat_result | None = None
    """The new file, once it is prepared."""
    unsynced: int = -1
    """Its handle, while the disk has not got all of it."""
    spares: tuple[str, ...] = ()
    """The second names that publishing has left beside it."""


class Writer:
    def __init__(self, boundary: FsBoundary, state: State, journal: Journal, durability: str = "full") -> None:
        self._boundary, self._state, self._journal = boundary, state, journal
        self._intents = IntentLog(state.pending)
        self._sync_files, self._sync_directories = durability != "none", durability == "full"
        self._trouble = ""
        self._finish = Finish(boundary, journal)
        self._recovery = Recovery(boundary, self._finish, sync=self._sync_directories)

    def targets(self, changes: list[Change]) -> list[str]:
        """Where the changes would land, beneath the root with links resolved; every refusal that can be known."""
        return [self._target(change) for change in changes]

    def _target(self, change: Change) -> str:
        work = self._look(change)
        work.place.close()
        return work.place.target

    @contextmanager
    def locked(self, path: str) -> Iterator[Self]:
        """Hold the workspace's lock, so that no other process writes meanwhile; `path` is named if that fails."""
        with faults_for(path), self._state.lock():
            yield self

    def commit(self, changes: list[Change], approved: list[str], origin: Origin = _NOBODY) -> list[Version | None]:
        """Make all the changes or none, under the lock. `approved` are the targets that were shown: others conflict.

        Returns the version of each new file; None where there is no file now.
        """
        self._recover()
        intent = self._intents.begin(self._boundary.identity)
        works: list[_Work] = []
        try:
            for change, target in zip(changes, approved, strict=True):
                works.append(self._look(change, target))
            self._carry_out(intent, works, origin)
            self._clear_away(intent, works)
            return [_version(work) for work in works]
        except BaseException:
            self._give_up(intent, works)
            raise
        finally:
            for work in works:
                work.place.close()
                _close(work)

    def close(self) -> None:
        self._intents.close()

    def recover(self) -> int:
        """Finish or roll back what killed processes left. Returns how many commits were put right."""
        with self._state.lock():
            self._journal.blobs.sweep()
            return self._recover()

    def _recover(self) -> int:
        count = 0
        for intent in self._intents.abandoned():
            intent.foreign = not self._recovery.claim(intent)
            if not intent.foreign:
                self._recovery.roll_back(intent)
                count += 1
        return count

    def _give_up(self, intent: Intent, works: list[_Work]) -> None:
        if intent.pid != os.getpid():
            return  # a child that was forked meanwhile: its parent goes on
        held = {work.step.directory: work.place.dir_fd for work in works if work.step and not work.place.rest}
        intent.made = [rel for rel in intent.made if rel in intent.created]
        try:
            self._recovery.roll_back(intent, held)
        except (OSError, PathFault) as error:
            self._intents.leave()  # the disk refuses even this; the next commit or open tries again
            self._trouble = str(error.strerror if isinstance(error, OSError) else f"{error.path} cannot be reached")

    def take_trouble(self) -> str:
        """Why something of the last commit is still to be put right; said once."""
        trouble, self._trouble = self._trouble, ""
        return trouble

    # ── looking ──

    def _look(self, change: Change, approved: str | None = None) -> _Work:
        itself = isinstance(change, (Remove, Restore, RemoveDirectory))
        place, found = self._boundary.look(change.path, follow=not itself, future=True)
        try:
            if isinstance(change, Put) and found and stat.S_ISDIR(found.st_mode):
                found = None if is_placeholder(place.dir_fd, place.name) else found  # a sandbox keeps the name free
            is_file = not isinstance(change, (MakeDirectory, RemoveDirectory))
            if is_file and self._boundary.split(change.path).wants_directory:
                raise IsDirectory(change.path)
            try:
                expect(change, place, found)
            except PathFault:
                if approved is None:
                    raise
                raise Conflict(change.path) from None  # it was not so when it was shown: to be worked out anew
            if isinstance(change, Restore) and self._boundary.protected is not None:
                for rel, _, _ in change.beneath():
                    self._boundary.protected.check_name(change.path, f"{place.target}/{rel}")
            if approved not in (None, place.target):
                raise Conflict(change.path)
        except BaseException:
            place.close()
            raise
        return _Work(change, place, found, target=place.target)

    # ── carrying out ──

    def _carry_out(self, intent: Intent, works: list[_Work], origin: Origin) -> None:
        sync = len(works) > 1 and self._sync_files
        for number, work in enumerate(works):
            self._note(intent, work, number)
        intent.save(sync=False)
        self._prepare_all(intent, works, sync=sync)
        self._compose(intent, works, origin)
        for work in works:
            _sync_rest(work)
        intent.save(sync=sync)
        parallel_map(partial(_publish, alone=len(works) == 1), works)
        if self._sync_directories:
            for fd in {work.step.directory: work.place.dir_fd for work in works if work.step}.values():
                os.fsync(fd)
        intent.mark_done(sync=sync)

    def _prepare_all(self, intent: Intent, works: list[_Work], *, sync: bool) -> None:
        """Write the new files beside the old ones; one file, or few, are synced later, when the journal is ready."""
        whole = sync and len(works) >= MANY and can_sync_whole()
        when: When = "never" if whole or not self._sync_files else "later" if len(works) < MANY else "now"
        for work in works:
            with _conflict_if_changed(work.change.path):
                self._enter(intent, work)
        parallel_map(partial(self._prepare, sync=when), works)
        if whole:
            sync_whole(work.place.dir_fd for work in works)

    def _compose(self, intent: Intent, works: list[_Work], origin: Origin) -> None:
        """Keep the contents and finish the line for the journal, before anything can be seen."""
        if not self._journal.on:
            return
        done = [CommittedChange(work.change, work.target, work.place, work.found, work.made) for work in works]
        made = [rel for rel in intent.made if rel in intent.created]
        try:
            line = self._journal.compose(origin, touched(self._journal.blobs, done, made))
        except OSError as error:
            why = error.strerror or str(error)
            if self._journal.mode == "required":
                raise WriteFailed(works[0].change.path, f"the journal, which is required: {why}") from error
            self._journal.trouble = why
        else:
            intent.line = line.decode()

    def _clear_away(self, intent: Intent, works: list[_Work]) -> None:
        try:
            parallel_map(_drop_spares, works)
            for rel in intent.gone:
                self._finish.remove_if_empty(rel)
            self._finish.enter(intent, again=False)
            intent.end()
        except OSError:
            self._give_up(intent, works)  # no error: the change is made, and only clearing away is tried again

    def _note(self, intent: Intent, work: _Work, number: int) -> None:
        """Put into the record what this change is about to create."""
        if isinstance(work.change, RemoveDirectory):
            intent.gone.append(work.target)
            return
        if isinstance(work.change, MakeDirectory) and work.found:
            return  # it is there, and not ours to take back
        directory, _, name = work.place.target.rpartition("/")
        chain = [work.place.name, *work.place.rest]
        made = chain if isinstance(work.change, MakeDirectory) else chain[:-1]
        if work.place.rest or isinstance(work.change, MakeDirectory):
            stem = work.place.rel.rpartition("/")[0]
            rels = ["/".join([*([stem] if stem else []), *made[: n + 1]]) for n in range(len(made))]
            intent.made.extend(rel for rel in rels if rel not in intent.made)
            work.chain = tuple(made)
        if not isinstance(work.change, MakeDirectory):
            temp, old = self._intents.spare_names(number)
            work.step = Step(directory, name, temp, old, creates=work.found is None)
            work.step.removes = _new(work.change) is None
            work.step.turns = isinstance(work.change, Restore) and work.change.turns
            work.step.found = file_mark(work.found) if work.found else None
            intent.steps.append(work.step)

    def _enter(self, intent: Intent, work: _Work) -> None:
        """Make the directories that are missing, and go where the file is to be."""
        for part in work.chain:
            work.place = self._descend(intent, work.place, part)
        if isinstance(work.change, MakeDirectory) and work.change.mode is not None and work.chain:
            os.fchmod(work.place.dir_fd, work.change.mode | stat.S_IRWXU)

    def _prepare(self, work: _Work, *, sync: When) -> None:
        new = _new(work.change)
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

    def _write(self, work: _Work, step: Step, new: Put | Node, *, sync: When) -> os.stat_result:
        exact = isinstance(new, Node)
        replaces = work.found is not None and stat.S_ISREG(work.found.st_mode)
        base = work.change.base if isinstance(work.change, (Put, Restore)) and replaces else None
        mode = mode_for(new, base)
        fd = os.open(step.temp, _NEW, 0o600 if replaces or exact else mode & 0o777, dir_fd=work.place.dir_fd)
        try:
            write_all(fd, new.data)
            if sync == "later":
                begin_sync(fd)
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
            os.mkdir(part, dir_fd=place.dir_fd)
            intent.created.add(place.rel)
            if self._sync_directories:
                os.fsync(place.dir_fd)
        except FileExistsError:
            if place.rel in intent.made and place.rel not in intent.created:
                intent.made.remove(place.rel)  # somebody else made it meanwhile: not ours to take back
        fd = os.open(part, _DIRECTORY, dir_fd=place.dir_fd)
        os.close(place.dir_fd)
        first, *rest = place.rest or ("",)
        return Place(fd, first, f"{place.rel}/{first}" if first else place.rel, tuple(rest))


def _sync_rest(work: _Work) -> None:
    """Sync a new file that was written without waiting for the disk."""
    if work.unsynced >= 0:
        with _conflict_if_changed(work.change.path):
            os.fsync(work.unsynced)
            _close(work)


def _close(work: _Work) -> None:
    """Before it is published: a program that is open for writing cannot be run."""
    if work.unsynced >= 0:
        os.close(work.unsynced)
        work.unsynced = -1


class _conflict_if_changed(faults_for):  # noqa: N801  like its parent
    """What is not as it was when it was looked at asks for the change to be worked out anew."""

    __slots__ = ()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and error.errno in (errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise Conflict(self._path) from None
        super().__exit__(kind, error, trace)


def _new(change: Change) -> Put | Node | None:
    """What a name gets, with its content and its mode; None where it goes."""
    if isinstance(change, Put):
        return change
    return change.to if isinstance(change, Restore) else None


def _publish(work: _Work, *, alone: bool) -> None:
    change, fd = work.change, work.place.dir_fd
    if work.step is None:
        return
    with _conflict_if_changed(change.path):
        if isinstance(change, Restore) and change.turns and change.base is not None and work.found is not None:
            turn(work.step, fd, work.found, change.base, change.path)
            work.spares = (work.step.temp, work.step.old)
        else:
            work.spares = publish(work.step, fd, work.found, change.path, alone=alone)


def _drop_spares(work: _Work) -> None:
    if work.step is not None:
        drop_names(work.spares, work.place.dir_fd, whole=work.step.turns)


def _version(work: _Work) -> Version | None:
    """What the new file is known by now: publishing it has changed its times."""
    if work.step is None or work.step.removes:
        return None
    now = Place(work.place.dir_fd, work.step.name, "").stat()
    return Version.of(now) if now is not None and file_mark(now) == work.step.identity else None
