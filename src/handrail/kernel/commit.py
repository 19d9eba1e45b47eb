"""The one writer. Many files, all or nothing, through directory handles, across failures and kill -9.

Prepared: temporary files hold the new contents and the record of intent names everything. Kept: each file that will
go has a second name. Published: renames and links. Done: the record says so, second names and temporaries go.
Whatever stops it before Done is rolled back, at once or by the next open; after Done only clearing away is left.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType

from handrail.faults import (
    AccessDenied,
    AlreadyExists,
    Conflict,
    IsDirectory,
    LinkLoop,
    NotADirectory,
    NotFound,
    OutsideRoot,
    PathFault,
)
from handrail.kernel.boundary import FsBoundary, faults_for
from handrail.kernel.record import Ledger, Record, Step
from handrail.kernel.resolve import Place, rename_to_free_name
from handrail.kernel.state import State
from handrail.kernel.values import Change, MakeDirectory, Put, Remove, Version
from handrail.paths import quote

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)
_DISK_FAILS = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
_SOURCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NONE_HELD: Mapping[str, int] = MappingProxyType({})
_ACL = "system.posix_acl_access"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class _Work:
    """One change on its way: where it goes, what was found there, and its line in the record."""

    change: Change
    place: Place
    found: os.stat_result | None
    step: Step | None = None
    chain: tuple[str, ...] = ()


class Writer:
    def __init__(self, boundary: FsBoundary, state: State, durability: str = "full") -> None:
        self._boundary, self._state = boundary, state
        self._ledger = Ledger(state.pending)
        self._sync_files, self._sync_directories = durability != "none", durability == "full"

    def targets(self, changes: list[Change]) -> list[str]:
        """Where the changes would land, beneath the root with links resolved; every refusal that can be known."""
        return [self._target(change) for change in changes]

    def _target(self, change: Change) -> str:
        work = self._look(change)
        work.place.close()
        return work.place.target

    def commit(self, changes: list[Change], approved: list[str]) -> None:
        """Make all the changes or none. `approved` are the targets that were shown: others are a conflict."""
        with faults_for(changes[0].path), self._state.lock():
            self._recover()
            record = self._ledger.begin(os.fstat(self._boundary.fd))
            works: list[_Work] = []
            try:
                for change, target in zip(changes, approved, strict=True):
                    works.append(self._look(change, target))
                self._carry_out(record, works)
                self._clear_away(record, works)
            except BaseException:
                self._give_up(record, works)
                raise
            finally:
                for work in works:
                    work.place.close()

    def close(self) -> None:
        self._ledger.close()

    def recover(self) -> int:
        """Finish or roll back what killed processes left. Returns how many commits were put right."""
        with self._state.lock():
            return self._recover()

    def _recover(self) -> int:
        count, here = 0, os.fstat(self._boundary.fd)
        for record in self._ledger.abandoned():
            if record.root == [
                here.st_dev,
                here.st_ino,
            ]:  # else another directory has this name now: not ours
                self._roll_back(record)
                count += 1
        return count

    def _give_up(self, record: Record, works: list[_Work]) -> None:
        held = {work.step.directory: work.place.dir_fd for work in works if work.step and not work.place.rest}
        record.made = [rel for rel in record.made if rel in record.created]
        try:
            self._roll_back(record, held)
        except (OSError, PathFault):
            self._ledger.leave()  # the disk refuses even this; the next commit or open tries again

    # ── looking ──

    def _look(self, change: Change, approved: str | None = None) -> _Work:
        place = self._boundary.locate(change.path, follow=not isinstance(change, Remove), future=True)
        try:
            found = None if place.rest else place.stat()
            if not isinstance(change, MakeDirectory) and self._boundary.split(change.path).wants_directory:
                raise IsDirectory(change.path)
            try:
                _expect(change, place, found)
            except PathFault:
                if approved is None:
                    raise
                raise Conflict(change.path) from None  # it was not so when it was shown: to be worked out anew
            if approved not in (None, place.target):
                raise Conflict(change.path)
        except BaseException:
            place.close()
            raise
        return _Work(change, place, found)

    # ── carrying out ──

    def _carry_out(self, record: Record, works: list[_Work]) -> None:
        many = len(works) > 1
        sync = many and self._sync_files
        for number, work in enumerate(works):
            self._note(record, work, number)
        record.save(sync=False)
        for work in works:
            with _conflict_if_changed(work.change.path):
                self._prepare(record, work)
        record.save(sync=sync)
        for work in works:
            with _conflict_if_changed(work.change.path):
                self._publish(work, alone=not many)
        if self._sync_directories:
            for fd in {work.step.directory: work.place.dir_fd for work in works if work.step}.values():
                os.fsync(fd)
        record.mark_done(sync=sync)

    def _clear_away(self, record: Record, works: list[_Work]) -> None:
        try:
            for work in works:
                if work.step:
                    self._drop_spares(work.step, work.place.dir_fd)
            record.end()
        except OSError:
            self._give_up(record, works)  # no error: the change is made, and only clearing away is tried again

    def _note(self, record: Record, work: _Work, number: int) -> None:
        """Put into the record what this change is about to create."""
        if isinstance(work.change, MakeDirectory) and work.found:
            return  # it is there, and not ours to take back
        directory, _, name = work.place.target.rpartition("/")
        chain = [work.place.name, *work.place.rest]
        made = chain if isinstance(work.change, MakeDirectory) else chain[:-1]
        if work.place.rest or isinstance(work.change, MakeDirectory):
            stem = work.place.rel.rpartition("/")[0]
            rels = ["/".join([*([stem] if stem else []), *made[: n + 1]]) for n in range(len(made))]
            record.made.extend(rel for rel in rels if rel not in record.made)
            work.chain = tuple(made)
        if not isinstance(work.change, MakeDirectory):
            temp, old = self._ledger.spare_names(number)
            work.step = Step(directory, name, temp, old, creates=work.found is None)
            work.step.removes = isinstance(work.change, Remove)
            record.steps.append(work.step)

    def _prepare(self, record: Record, work: _Work) -> None:
        for part in work.chain:
            work.place = self._descend(record, work.place, part)
        if not isinstance(work.change, Put) or work.step is None:
            return
        mode = 0o600 if work.found else 0o666 if work.change.mode is None else work.change.mode & 0o777
        fd = os.open(work.step.temp, _NEW, mode, dir_fd=work.place.dir_fd)
        try:
            _write_all(fd, work.change.data)
            if work.found:
                _copy_metadata(fd, work.place, work.found, work.change.mode)
            if self._sync_files:
                os.fsync(fd)
            made = os.fstat(fd)
        finally:
            os.close(fd)
        work.step.identity = [made.st_ino, made.st_size, made.st_mtime_ns]

    def _descend(self, record: Record, place: Place, part: str) -> Place:
        try:
            os.mkdir(part, dir_fd=place.dir_fd)
            record.created.add(place.rel)
            if self._sync_directories:
                os.fsync(place.dir_fd)
        except FileExistsError:
            if place.rel in record.made and place.rel not in record.created:
                record.made.remove(place.rel)  # somebody else made it meanwhile: not ours to take back
        fd = os.open(part, _DIRECTORY, dir_fd=place.dir_fd)
        os.close(place.dir_fd)
        first, *rest = place.rest or ("",)
        return Place(fd, first, f"{place.rel}/{first}" if first else place.rel, tuple(rest))

    @staticmethod
    def _publish(work: _Work, *, alone: bool) -> None:
        step, fd = work.step, work.place.dir_fd
        if step is None:
            return
        if work.found is None:
            _create(step, fd)
            return
        now = Place(fd, step.name, step.name).stat()
        if now is None or Version.of(now) != Version.of(work.found):
            raise Conflict(work.change.path)
        _keep(work, step, alone=alone)
        if step.removes:
            with suppress(FileNotFoundError):  # where hard links are not to be had, keeping has moved it already
                os.unlink(step.name, dir_fd=fd)
        else:
            os.rename(step.temp, step.name, src_dir_fd=fd, dst_dir_fd=fd)

    # ── putting right ──

    def _roll_back(self, record: Record, held: Mapping[str, int] = _NONE_HELD) -> None:
        """Undo a commit that is not done, or clear away after one that is. Every step can be repeated.

        A directory that is still held is the right one wherever it was moved to; the others are found by name.
        """
        if not record.done:
            for step in reversed(record.steps):
                self._in_directory(step, self._restore, held)
        for step in record.steps:
            self._in_directory(step, self._drop_spares, held)
        if not record.done:
            for rel in reversed(record.made):
                self._remove_if_empty(rel)
        record.end()

    def _in_directory(self, step: Step, act: Callable[[Step, int], None], held: Mapping[str, int]) -> None:
        try:
            kept = held.get(step.directory)
            fd = os.dup(kept) if kept is not None else self._boundary.open_any_directory(quote(step.directory) or ".")
        except (NotFound, NotADirectory, OutsideRoot, LinkLoop):
            return  # the directory was taken away, and all that was in it
        try:
            act(step, fd)
            if self._sync_directories and act == self._restore:
                os.fsync(fd)
        finally:
            os.close(fd)

    @staticmethod
    def _restore(step: Step, fd: int) -> None:
        now, old = Place(fd, step.name, "").stat(), Place(fd, step.old, "").stat()
        ours = now is not None and [now.st_ino, now.st_size, now.st_mtime_ns] == step.identity
        if old is not None and (now is None or ours):
            os.rename(step.old, step.name, src_dir_fd=fd, dst_dir_fd=fd)
        elif ours and step.creates:
            os.unlink(step.name, dir_fd=fd)

    @staticmethod
    def _drop_spares(step: Step, fd: int) -> None:
        for name in (step.temp, step.old):
            with suppress(FileNotFoundError, IsADirectoryError):  # a directory of this name is none of ours
                os.unlink(name, dir_fd=fd)

    def _remove_if_empty(self, rel: str) -> None:
        with suppress(NotFound, NotADirectory, OutsideRoot, LinkLoop):
            place = self._boundary.locate(quote(rel), follow=False)
            try:
                os.rmdir(place.name, dir_fd=place.dir_fd)
            except OSError as error:
                if error.errno in _DISK_FAILS:
                    raise  # to be tried again; if it is not empty, or gone, it is somebody else's matter
            finally:
                place.close()


@contextmanager
def _conflict_if_changed(path: str) -> Iterator[None]:
    """What is not as it was when it was looked at asks for the change to be worked out anew."""
    with faults_for(path):
        try:
            yield
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise
            raise Conflict(path) from None


def _expect(change: Change, place: Place, found: os.stat_result | None) -> None:
    """What is there must be what the change was worked out from."""
    path = change.path
    if isinstance(change, MakeDirectory):
        if found is not None and not stat.S_ISDIR(found.st_mode):
            raise AlreadyExists(path)
        return
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise IsDirectory(path)
    if isinstance(change, Remove) and found is None:
        raise NotFound(path)
    if isinstance(change, Put) and change.base is None and found is not None:
        raise AlreadyExists(path)
    if change.base is not None and (found is None or Version.of(found) != change.base.version):
        raise Conflict(path)
    if (
        isinstance(change, Put)
        and found
        and not os.access(place.name, os.W_OK, dir_fd=place.dir_fd, effective_ids=True)
    ):
        raise AccessDenied(path)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _copy_metadata(fd: int, place: Place, found: os.stat_result, mode: int | None) -> None:
    """Owner, mode, extended attributes and with them the ACL. Only the owner may be out of our power."""
    made = os.fstat(fd)  # its group may be the directory's
    if (found.st_uid, found.st_gid) != (made.st_uid, made.st_gid):
        for uid, gid in ((found.st_uid, found.st_gid), (-1, found.st_gid)):
            with suppress(PermissionError):
                os.fchown(fd, uid, gid)
                break
    if hasattr(os, "listxattr"):
        source = os.open(place.name, _SOURCE, dir_fd=place.dir_fd)
        try:
            _copy_attributes(source, fd)
        finally:
            os.close(source)
    os.fchmod(fd, stat.S_IMODE(found.st_mode if mode is None else mode))  # last: an ACL brings a mode of its own


def _copy_attributes(source: int, fd: int) -> None:
    wanted = _attributes(source)
    if _ACL in _attributes(fd) and _ACL not in wanted:
        os.removexattr(fd, _ACL)  # the directory's default, which the old file did not have
    for name in wanted:
        try:
            os.setxattr(fd, name, os.getxattr(source, name))
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENODATA):
                raise


def _attributes(fd: int) -> list[str]:
    try:
        return os.listxattr(fd)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        return []


def _keep(work: _Work, step: Step, *, alone: bool) -> None:
    """Give what is about to go a second name, so that it can come back."""
    fd = work.place.dir_fd
    try:
        os.link(step.name, step.old, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if alone and not step.removes:
            return  # one rename is whole in itself, and moving the file first would let readers find none
        os.rename(step.name, step.old, src_dir_fd=fd, dst_dir_fd=fd)
    kept = Place(fd, step.old, step.old).stat()
    if kept is None or work.found is None or (kept.st_dev, kept.st_ino) != (work.found.st_dev, work.found.st_ino):
        raise Conflict(work.change.path)  # exchanged at the last moment


def _create(step: Step, fd: int) -> None:
    """Publish under a name that must be free: of many creators one wins."""
    try:
        # Were a link planted in the temporary's place, following it would bring a file from outside in.
        os.link(step.temp, step.name, src_dir_fd=fd, dst_dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        rename_to_free_name(step.temp, step.name, fd)
