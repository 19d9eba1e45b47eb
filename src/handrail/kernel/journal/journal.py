"""The journal: one line for each change of the workspace, kept outside of it. Append-only JSON lines, each with a
checksum, so that damage costs the lines it strikes and no others. Contents are in `blobs.py`.
"""

import errno
import json
import os
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any, BinaryIO, NamedTuple

from handrail.kernel.host.state_dir import State, existing_directory
from handrail.kernel.journal.blobs import Blobs
from handrail.model.limits import DAY
from handrail.model.paths import quote
from handrail.model.record import record

_CHUNK = 1 << 16
_to_json = json.JSONEncoder(separators=(",", ":")).encode
_SUM = len(',"sum":"00000000"}')


class KeptNode(NamedTuple):
    """What stood under a name. `kept` is a file's blob or a link's target; a file that was not kept has none."""

    kind: str
    """file, link, directory"""
    kept: str = ""
    mode: int = 0


class ChangedPath(NamedTuple):
    """One name that changed; None is a name that was free."""

    path: str
    before: KeptNode | None
    after: KeptNode | None
    lines: tuple[int, int] | None = None
    """Added and removed; None where they were not counted."""


class Origin(NamedTuple):
    """Who asked for a change, and who approved it."""

    kind: str = "commit"
    """commit, command, undo, redo, restore"""
    session: str = ""
    call: int = 0
    call_id: str | None = None
    dialect: str = ""
    tool: str = ""
    by: str = ""
    undoes: tuple[int, ...] = ()
    about: str = ""
    """The command that was run, in short."""


class JournalEntry(NamedTuple):
    n: int
    time: float
    origin: Origin
    files: tuple[ChangedPath, ...]
    note: str = ""
    """What could not be kept, and why."""


class HistoryEntry(NamedTuple):
    """One entry of the history, and whether it still stands."""

    entry: JournalEntry
    undone: bool

    @property
    def n(self) -> int:
        return self.entry.n

    @property
    def time(self) -> float:
        """In seconds since 1970."""
        return self.entry.time

    @property
    def tool(self) -> str:
        """The tool that was called; for what took something back: undo, redo or restore."""
        return self.entry.origin.tool or self.entry.origin.kind

    @property
    def files(self) -> list[str]:
        """The names that changed, directories included, as tools write them."""
        return [quote(file.path) for file in self.entry.files]

    @property
    def undoable(self) -> bool:
        """It still stands, and its contents were kept. Whether a later change is in the way, a dry run says."""
        nodes = [node for file in self.entry.files for node in (file.before, file.after)]
        return not self.undone and all(node is None or node.kind != "file" or node.kept for node in nodes)


class Damage(NamedTuple):
    """Bytes in the journal that cannot be read."""

    at: int
    size: int


class JournalUnreadable(OSError):  # noqa: N818  said to the person, like any other trouble of the disk
    def __init__(self, error: OSError, path: str) -> None:
        super().__init__(error.errno, error.strerror, path)


@record
class Journal:
    """`mode` is on, required or off. Writing happens under the workspace's lock."""

    path: str
    blobs: Blobs
    mode: str = "on"
    trouble: str = ""
    """What could not be recorded since somebody asked."""
    elsewhere: str = ""
    """Why it does not lie where it belongs."""
    _end: tuple[int, int, int] = field(default=(0, 0, 0))
    """The file's inode and size as we left it, and the last number in it."""

    @property
    def on(self) -> bool:
        return self.mode != "off"

    def check(self) -> None:
        """Raise OSError where changes must be recorded and could only be for a while."""
        if self.mode == "required" and self.elsewhere:
            raise OSError(errno.EACCES, self.elsewhere)

    def compose(self, origin: Origin, files: Iterable[ChangedPath], note: str = "") -> bytes:
        """The next line, finished but not written."""
        self.check()
        return encode(JournalEntry(self.last_number() + 1, round(time.time(), 3), origin, tuple(files), note))

    def append(self, line: bytes) -> None:
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            found = os.fstat(fd)
            as_left = (found.st_ino, found.st_size) == self._end[:2]
            start = found.st_size if as_left else _clean_end(fd, found.st_size, line)
            try:
                _write(fd, line, start)
            except OSError:
                os.ftruncate(fd, start)  # half a line would look like damage
                raise
            self._end = (found.st_ino, start + len(line), _number(line))
        finally:
            os.close(fd)

    def ensure(self, line: bytes) -> None:
        """Write what a killed process had finished but may not have written, or not to its end."""
        if self.last_number() < _number(line) or not _is_whole(self.path):
            self.append(line)

    @property
    def pruned(self) -> str:
        """A file whose date says when it was last pruned, and what lies beside it."""
        return os.path.join(os.path.dirname(self.path), "pruned")

    def wants_pruning(self) -> bool:
        try:
            return os.stat(self.pruned).st_mtime < time.time() - DAY
        except OSError:  # there is none yet, or it cannot be told
            return True

    def take_trouble(self) -> str:
        trouble, self.trouble = self.trouble, ""
        return trouble

    def backwards(self) -> Iterator[JournalEntry | Damage]:
        """From the newest on. What cannot be read comes as damage, and the rest goes on."""
        for at, line in lines_backwards(self.path):
            entry = decode(line)
            yield Damage(at, len(line)) if entry is None else entry

    def listed(self, session: str | None = None) -> Iterator[HistoryEntry | Damage]:
        """From the newest on, each with whether it is undone: only later ones can say so."""
        undone: set[int] = set()
        for entry in self.backwards():
            if isinstance(entry, Damage):
                yield entry
                continue
            if entry.n not in undone:
                undone.update(entry.origin.undoes)
            if session in (None, entry.origin.session):
                yield HistoryEntry(entry, entry.n in undone)

    def entry(self, n: int) -> JournalEntry | None:
        """By bisection: the numbers rise through the file."""
        try:
            with open(self.path, "rb") as file:
                return _find(file, n)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise JournalUnreadable(error, self.path) from None

    def last_number(self) -> int:
        """The number of the newest entry, damaged ones counted; 0 where there is none."""
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
            damaged += each.at + each.size < found.st_size  # one that was cut short had not got its number for good
        return damaged


