"""Reads and appends the journal: one line for each commit, command or undo, in a file outside of the workspace.

Each line is JSON with a checksum, so damage to one line does not affect the others. `blobs.py` stores the contents.
"""

import errno
import json
import os
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any, BinaryIO, NamedTuple

from handrail.kernel.fs.syscalls import pwrite_all
from handrail.kernel.host.state_dir import State, existing_directory
from handrail.kernel.journal.blobs import Blobs
from handrail.model.limits import DAY
from handrail.model.paths import quote
from handrail.model.record import record

_CHUNK = 1 << 16
_to_json = json.JSONEncoder(separators=(",", ":")).encode
_SUM = len(',"sum":"00000000"}')


class KeptNode(NamedTuple):
    """Holds the entry under a name. `kept` is the blob of a file, empty if not stored, or the target of a link."""

    kind: str
    """file, link, directory"""
    kept: str = ""
    mode: int = 0


class ChangedPath(NamedTuple):
    """Holds one path that changed, with the entry before and after; None means that there was no entry."""

    path: str
    before: KeptNode | None
    after: KeptNode | None
    lines: tuple[int, int] | None = None
    """The numbers of lines added and removed; None if not counted."""


class Origin(NamedTuple):
    """Holds the session and call that made a change, and who approved it."""

    kind: str = "commit"
    """commit, command, undo, redo, restore, mark"""
    session: str = ""
    call: int = 0
    call_id: str | None = None
    dialect: str = ""
    tool: str = ""
    by: str = ""
    undoes: tuple[int, ...] = ()
    about: str = ""
    """The command, shortened, or the name of the mark."""
    amends: int | None = None
    """The earlier entry that this one completes: a hook changed a file right after the tool did."""


class JournalEntry(NamedTuple):
    """Holds one line of the journal."""

    n: int
    time: float
    origin: Origin
    files: tuple[ChangedPath, ...]
    note: str = ""
    """Contents that could not be stored, and findings in git directories."""


class HistoryEntry(NamedTuple):
    """Holds one entry of the history, and whether it is undone."""

    entry: JournalEntry
    undone: bool

    @property
    def n(self) -> int:
        return self.entry.n

    @property
    def time(self) -> float:
        """Seconds since 1970."""
        return self.entry.time

    @property
    def tool(self) -> str:
        """The tool that made the change; undo, redo or restore if no tool did."""
        return self.entry.origin.tool or self.entry.origin.kind

    @property
    def files(self) -> list[str]:
        """The paths that changed, directories included, as tools write them."""
        return [quote(file.path) for file in self.entry.files]

    @property
    def undoable(self) -> bool:
        """True if the entry is not undone and all its contents are stored. Only a dry run finds conflicting changes."""
        nodes = [node for file in self.entry.files for node in (file.before, file.after)]
        return (
            not self.undone
            and self.entry.origin.kind != "mark"
            and all(node is None or node.kind != "file" or node.kept for node in nodes)
        )


class Damage(NamedTuple):
    """Holds the position of damaged bytes in the journal."""

    at: int
    size: int


class JournalUnreadable(OSError):  # noqa: N818  named after the fact that the command line reports
    """Says that the journal file cannot be read."""

    def __init__(self, error: OSError, path: str) -> None:
        super().__init__(error.errno, error.strerror, path)


