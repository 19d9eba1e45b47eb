"""Looks at git directories around commands, so that git outside the sandbox runs nothing that a command planted.

Mounts keep the names that git obeys (`sandbox/guard.py`). What mounts cannot do is done here: names that ordinary git
work does not write, links, and unfinished operations that hold commands are set aside when the last command has ended.
What was there before the first one began is the user's own, and stays.
"""

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from handrail.kernel.fs.small_files import open_file
from handrail.kernel.git.repositories import (
    GitDirectory,
    Known,
    Repositories,
    below,
    find,
    kind_at,
    names_in,
    place_of,
    read_plain,
)
from handrail.kernel.git.sweep import Offence, Sweep, fingerprint, head_of, put_back, set_aside
from handrail.model.faults import Fault
from handrail.model.limits import MIB, Limits
from handrail.model.paths import quote
from handrail.model.warnings import GitArmed, GitNotSetAside, GitSetAside, GitUnseen, Note
from handrail.ops.git_names import ASIDE, is_plain_config

Tell = Callable[[Fault], None]
Signs = dict[str, tuple[str, str]]
"""By tree: what would run in it, and what that is known by."""


class GitWatch:
    """One session's. Commands of other sessions and processes are known by a lock on the record."""

    def __init__(
        self, root_fd: int, root: str, record: str, limits: Limits, busy: Callable[[], bool], *, on: bool = True
    ) -> None:
        """`record` is a file of ours; `busy` tells whether something of this session still runs."""
        self._on = on
        self._root_fd, self._root, self._record_path, self._limits, self._busy = root_fd, root, record, limits, busy
        self._sweep, self._known = Sweep(root_fd, limits.scan_directories), Known()
        self._lock, self._running, self._record = threading.Lock(), 0, -1
        self._own: dict[str, str] = {}
        """What was there before: the user's, by path and sign."""
        self._parked: list[list[str]] = []
        self._guarded: frozenset[str] | None = None
        self._armed: Signs = {}

    @contextmanager
    def around(self, tell: Tell) -> Iterator["Round"]:
        """Run a command inside."""
        if not self._on:
            yield Round(None)
            return
        with self._lock:
            self._running += 1
            if self._record < 0:
                for note in self._begin():
                    tell(note)
        looks = Round(self)
        try:
            yield looks
        finally:
            if not looks.ended:
                for note in looks.after(()):
                    tell(note)

    def close(self) -> list[Note]:
        """Look for the last time, when everything has ended."""
        with self._lock:
            return self._end(self._repositories(), last=True) if self._record >= 0 else []

    def remember(self, trees: Iterable[str]) -> None:
        with self._lock:
            self._armed = self._armed_among([*trees, ""])

    def ended(self, trees: Iterable[str]) -> list[Note]:
        with self._lock:
            self._running -= 1
            notes = self._end(self._repositories())
            before, self._armed = self._armed, self._armed_among([*trees, ""])
            new = [tree for tree, found in self._armed.items() if before.get(tree) != found]
            return [*notes, *(GitArmed(quote(tree) or ".", self._armed[tree][0]) for tree in new)]

    # ── the record ──

    def _begin(self) -> list[Note]:
        """Note what is there before the first command begins, and put right what a killed process left."""
        try:
            self._record = os.open(self._record_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:  # the state directory cannot be used: then nobody else hears of our commands
            self._record = os.memfd_create("handrail-git")
        notes, alone = [], self._take_lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
        told = self._read_record()
        repositories = self._repositories()
        if self._guarded is None:
            self._guarded = frozenset([*(each.path for each in repositories.directories), *repositories.files])
        self._own, self._parked = told.get("own") or {}, told.get("parked") or []
        if alone:
            if told.get("own") is not None:
                notes = self._set_aside(repositories, whole=True)
            theirs = self._put_back()
            self._own = {each.path: each.sign for each in self._offences(repositories) if each.path not in theirs}
            self._own |= dict.fromkeys(self._unseen(repositories), "")
            self._write_record({"own": self._own, "parked": []})
        self._take_lock(fcntl.LOCK_SH)
        return notes

    def _end(self, repositories: Repositories, *, last: bool = False) -> list[Note]:
        over = last or (self._running == 0 and not self._busy())
        alone = over and self._take_lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
        notes = self._set_aside(repositories, whole=alone)
        if alone:
            self._write_record({"parked": self._parked})
        if over:
            os.close(self._record)
            self._record = -1
        return notes

    def _take_lock(self, how: int) -> bool:
        try:
            fcntl.flock(self._record, how)
        except BlockingIOError:
            return False
        return True

    def _read_record(self) -> dict[str, Any]:
        with suppress(ValueError):  # cut short by a kill: it says nothing
            found = json.loads(os.pread(self._record, MIB, 0) or b"{}")
            if isinstance(found, dict):
                return found
        return {}

    def _write_record(self, facts: dict[str, Any]) -> None:
        data = json.dumps(facts).encode()
        with suppress(OSError):  # a full disk: only what a kill would leave is then not known
            os.pwrite(self._record, data, 0)
            os.ftruncate(self._record, len(data))

    # ── looking ──

    def _repositories(self) -> Repositories:
        return find(self._root_fd, self._root, self._limits, self._known)

    def _offences(self, repositories: Repositories) -> list[Offence]:
        """In git directories that were there when the session began, and in submodules that are not guarded."""
        guarded = self._guarded or frozenset()
        found = self._sweep.look(each for each in repositories.directories if each.path in guarded)
        for tree, (_, sign) in self._armed_among(repositories.submodules).items():
            found.append(Offence(tree, ".git", "submodule", sign))
        for index, number in repositories.odd:
            directory, _, name = index.rpartition("/")
            if directory in guarded:
                found.append(Offence(directory, name, "outside", " ".join(map(str, number))))
        return found

    def _set_aside(self, repositories: Repositories, *, whole: bool) -> list[Note]:
        """While other commands run only links go: what is unfinished, or not yet known, may be theirs."""
        notes: list[Note] = []
        for each in self._offences(repositories):
            if self._own.get(each.path) == each.sign or not (whole or each.why in ("link", "special", "submodule")):
                continue
            name = quote(each.path)
            try:
                where = self._move(each)
            except OSError as error:
                notes.append(GitNotSetAside(name, each.why, error.strerror or str(error)))
            else:
                notes.append(GitSetAside(name, each.why, quote(where)))
        return [*notes, *(GitUnseen(quote(each)) for each in self._unseen(repositories) if each not in self._own)]

    def _unseen(self, repositories: Repositories) -> list[str]:
        return [*repositories.unread, *([".git"] if self._sweep.cut else [])]

    def _move(self, offence: Offence) -> str:
        if offence.why == "submodule":
            return _rename_submodule(self._root_fd, offence.directory)
        where = set_aside(self._root_fd, offence)
        if offence.why == "orders":
            kept = where.rpartition("/")[2]
            self._parked.append([offence.directory, kept, offence.name, head_of(self._root_fd, offence.directory)])
        return where

    def _put_back(self) -> set[str]:
        """Give commands back the unfinished operations that they left, unless HEAD has moved. Returns their paths."""
        parked, self._parked = self._parked, []
        for directory, kept, name, head in parked:
            if head_of(self._root_fd, directory) == head:
                with suppress(OSError):  # the user has cleared it away, or closed the directory: it stays where it is
                    put_back(self._root_fd, directory, kept, name)
        return {f"{directory}/{name}" for directory, _, name, _ in parked}

    # ── repositories that are not guarded ──

    def _armed_among(self, trees: Iterable[str]) -> Signs:
        found: Signs = {}
        for tree in dict.fromkeys(trees):
            what = self._arms(tree)
            if what is not None:
                found[tree] = what
        return found

    def _arms(self, tree: str) -> tuple[str, str] | None:
        """What git would run in a tree with a `.git` that is not guarded (or that is a git directory itself)."""
        guarded = self._guarded or frozenset()
        dot_git = below(tree, ".git")
        kind = kind_at(self._root_fd, dot_git)
        if dot_git in guarded:
            return None
        if kind in ("link", "special", "unreachable"):
            return ("redirection", kind) if kind == "link" else None  # git takes no other for a repository
        if kind == "file":
            place = place_of(self._root_fd, tree, self._root)
            if place in guarded or any(place.startswith(f"{each}/modules/") for each in guarded):
                return None
            return "redirection", place or "elsewhere"
        if kind == "directory":
            return self._arms_of(dot_git)
        return self._arms_of(tree or ".") if self._looks_bare(tree or ".") else None

    def _looks_bare(self, tree: str) -> bool:
        """Whether git takes a directory without a `.git` for a repository."""
        kinds = [kind_at(self._root_fd, f"{tree}/{name}") for name in ("HEAD", "objects", "refs")]
        return not {"absent", "unreachable"}.intersection(kinds)

    def _arms_of(self, directory: str) -> tuple[str, str] | None:
        """All that git would run there: the first kind, and what all of it is known by."""
        found: list[tuple[str, str]] = []
        config = read_plain(self._root_fd, f"{directory}/config", MIB)
        if config is None and kind_at(self._root_fd, f"{directory}/config") not in ("absent", "unreachable"):
            found.append(("configuration", "unreadable"))
        if config is not None and not is_plain_config(config):
            found.append(("configuration", fingerprint(config)))
        if kind_at(self._root_fd, f"{directory}/commondir") not in ("absent", "unreachable"):
            found.append(("redirection", "commondir"))
        hooks = [name for name in names_in(self._root_fd, f"{directory}/hooks") if not name.endswith(".sample")]
        if hooks or kind_at(self._root_fd, f"{directory}/hooks") in ("link", "file"):
            found.append(("hooks", _dates(self._root_fd, f"{directory}/hooks", hooks)))
        offences = [each for each in self._sweep.look([GitDirectory(directory)]) if each.why in ("link", "orders")]
        if offences:
            found.append(("orders", "".join(sorted(each.path + each.sign for each in offences))))
        return (found[0][0], "|".join(sign for _, sign in found)) if found else None


class Round:
    """The looks around one command; without a watch, none."""

    def __init__(self, watch: GitWatch | None) -> None:
        self._watch, self.ended = watch, False

    def before(self, trees: Iterable[str]) -> None:
        """`trees` are those that have a `.git`, or look like a git directory, before the command."""
        if self._watch is not None:
            self._watch.remember(trees)

    def after(self, trees: Iterable[str]) -> list[Note]:
        """The same afterwards. Returns what is to be said about them, and about what was set aside."""
        self.ended = True
        return self._watch.ended(trees) if self._watch is not None else []


def in_short(note: Note) -> str:
    """A note as the history has it."""
    if isinstance(note, GitSetAside):
        return f"git: {note.name} set aside ({note.why}) as {note.where}"
    if isinstance(note, GitNotSetAside):
        return f"git: {note.name} ({note.why}) could not be set aside"
    if isinstance(note, GitArmed):
        return f"git: the repository in {note.path} has {note.what} that git may run"
    return f"git: {note.what} not looked through" if isinstance(note, GitUnseen) else ""


def _rename_submodule(root_fd: int, tree: str) -> str:
    fd = open_file(root_fd, tree, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        taken = set(os.listdir(fd))
        new = next(new for n in range(len(taken) + 1) if (new := f".git.{ASIDE}{n or ''}") not in taken)
        os.rename(".git", new, src_dir_fd=fd, dst_dir_fd=fd)
    finally:
        os.close(fd)
    return f"{tree}/{new}"


def _dates(root_fd: int, directory: str, names: list[str]) -> str:
    """What the files are known by."""
    known = []
    for name in names:
        with suppress(OSError):  # it went again
            about = os.stat(f"{directory}/{name}", dir_fd=root_fd, follow_symlinks=False)
            known.append(f"{name} {about.st_ino} {about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}")
    return "|".join(known)
