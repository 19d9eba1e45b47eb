"""Checks git directories before and after commands, so that git outside the sandbox runs nothing a command planted.

Mounts guard the names that git obeys (`sandbox/view/occupied_names.py`). This module handles the rest: names that
ordinary git work does not write, links, and unfinished operations that contain commands. It sets them aside after the
last command has ended. Entries that existed before the first command belong to the user and stay.
"""

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from handrail.kernel.git.armed_trees import Armed, ArmedTrees
from handrail.kernel.git.aside import Aside, head_of, rename_submodule
from handrail.kernel.git.repositories import Known, Repositories, below, find, kind_at
from handrail.kernel.git.sweep import Offence, Sweep
from handrail.model.limits import Limits
from handrail.model.paths import quote
from handrail.model.warnings import GitArmed, GitNotSetAside, GitSetAside, GitUnseen, ToolWarning
from handrail.ops.git_names import ASIDE, OCCUPIED

_Warn = Callable[[ToolWarning], None]
_ALWAYS = ("link", "special", "submodule")
"""The kinds that are set aside even while other commands run; the rest may be their current work."""
_NAMED = 20
"""The most entries of one git directory that the answer names one by one."""


class GitWatch:
    """Watches the git directories for one session. A lock on the record shows commands of other processes."""

    def __init__(
        self, root_fd: int, root: str, record: str, limits: Limits, busy: Callable[[], bool], *, on: bool = True
    ) -> None:
        """`record` is a path in the state directory; `busy` tells whether a command of this session runs."""
        self._on = on
        self._root_fd, self._root, self._record_path, self._limits, self._busy = root_fd, root, record, limits, busy
        self._sweep, self._known = Sweep(root_fd, limits.scan_directories, limits.scan_depth), Known()
        self._lock, self._running, self._record = threading.Lock(), 0, -1
        self._own: dict[str, str] = {}
        """The marks of the offences that existed before the first command, by path: they belong to the user."""
        self._parked: list[list[str]] = []
        """Unfinished operations that were set aside: git directory, name there, own name, content of HEAD."""
        self._guarded: frozenset[str] | None = None
        """The git directories and `.git` files that existed when the session ran its first command."""
        self._arms, self._armed = ArmedTrees(root_fd, root, self._sweep), Armed()
        self._left: Armed | None = None
        """The programs that git would have run before the first command of a killed session; None without one."""
        self._trees: list[str] = []
        """The repositories that the last scan found."""
        self._quiet = True
        """True if no process of the session has run since the last scan: then the user made what is new."""

    @contextmanager
    def around(self, warn: _Warn) -> Iterator["GitChecks"]:
        """Check the git directories before and after a command that runs inside the block."""
        if not self._on:
            yield GitChecks(None)
            return
        with self._lock:
            self._running += 1
            if self._record < 0:
                for note in self._begin():
                    warn(note)
        checks = GitChecks(self)
        try:
            yield checks
        finally:
            if not checks.ended:
                for note in checks.after(None):
                    warn(note)

    def close(self, find_repositories: Callable[[], list[str]]) -> list[ToolWarning]:
        """Check for the last time, after all commands have ended. Returns the warnings.

        `find_repositories` is called only if a process ran after the last scan.
        """
        with self._lock:
            if not self._quiet:
                self._trees = find_repositories()
            notes = self._end(self._repositories(), last=True) if self._record >= 0 else []
            return notes if self._quiet else [*notes, *self._newly_armed(self._trees)]

    def remember(self, trees: Iterable[str]) -> None:
        """Remember what git would run in these trees before a command.

        If a process of the session may have made something since the last scan, what the last scan found stays valid.
        If an earlier session was killed, what it found before its first command counts.
        """
        with self._lock:
            if self._quiet and self._running <= 1:
                self._armed = self._armed_among([*trees, ""]) if self._left is None else self._left
                self._left = None
                self._write_record({"armed": self._armed, **self._read_record()})
            self._quiet = False

    def settle(self) -> None:
        """ToolWarning, before the scan after a command, whether all processes of the session have ended."""
        with self._lock:
            self._quiet = self._running <= 1 and not self._busy()

    def ended(self, trees: Iterable[str] | None, unseen: Iterable[str] = ()) -> list[ToolWarning]:
        """Check after a command. Returns warnings about offences, and about trees in which git would run new things.

        `trees` is None if there was no scan. `unseen` are directories with too many new directories to search them.
        """
        with self._lock:
            self._running -= 1
            if trees is not None:
                self._trees = list(trees)
            notes = self._end(self._repositories())
            notes += [GitUnseen(quote(each)) for each in unseen]
            return [*notes, *self._newly_armed(self._trees if trees is not None else [])]

    def _newly_armed(self, trees: list[str]) -> list[ToolWarning]:
        """Return warnings about the trees in which git would run something that it would not have run before."""
        before, now = self._armed, self._armed_among([*trees, ""])
        self._armed = now if trees else {**before, **now}
        return [GitArmed(quote(tree) or ".", what[0]) for tree, what in now.items() if before.get(tree) != what]

    def _armed_among(self, trees: Iterable[str]) -> Armed:
        return self._arms.among(trees, self._guarded or frozenset())

    # ── the record ──

    def _begin(self) -> list[ToolWarning]:
        """Record the offences that exist before the first command, and clean up after a killed process."""
        try:
            self._record = os.open(self._record_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:  # the state directory is not usable: other processes do not see our commands
            self._record = os.memfd_create("handrail-git")
        notes, alone = [], self._take_lock(fcntl.LOCK_EX | fcntl.LOCK_NB)
        facts = self._read_record()
        repositories = self._repositories()
        if self._guarded is None:
            self._guarded = frozenset([*(each.path for each in repositories.directories), *repositories.files])
        self._own, self._parked = facts.get("own") or {}, facts.get("parked") or []
        if alone:
            if facts.get("own") is not None:
                notes = self._set_aside(repositories, whole=True)
                known = facts.get("armed")
                self._left = None if known is None else {tree: (what, mark) for tree, (what, mark) in known.items()}
            restored = self._put_back()
            self._own = {each.path: each.mark for each in self._offences(repositories) if each.path not in restored}
            self._own |= dict.fromkeys(self._unchecked(repositories), "")
            self._write_record({"own": self._own, "parked": []})
        self._take_lock(fcntl.LOCK_SH)
        return notes

    def _end(self, repositories: Repositories, *, last: bool = False) -> list[ToolWarning]:
        """Set offences aside, and close the record if no command of this session runs."""
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
        with suppress(ValueError, RecursionError):  # a kill cut the record short: ignore it
            found = json.loads(os.pread(self._record, os.fstat(self._record).st_size, 0) or b"{}")
            if _is_record(found):
                return dict(found)
        return {}

    def _write_record(self, facts: dict[str, Any]) -> None:
        data = json.dumps(facts).encode()
        with suppress(OSError):  # a full disk: the record matters only after a kill
            os.pwrite(self._record, data, 0)
            os.ftruncate(self._record, len(data))

    # ── offences ──

    def _repositories(self) -> Repositories:
        return find(self._root_fd, self._root, self._limits, self._known)

    def _offences(self, repositories: Repositories) -> list[Offence]:
        """Return the offences in guarded git directories, and in submodules that are not guarded."""
        guarded = self._guarded or frozenset()
        found = self._sweep.search(each for each in repositories.directories if each.path in guarded)
        too_large = [(each, "") for each in repositories.unread if each.endswith("/index")]
        stems = tuple(f"{each}/" for each in repositories.sparse)
        hidden = [tree for tree in self._trees if f"{tree}/".startswith(stems)] if stems else []
        for tree, (_, mark) in self._armed_among([*repositories.submodules, *hidden]).items():
            found.append(Offence(tree, ".git", "submodule", mark))
        found += self._opaque(repositories, {each.directory for each in found})
        for index, mark in (*((path, " ".join(map(str, mark))) for path, mark in repositories.odd), *too_large):
            directory, _, name = index.rpartition("/")
            if directory in guarded:
                found.append(Offence(directory, name, "outside" if mark else "large", mark))
        return [*found, *self._replaced(guarded)]

    def _opaque(self, repositories: Repositories, known: set[str]) -> Iterator[Offence]:
        """Yield the submodules that no mount guards and whose own submodules cannot be known."""
        for tree in dict.fromkeys(repositories.opaque):
            dot_git = below(tree, ".git")
            ours = not tree or tree in known or dot_git in (self._guarded or ())
            if not ours and kind_at(self._root_fd, dot_git) not in ("absent", "unreachable"):
                yield Offence(tree, ".git", "submodule", "opaque")

    def _replaced(self, guarded: frozenset[str]) -> Iterator[Offence]:
        """Yield entries that replaced a link of the user at a name that git obeys: no mount can guard a link."""
        for path in self._own:
            directory, _, name = path.rpartition("/")
            if directory in guarded and name in OCCUPIED and kind_at(self._root_fd, path) in ("directory", "file"):
                yield Offence(directory, name, "replaced", "")

    def _set_aside(self, repositories: Repositories, *, whole: bool) -> list[ToolWarning]:
        """Set the new offences aside, and return the warnings.

        Without `whole`, other commands still run: unfinished operations and unknown names may be their current work.
        """
        by_directory: dict[str, list[Offence]] = {}
        for each in self._offences(repositories):
            if self._own.get(each.path) != each.mark and (whole or each.why in _ALWAYS):
                by_directory.setdefault(each.directory, []).append(each)
        notes: list[ToolWarning] = []
        for directory, offences in by_directory.items():
            moved = list(self._move_all(directory, offences))
            notes += moved[:_NAMED]
            if len(moved) > _NAMED:
                last = offences[-1]
                where = f"{quote(directory)}/{ASIDE}"
                notes.append(GitSetAside(f"the rest in {quote(directory)} ({len(moved) - _NAMED})", last.why, where))
        return [*notes, *(GitUnseen(quote(each)) for each in self._unchecked(repositories) if each not in self._own)]

    def _move_all(self, directory: str, offences: list[Offence]) -> Iterator[ToolWarning]:
        """Move offences of one directory away, and yield a warning about each."""
        try:
            if offences[0].why == "submodule":
                yield self._moved(offences[0], rename_submodule(self._root_fd, directory))
                return
            with closing(Aside(self._root_fd, directory)) as aside:
                for each in offences:
                    try:
                        yield self._moved(each, aside.move(each.name))
                    except OSError as error:
                        yield GitNotSetAside(quote(each.path), each.why, error.strerror or str(error))
        except OSError as error:
            for each in offences:
                yield GitNotSetAside(quote(each.path), each.why, error.strerror or str(error))

    def _moved(self, offence: Offence, where: str) -> ToolWarning:
        if offence.why == "orders":
            kept = where.rpartition("/")[2]
            self._parked.append([offence.directory, kept, offence.name, head_of(self._root_fd, offence.directory)])
        return GitSetAside(quote(offence.path), offence.why, quote(where))

    def _unchecked(self, repositories: Repositories) -> list[str]:
        """Return the paths that are too large or too many to check."""
        return [*repositories.unread, *([".git"] if self._sweep.cut else [])]

    def _put_back(self) -> set[str]:
        """Move the unfinished operations of commands back, unless HEAD has moved. Returns their paths."""
        parked, self._parked = self._parked, []
        for directory, kept, name, head in parked:
            if head_of(self._root_fd, directory) == head:
                # If the user removed it, or denies access, it stays aside.
                with suppress(OSError), closing(Aside(self._root_fd, directory)) as aside:
                    aside.put_back(kept, name)
        return {f"{directory}/{name}" for directory, _, name, _ in parked}


class GitChecks:
    """Runs the checks before and after one command; without a watch, runs none."""

    def __init__(self, watch: GitWatch | None) -> None:
        self._watch, self.ended = watch, False

    def before(self, trees: Iterable[str]) -> None:
        """Check before the command. `trees` are the directories that have a `.git` or look like a git directory."""
        if self._watch is not None:
            self._watch.remember(trees)

    def settle(self) -> None:
        """ToolWarning whether all processes have ended. Call this before the scan that precedes `after`."""
        if self._watch is not None:
            self._watch.settle()

    def after(self, trees: Iterable[str] | None, unseen: Iterable[str] = ()) -> list[ToolWarning]:
        """Check after the command. Returns the warnings about these trees and about entries set aside."""
        self.ended = True
        return self._watch.ended(trees, unseen) if self._watch is not None else []


def _is_record(found: Any) -> bool:
    """Return whether a session wrote a record: a snapshot from elsewhere may hold any, also one that leads outside."""
    try:
        own, armed, parked = found.get("own") or {}, found.get("armed") or {}, found.get("parked") or []
        texts = [*own, *own.values(), *armed, *(text for tree, mark in armed.values() for text in (tree, mark))]
        names = [name for directory, kept, name, _ in parked for name in (directory, kept, name)]
        texts += [head for _, _, _, head in parked]
        return all(isinstance(each, str) for each in texts) and all(".." not in each.split("/") for each in names)
    except (AttributeError, TypeError, ValueError):
        return False


def in_short(note: ToolWarning) -> str:
    """Return a warning as a short text for the journal."""
    if isinstance(note, GitSetAside):
        return f"git: {note.name} set aside ({note.why}) as {note.where}"
    if isinstance(note, GitNotSetAside):
        return f"git: {note.name} ({note.why}) could not be set aside"
    if isinstance(note, GitArmed):
        return f"git: the repository in {note.path} has {note.what} that git may run"
    return f"git: {note.what} not checked" if isinstance(note, GitUnseen) else ""