@record
class Journal:
    """Reads and appends the entries of a workspace. `mode` is on, required or off. Write only under the lock."""

    path: str
    blobs: Blobs
    mode: str = "on"
    trouble: str = ""
    """Why the journal missed a change since the last `take_trouble()`."""
    elsewhere: str = ""
    """Why the journal is not in its usual directory; empty if it is."""
    _end: tuple[int, int, int] = field(default=(0, 0, 0))
    """Inode and size of the file after our last write, and the number of the last entry."""

    @property
    def on(self) -> bool:
        """True if changes are recorded."""
        return self.mode != "off"

    def check(self) -> None:
        """Raise OSError if the journal is required but could only be written to a temporary directory."""
        if self.mode == "required" and self.elsewhere:
            raise OSError(errno.EACCES, self.elsewhere)

    def compose(self, origin: Origin, files: Iterable[ChangedPath], note: str = "") -> bytes:
        """Return the line of the next entry without writing it."""
        self.check()
        return encode(JournalEntry(self.last_number() + 1, round(time.time(), 3), origin, tuple(files), note))

    def append(self, line: bytes) -> None:
        """Write a line to the end of the journal: all of it or nothing."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            found = os.fstat(fd)
            as_left = (found.st_ino, found.st_size) == self._end[:2]
            start = found.st_size if as_left else _clean_end(fd, found.st_size, line)
            try:
                pwrite_all(fd, line, start)
            except OSError:
                os.ftruncate(fd, start)  # a partial line would look like damage
                raise
            self._end = (found.st_ino, start + len(line), _number(line))
        finally:
            os.close(fd)

    def ensure(self, line: bytes) -> None:
        """Append the line of a killed process, unless the journal already has the whole line."""
        if self.last_number() < _number(line) or not _is_whole(self.path):
            self.append(line)

    @property
    def pruned(self) -> str:
        """The path of a file whose time says when the journal and the files next to it were last pruned."""
        return os.path.join(os.path.dirname(self.path), "pruned")

    def wants_pruning(self) -> bool:
        """Return whether the last pruning was more than a day ago."""
        try:
            return os.stat(self.pruned).st_mtime < time.time() - DAY
        except OSError:  # never pruned, or the time is unknown
            return True

    def take_trouble(self) -> str:
        """Return why the journal missed a change, and forget it; empty if it missed none."""
        trouble, self.trouble = self.trouble, ""
        return trouble

    def backwards(self) -> Iterator[JournalEntry | Damage]:
        """Yield the entries, the newest first; a `Damage` for each line that cannot be read."""
        for at, line in lines_backwards(self.path):
            entry = decode(line)
            yield Damage(at, len(line)) if entry is None else entry

    def listed(self, session: str | None = None) -> Iterator[HistoryEntry | Damage]:
        """Yield the entries, the newest first, each with its amendments and whether a later entry undid it."""
        undone: set[int] = set()
        for entry in with_amendments(self.backwards()):
            if isinstance(entry, Damage):
                yield entry
                continue
            if entry.n not in undone:
                undone.update(entry.origin.undoes)
            if session in (None, entry.origin.session):
                yield HistoryEntry(entry, entry.n in undone)

    def entry(self, n: int) -> JournalEntry | None:
        """Return the entry with number `n`; None if there is none. Uses bisection, because the numbers only rise."""
        try:
            with open(self.path, "rb") as file:
                found = _find(file, n)
                return found and _amended(found, _amendments(file, n))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise JournalUnreadable(error, self.path) from None

    def last_number(self) -> int:
        """Return the number of the newest entry, counting damaged lines; 0 if there is no entry."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            return 0
        if self._end[:2] == (found.st_ino, found.st_size):
            return self._end[2]
        damaged = 0
        for each in self.backwards():
            if isinstance(each, JournalEntry):
                return each.n + damaged
            damaged += each.at + each.size < found.st_size  # an incomplete last line does not count
        return damaged


def with_amendments(entries: Iterable[JournalEntry | Damage]) -> Iterator[JournalEntry | Damage]:
    """Yield entries, the newest first, each together with the later entries that complete it."""
    waiting: dict[int, list[JournalEntry]] = {}
    for entry in entries:
        if isinstance(entry, JournalEntry) and entry.origin.amends is not None:
            waiting.setdefault(entry.origin.amends, []).insert(0, entry)
        else:
            yield entry if isinstance(entry, Damage) else _amended(entry, waiting.pop(entry.n, []))
    for amendments in waiting.values():  # the first entry was pruned, or is damaged
        yield from reversed(amendments)


def _amended(entry: JournalEntry, amendments: list[JournalEntry]) -> JournalEntry:
    """Return an entry with the state after its amendments, the oldest of which comes first."""
    files = {file.path: file for file in entry.files}
    for later in amendments:
        for file in later.files:
            first = files.get(file.path, file)
            files[file.path] = file._replace(before=first.before)
    return entry._replace(files=tuple(files.values()))


def open_journal(root: str) -> tuple[State, Journal]:
    """Return the state and the journal of a workspace that is not open, for reading."""
    state = State(os.path.realpath(existing_directory(root)))
    return state, journal_of(state)


def journal_of(state: State, mode: str = "on", *, sync: bool = True) -> Journal:
    """Return the journal in a state directory."""
    blobs = Blobs(os.path.join(state.path, "blobs"), sync=sync)
    return Journal(os.path.join(state.path, "journal.jsonl"), blobs, mode, elsewhere=state.warning or "")