def open_journal(root: str) -> tuple[State, Journal]:
    """The journal of a workspace that is not open, to look into."""
    state = State(os.path.realpath(existing_directory(root)))
    return state, journal_of(state)


def journal_of(state: State, mode: str = "on", *, sync: bool = True) -> Journal:
    blobs = Blobs(os.path.join(state.path, "blobs"), sync=sync)
    return Journal(os.path.join(state.path, "journal.jsonl"), blobs, mode, elsewhere=state.warning or "")


def encode(entry: JournalEntry) -> bytes:
    facts: dict[str, Any] = {"n": entry.n, "time": entry.time}
    facts |= {name: value for name in Origin._fields if (value := getattr(entry.origin, name)) not in ("", None, ())}
    facts["files"] = [list(file) for file in entry.files]
    if entry.note:
        facts["note"] = entry.note
    return _sealed(_to_json(facts).encode()) + b"\n"


def _sealed(body: bytes) -> bytes:
    return b'%b,"sum":"%08x"}' % (body[:-1], zlib.crc32(body))


def decode(line: bytes) -> JournalEntry | None:
    """None where the line is damaged."""
    body = line[:-_SUM] + b"}"
    if line != _sealed(body):
        return None
    try:
        facts = json.loads(body)
        origin = {name: facts[name] for name in Origin._fields if name in facts}
        origin["undoes"] = tuple(facts.get("undoes", ()))
        return JournalEntry(
            facts["n"], facts["time"], Origin(**origin), tuple(map(_touched, facts["files"])), facts.get("note", "")
        )
    except (ValueError, KeyError, TypeError):
        return None


def _touched(file: list[Any]) -> ChangedPath:
    path, before, after, lines = file
    return ChangedPath(path, before and KeptNode(*before), after and KeptNode(*after), lines and tuple(lines))


def _number(line: bytes) -> int:
    return int(line[len(b'{"n":') : line.index(b",")])


def _is_whole(path: str) -> bool:
    """Whether the last line has its end."""
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"


def _write(fd: int, line: bytes, at: int) -> None:
    view = memoryview(line)
    while view:
        written = os.pwrite(fd, view, at)
        at, view = at + written, view[written:]


def _clean_end(fd: int, size: int, line: bytes) -> int:
    """Where the next line goes: over its own beginning, if a kill cut it short; behind any other broken end."""
    if not size or os.pread(fd, 1, size - 1) == b"\n":
        return size
    start = max(0, size - len(line))
    broken = os.pread(fd, size - start, start).rpartition(b"\n")[2]
    if line.startswith(broken):
        return size - len(broken)
    _write(fd, b"\n", size)
    return size + 1


def lines_backwards(path: str) -> Iterator[tuple[int, bytes]]:
    """The lines from the last on, each with where it starts. Empty ones are left out."""
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


def _next_entry(file: BinaryIO) -> tuple[int, JournalEntry | None]:
    """The next line that can be read, and where it starts."""
    at = file.tell()
    for line in iter(file.readline, b""):
        entry = decode(line.removesuffix(b"\n"))
        if entry is not None:
            return at, entry
        at += len(line)
    return at, None
