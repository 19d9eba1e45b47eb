"""What commands do to the files, for the journal: contents are kept before a command as far as the bounds allow, and
what the scan finds changed afterwards is recorded as one entry.
"""

import json
import os
import stat
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.resolver import O_PATH
from handrail.kernel.fs.small_files import open_file
from handrail.kernel.git.watch import Round, in_short
from handrail.kernel.host.state_dir import State, read_text, write_text
from handrail.kernel.journal.blobs import BlobLost
from handrail.kernel.journal.commit_entry import count_lines
from handrail.kernel.journal.journal import ChangedPath, Journal, JournalEntry, KeptNode, Origin
from handrail.kernel.journal.scanner import Changed, Fingerprint, Scan, sign_of
from handrail.model.faults import Fault, WriteFailed
from handrail.model.limits import Limits
from handrail.model.paths import quote
from handrail.model.warnings import JournaledElsewhere, NotJournaled, NotKept, ScanIncomplete

_NAMED = 5
Tell = Callable[[Fault], None]


class _Kept(NamedTuple):
    sign: Fingerprint
    node: KeptNode


class CommandChanges:
    """Shared by all sessions of an open workspace: each change is found once, and recorded for one command."""

    def __init__(self, boundary: FsBoundary, state: State, journal: Journal, limits: Limits) -> None:
        self._fd, self._state, self._journal, self._limits = boundary.fd, state, journal, limits
        self._protected = boundary.protected
        self._lock = threading.Lock()
        self._scan = Scan(boundary.fd, limits, frozenset([os.path.relpath(state.path, boundary.root)]))
        self._index = index_path(state)
        kept = load_index(self._index).items()
        self._kept: dict[str, _Kept] = {path: _Kept((*sign,), KeptNode(*node)) for path, (sign, node) in kept}
        self._last: int | None = None
        """The last entry of the journal when the files were last looked at."""

    @contextmanager
    def around(
        self, origin: Origin, tell: Tell, affected: list[str], git: Round, *, goes_on: bool = False
    ) -> Iterator[None]:
        """Run a command inside. `goes_on`: it has been running since the last look, so what changed since is its."""
        try:
            self._journal.check()
            with self._lock:
                if self._last is None or not goes_on:
                    self._look()
                    git.before(self._scan.repositories)
        except OSError as error:
            if self._journal.mode == "required":
                why = f"the journal, which is required: {error.strerror or error}"
                raise WriteFailed(self._journal.path, why) from error
            tell(NotJournaled(error.strerror or str(error)))
            yield
            return
        try:
            yield
        finally:
            try:
                with self._lock:
                    if self._record(origin, tell, affected, git) and self._journal.elsewhere:
                        tell(JournaledElsewhere(os.path.dirname(self._journal.path), self._journal.elsewhere))
            except OSError as error:
                tell(NotJournaled(error.strerror or str(error)))

    def close(self) -> None:
        self._scan.close()
        if self._last is not None:
            body = json.dumps(self._kept)
            write_text(self._index, f"{zlib.crc32(body.encode()):08x}\n{body}")

    def _look(self) -> None:
        """Keep what is new since the last look, the newest first: that is what nobody has a copy of."""
        self._last, room = self._journal.last_number(), _Room(self._limits)
        wanted = []
        for path, (old, new) in self._changed().items():
            kept = self._kept.get(path)
            if new is None or stat.S_ISDIR(new[0]):
                self._kept.pop(path, None)
            elif old == new or kept is None or kept.sign != new:
                wanted.append((path, new))
        for path, sign in sorted(wanted, key=lambda each: each[1][3], reverse=True):
            self._remember(path, sign, self._read(path, sign, room))

    def _record(self, origin: Origin, tell: Tell, affected: list[str], git: Round) -> bool:
        """Whether there was something to be recorded."""
        recorded, room = self._recorded_since(), _Room(self._limits)
        files: list[ChangedPath] = []
        for path, (old, new) in sorted(self._changed().items()):
            before = recorded[path] if path in recorded else self._former(path, old)
            if old == new and _unkept(before):
                continue  # nothing says that it changed, and there is nothing to compare it with
            after = self._read(path, new, room)
            self._remember(path, new, after)
            if _differ(before, after):
                files.append(ChangedPath(path, before, after, self._count(before, after)))
        self._last = self._journal.last_number()
        most = self._limits.scan_kept_files
        if len(files) > most or self._scan.cut:
            tell(ScanIncomplete(self._limits.scan_files if self._scan.cut else most))
        lost = [file.path for file in files[:most] if _unkept(file.before)]
        if lost:
            tell(NotKept(len(lost), [quote(path) for path in lost[:_NAMED]]))
        found = git.after(self._scan.repositories)
        for each in found:
            tell(each)
        if files or found:
            affected.extend(quote(file.path) for file in files[:most])
            note = "; ".join([*_about(lost), *map(in_short, found)])
            with self._state.lock():
                self._journal.append(self._journal.compose(origin, files[:most], note))
                self._last = self._journal.last_number()
        return bool(files or found)

    def _changed(self) -> Changed:
        """What is protected is neither named nor kept: commands do not reach it, so that somebody else changed it."""
        changed, protected = self._scan.changed(), self._protected
        return (
            changed
            if protected is None
            else {path: signs for path, signs in changed.items() if not protected.hides(path)}
        )

    def _recorded_since(self) -> dict[str, KeptNode | None]:
        """What commits, which have entries of their own, made of files since the last look."""
        found: dict[str, KeptNode | None] = {}
        for entry in self._journal.backwards():
            if isinstance(entry, JournalEntry):
                if entry.n <= (self._last or 0):
                    break
                for file in entry.files:
                    found.setdefault(file.path, file.after)
        return found

    def _former(self, path: str, sign: Fingerprint | None) -> KeptNode | None:
        if sign is None or stat.S_ISDIR(sign[0]):
            return sign and KeptNode("directory", "", stat.S_IMODE(sign[0]))
        kept = self._kept.get(path)
        if (
            kept is not None
            and kept.sign == sign
            and (kept.node.kind == "link" or self._journal.blobs.has(kept.node.kept))
        ):
            return kept.node
        return KeptNode("file", "", stat.S_IMODE(sign[0]))

    def _remember(self, path: str, sign: Fingerprint | None, node: KeptNode | None) -> None:
        if sign is None or node is None or node.kind == "directory" or _unkept(node):
            self._kept.pop(path, None)
        else:
            self._kept[path] = _Kept(sign, node)

    def _read(self, path: str, sign: Fingerprint | None, room: "_Room") -> KeptNode | None:
        """What stands there, its content kept if there is room. Raises OSError where it cannot be kept."""
        if sign is None:
            return None
        mode = stat.S_IMODE(sign[0])
        if stat.S_ISDIR(sign[0]):
            return KeptNode("directory", "", mode)
        try:
            if stat.S_ISLNK(sign[0]):
                return KeptNode("link", self._link(path), mode)
            data = self._data(path, sign) if room.takes(sign[2]) else None
        except OSError:
            data = None  # it went again, or is not to be read
        return KeptNode("file", "" if data is None else self._journal.blobs.put(data), mode)

    def _data(self, path: str, sign: Fingerprint) -> bytes | None:
        fd = open_file(self._fd, path)
        try:
            data = b""
            while len(data) < sign[2] and (more := os.read(fd, sign[2] - len(data))):
                data += more
            return data if sign_of(os.fstat(fd)) == sign else None  # else it is not what was looked at
        finally:
            os.close(fd)

    def _link(self, path: str) -> str:
        fd = open_file(self._fd, path, O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return os.readlink("", dir_fd=fd)
        finally:
            os.close(fd)

    def _count(self, before: KeptNode | None, after: KeptNode | None) -> tuple[int, int] | None:
        texts = []
        for node in (before, after):
            if node is not None and (node.kind != "file" or _unkept(node)):
                return None
            try:
                texts.append(self._journal.blobs.get(node.kept) if node else b"")
            except BlobLost:
                return None
        return count_lines(*texts)


class _Room:
    """How much may still be kept."""

    def __init__(self, limits: Limits) -> None:
        self._files, self._bytes, self._largest = limits.scan_kept_files, limits.scan_kept_bytes, limits.scan_file_bytes

    def takes(self, size: int) -> bool:
        if size > self._largest or size > self._bytes or not self._files:
            return False
        self._files -= 1
        self._bytes -= size
        return True


def index_path(state: State) -> str:
    return os.path.join(state.path, "kept.json")


def load_index(path: str) -> dict[str, Any]:
    """What is kept of the files as they are, by path; nothing where the index is damaged."""
    try:
        told, _, body = read_text(path).partition("\n")
        if told != f"{zlib.crc32(body.encode()):08x}":
            return {}
        found: dict[str, Any] = json.loads(body)
    except (OSError, ValueError):
        return {}
    return found


def _about(lost: list[str]) -> list[str]:
    return [f"not kept: the former contents of {len(lost)} files"] if lost else []


def _unkept(node: KeptNode | None) -> bool:
    return node is not None and node.kind == "file" and not node.kept


def _differ(before: KeptNode | None, after: KeptNode | None) -> bool:
    if before is not None and after is not None and before.kind == after.kind == "directory":
        return False
    return before != after or _unkept(after)