def encode(entry: JournalEntry) -> bytes:
    """Return the line of an entry, with its checksum."""
    facts: dict[str, Any] = {"n": entry.n, "time": entry.time}
    facts |= {name: value for name in Origin._fields if (value := getattr(entry.origin, name)) not in ("", None, ())}
    facts["files"] = [list(file) for file in entry.files]
    if entry.note:
        facts["note"] = entry.note
    return _with_checksum(_to_json(facts).encode()) + b"\n"


def _with_checksum(body: bytes) -> bytes:
    return b'%b,"sum":"%08x"}' % (body[:-1], zlib.crc32(body))


def decode(line: bytes) -> JournalEntry | None:
    """Return the entry of a line; None if the line is damaged."""
    body = line[:-_SUM] + b"}"
    if line != _with_checksum(body):
        return None
    try:
        facts = json.loads(body)
        if not isinstance(facts["n"], int) or not isinstance(facts["time"], int | float):
            return None
        origin = {name: facts[name] for name in Origin._fields if name in facts}
        origin["undoes"] = tuple(facts.get("undoes", ()))
        files = tuple(map(_changed_path, facts["files"]))
        return JournalEntry(facts["n"], facts["time"], Origin(**origin), files, facts.get("note", ""))
    except (ValueError, KeyError, TypeError, RecursionError):  # a snapshot from elsewhere may hold any line
        return None


def _changed_path(file: list[Any]) -> ChangedPath:
    path, before, after, lines = file
    if not isinstance(path, str):
        raise TypeError(path)
    return ChangedPath(path, _kept_node(before), _kept_node(after), lines and tuple(lines))


def _kept_node(found: Any) -> KeptNode | None:
    if found and [*map(type, found)] != [str, str, int]:
        raise TypeError(found)
    return found and KeptNode(*found)


def _number(line: bytes) -> int:
    return int(line[len(b'{"n":') : line.index(b",")])


def _is_whole(path: str) -> bool:
    """Return whether the last line is complete."""
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def _clean_end(fd: int, size: int, line: bytes) -> int:
    """Return the offset of the next line: over its own cut beginning, or after any other incomplete last line."""
    if not size or os.pread(fd, 1, size - 1) == b"\n":
        return size
    start = max(0, size - len(line))
    broken = os.pread(fd, size - start, start).rpartition(b"\n")[2]
    if line.startswith(broken):
        return size - len(broken)
    pwrite_all(fd, b"\n", size)
    return size + 1


def lines_backwards(path: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file, the last first, each with its offset; skip empty lines."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise JournalUnreadable(error, path) from None
    try:
        at, held = os.fstat(fd).st_size, b""
        while at > 0:
            start = max(0, at - _CHUNK)
            held = os.pread(fd, at - start, start) + held
            at = start
            first, *lines = held.split(b"\n")
            end = at + len(held)
            for line in reversed(lines):
                end -= len(line) + 1
                if line:
                    yield end + 1, line
            held = first
        if held:
            yield 0, held
    except OSError as error:
        raise JournalUnreadable(error, path) from None
    finally:
        os.close(fd)


def _find(file: BinaryIO, n: int) -> JournalEntry | None:
    low, high = 0, file.seek(0, os.SEEK_END)
    while high - low > _CHUNK:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline()
        at, entry = _next_entry(file)
        if entry is None or entry.n > n:
            high = middle
        else:
            low = at
    file.seek(low)
    _, entry = _next_entry(file)
    while entry is not None and entry.n < n:
        _, entry = _next_entry(file)
    return entry if entry is not None and entry.n == n else None


def _amendments(file: BinaryIO, n: int) -> list[JournalEntry]:
    """Return the entries in the rest of the file that complete entry `n`, the oldest first."""
    mark = b'"amends":%d,' % n
    found = [decode(line.removesuffix(b"\n")) for line in iter(file.readline, b"") if mark in line]
    return [entry for entry in found if entry is not None and entry.origin.amends == n]


def _next_entry(file: BinaryIO) -> tuple[int, JournalEntry | None]:
    """Return the next undamaged entry with its offset; None as entry at the end of the file."""
    at = file.tell()
    for line in iter(file.readline, b""):
        entry = decode(line.removesuffix(b"\n"))
        if entry is not None:
            return at, entry
        at += len(line)
    return at, None
