"""Records in the journal which files a command changes.

Before a command it stores the contents of files, within the limits. After the command it records all files that the
scan finds changed as one entry.
"""

import gc
import json
import os
import stat
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.git.watch import GitChecks, in_short
from handrail.kernel.host.state_dir import State, read_text, write_text
from handrail.kernel.journal.blobs import BlobLost
from handrail.kernel.journal.commit_entry import count_lines
from handrail.kernel.journal.journal import ChangedPath, Journal, JournalEntry, KeptNode, Origin
from handrail.kernel.journal.many_contents import store_files
from handrail.kernel.journal.scanner import Changed, Fingerprint, Scan
from handrail.kernel.journal.unkept import save_unkept
from handrail.model.faults import WriteFailed
from handrail.model.limits import Limits
from handrail.model.paths import quote
from handrail.model.warnings import JournaledElsewhere, NotJournaled, NotKept, ScanIncomplete, ToolWarning, UndoPartial

if TYPE_CHECKING:
    from handrail.kernel.journal.layer_scan import LayerScan
    from handrail.kernel.layers.workspace_layer import WorkspaceLayer

_KIND = 0o170000
_NAMED_PATHS = 5
"""The most paths that a warning names."""
_Warn = Callable[[ToolWarning], None]


class _Kept(NamedTuple):
    """Holds a stored entry, and the fingerprint that the file had then."""

    fingerprint: Fingerprint
    node: KeptNode


class CommandChanges:
    """Finds and records changes by commands. All sessions of a workspace share it: each change is recorded once."""

    def __init__(
        self,
        boundary: FsBoundary,
        state: State,
        journal: Journal,
        limits: Limits,
        layer: "WorkspaceLayer | None" = None,
    ) -> None:
        self._fd, self._state, self._journal, self._limits = boundary.fd, state, journal, limits
        self._protected = boundary.protected
        self._lock = threading.Lock()
        self._leave_out = frozenset([os.path.relpath(state.path, boundary.root)])
        self._layer = layer
        self._scan = self._new_scan()
        self._index = index_path(state)
        self._kept = load_index(self._index)
        self._last: int | None = None
        """The number of the last journal entry at the last scan; None before the first scan."""
        self._left: dict[str, tuple[Origin, Callable[[], bool]]] = {}
        """By session: the last call that left processes running, and whether some still run."""

    def _new_scan(self) -> "Scan | LayerScan":
        if self._layer is None:
            return Scan(self._fd, self._limits, self._leave_out)
        from handrail.kernel.journal.layer_scan import LayerScan  # noqa: PLC0415  for layered workspaces only

        return LayerScan(self._layer, self._fd, self._limits)

    @contextmanager
    def around(
        self,
        origin: Origin,
        warn: _Warn,
        affected: list[str],
        git: GitChecks,
        *,
        busy: Callable[[], bool] = lambda: False,
        goes_on: bool = False,
    ) -> Iterator[None]:
        """Record the changes of a command that runs inside the block.

        `goes_on` means that the command has been running since the last scan: all changes since then are its own.
        `busy` tells whether processes of the session run; what they change until the next command is recorded then.
        """
        try:
            self._journal.check()
            with self._lock:
                if self._last is None or not goes_on:
                    self._record_left(warn)
                    with _collector_paused():
                        first, unkept = self._last is None, self._store_new_contents()
                    if first:
                        save_unkept(self._state, unkept)
                    if first and unkept:
                        warn(UndoPartial(len(unkept), [quote(path) for path in unkept[:_NAMED_PATHS]]))
                    git.before(self._scan.repositories)
        except OSError as error:
            if self._journal.mode == "required":
                why = f"cannot write the required journal: {error.strerror or error}"
                raise WriteFailed(self._journal.path, why) from error
            warn(NotJournaled(error.strerror or str(error)))
            yield
            return
        try:
            yield
        finally:
            try:
                with self._lock:
                    if self._record(origin, warn, affected, git) and self._journal.elsewhere:
                        warn(JournaledElsewhere(os.path.dirname(self._journal.path), self._journal.elsewhere))
                    if busy():
                        self._left[origin.session] = origin, busy
            except OSError as error:
                warn(NotJournaled(error.strerror or str(error)))

    def end_session(self, session: str) -> None:
        """Record what the processes of a session changed after its last call, once they have ended."""
        with self._lock:
            if session in self._left:
                self._record_left(lambda _: None)
                self._left.pop(session, None)

    def _record_left(self, warn: _Warn) -> None:
        """Record the changes since the last scan for the processes that earlier calls left running."""
        if not self._left or self._last is None:
            return
        origin, _ = list(self._left.values())[-1]
        files, lost = self._found(warn)
        self._left = {session: left for session, left in self._left.items() if left[1]()}
        if files:
            about = f"(running on) {origin.about}"
            self._append(origin._replace(about=about), files, "; ".join(_about(lost)))

    def close(self) -> None:
        """Stop watching, and save the index of stored contents for the next session."""
        self._scan.close()
        if self._last is not None:
            body = json.dumps(self._kept)
            write_text(self._index, f"{zlib.crc32(body.encode()):08x}\n{body}")

    def find_repositories(self) -> list[str]:
        """Return the repositories that exist now. The next scan still finds all changes."""
        scan = self._new_scan()
        try:
            scan.changed()
            return scan.repositories
        finally:
            scan.close()

    def cannot_keep(self) -> list[str]:
        """Return what undo could not restore if a command changed it now: directories and files, too large or many."""
        scan, room = self._new_scan(), _Room(self._limits)
        try:
            found = [(path, new) for path, (_, new) in self._without_protected(scan.changed()).items()]
            files = [(path, new) for path, new in found if new is not None and stat.S_ISREG(new[0])]
            new = [each for each in files if _unkept(self._former(*each))]
            lost = [path for path, mark in _in_order(scan, new) if not room.takes(mark[2])]
            return [f"{path}/" for path in scan.too_large] + lost
        finally:
            scan.close()

    def _store_new_contents(self) -> list[str]:
        """Store the contents of files that changed since the last scan; return what cannot be kept.

        The newest come first: they have no other copy. Files that ignore files exclude come last.
        """
        self._last, room = self._journal.last_number(), _Room(self._limits)
        wanted, known = [], self._kept
        for path, (old, new) in self._changed().items():
            kept = known.get(path)
            if new is None or new[0] & _KIND == stat.S_IFDIR:
                known.pop(path, None)
            elif old == new or kept is None or kept.fingerprint != new:
                wanted.append((path, new))
        unkept = [f"{path}/" for path in self._scan.too_large]
        ordered = _in_order(self._scan, wanted)
        nodes = self._read(ordered, room)
        for path, new in ordered:
            if _unkept(nodes[path]):
                known.pop(path, None)
                unkept.append(path)
            else:
                known[path] = _Kept(new, nodes[path])
        return unkept

    def _record(self, origin: Origin, warn: _Warn, affected: list[str], git: GitChecks) -> bool:
        """Append an entry for the changes since the last scan. Returns whether there were any."""
        git.settle()
        files, lost = self._found(warn)
        findings = git.after(self._scan.repositories, self._scan.unseen)
        for finding in findings:
            warn(finding)
        if not files and not findings:
            return False
        affected.extend(quote(file.path) for file in files)
        self._append(origin, files, "; ".join([*_about(lost), *map(in_short, findings)]))
        return True

    def _found(self, warn: _Warn) -> tuple[list[ChangedPath], list[str]]:
        """Return the files that changed since the last scan, and the paths of those whose former content is lost."""
        files = self._changed_files()
        self._last = self._journal.last_number()
        recorded = files[: self._limits.scan_kept_files]
        if len(files) > len(recorded) or self._scan.cut:
            warn(ScanIncomplete(self._limits.scan_files if self._scan.cut else self._limits.scan_kept_files))
        lost = [file.path for file in recorded if _unkept(file.before)]
        if lost:
            warn(NotKept(len(lost), [quote(path) for path in lost[:_NAMED_PATHS]]))
        return recorded, lost

    def _changed_files(self) -> list[ChangedPath]:
        """Return the files that differ from their state before the command, sorted by path; store the new contents."""
        recorded, room = self._recorded_since(), _Room(self._limits)
        former: dict[str, KeptNode | None] = {}
        changed = self._changed()
        for path, (old, new) in sorted(changed.items()):
            before = recorded[path] if path in recorded else self._former(path, old)
            if old != new or not _unkept(before):  # otherwise: no sign of a change, and nothing to compare with
                former[path] = before
        present = [(path, new) for path in former if (new := changed[path][1]) is not None]
        nodes = self._read(present, room)
        files: list[ChangedPath] = []
        for path, before in former.items():
            after = nodes.get(path)
            self._remember(path, changed[path][1], after)
            if _differ(before, after):
                files.append(ChangedPath(path, before, after, self._count(before, after)))
        return files

    def _append(self, origin: Origin, files: list[ChangedPath], note: str) -> None:
        with self._state.lock():
            self._journal.append(self._journal.compose(origin, files, note))
            self._last = self._journal.last_number()

    def _changed(self) -> Changed:
        """Return the changes without protected files: no command reaches these, so another process changed them."""
        return self._without_protected(self._scan.changed())

    def _without_protected(self, changed: Changed) -> Changed:
        protected = self._protected
        if protected is None:
            return changed
        return {path: fingerprints for path, fingerprints in changed.items() if not protected.hides(path)}

    def _recorded_since(self) -> dict[str, KeptNode | None]:
        """Return the new state of files that commits changed since the last scan; commits have their own entries."""
        found: dict[str, KeptNode | None] = {}
        for entry in self._journal.backwards():
            if isinstance(entry, JournalEntry):
                if entry.n <= (self._last or 0):
                    break
                for file in entry.files:
                    found.setdefault(file.path, file.after)
        return found

    def _former(self, path: str, old: Fingerprint | None) -> KeptNode | None:
        """Return the entry before the command, with its content if that is stored."""
        if old is None or stat.S_ISDIR(old[0]):
            return old and KeptNode("directory", "", stat.S_IMODE(old[0]))
        kept = self._kept.get(path)
        if (
            kept is not None
            and kept.fingerprint == old
            and (kept.node.kind == "link" or self._journal.blobs.has(kept.node.kept))
        ):
            return kept.node
        return self._former_below(path, old) or KeptNode("file", "", stat.S_IMODE(old[0]))

    def _former_below(self, path: str, old: Fingerprint) -> KeptNode | None:
        """Return the entry before the command from below the layer; None if it is not there, or too large."""
        if isinstance(self._scan, Scan):
            return None
        data = self._scan.content_before(path, old, self._limits.scan_file_bytes)
        if data is None:
            return None
        if stat.S_ISLNK(old[0]):
            return KeptNode("link", os.fsdecode(data), stat.S_IMODE(old[0]))
        return KeptNode("file", self._journal.blobs.put(data), stat.S_IMODE(old[0]))

    def _remember(self, path: str, fingerprint: Fingerprint | None, node: KeptNode | None) -> None:
        if fingerprint is None or node is None or node.kind == "directory" or _unkept(node):
            self._kept.pop(path, None)
        else:
            self._kept[path] = _Kept(fingerprint, node)

    def _read(self, files: list[tuple[str, Fingerprint]], room: "_Room") -> dict[str, KeptNode]:
        """Return the entries at some paths; store contents while there is room. Raises OSError if storing fails."""
        nodes, stored = dict[str, KeptNode](), dict[str, Fingerprint]()
        bare = dict[int, KeptNode]()
        """The entry without content, by mode; many files share it."""
        for path, mark in files:
            mode = mark[0]
            if mode not in bare:
                kind = "directory" if stat.S_ISDIR(mode) else "file"
                bare[mode] = KeptNode(kind, "", stat.S_IMODE(mode))
            nodes[path] = bare[mode]
            if mode & _KIND == stat.S_IFLNK or (mode & _KIND == stat.S_IFREG and room.takes(mark[2])):
                stored[path] = mark
        nodes.update(store_files(self._fd, self._journal.blobs, stored))
        return nodes

    def _count(self, before: KeptNode | None, after: KeptNode | None) -> tuple[int, int] | None:
        """Return the numbers of lines added and removed; None if a content is not stored or not a file."""
        texts = []
        for node in (before, after):
            if node is not None and (node.kind != "file" or _unkept(node)):
                return None
            try:
                texts.append(self._journal.blobs.get(node.kept) if node else b"")
            except BlobLost:
                return None
        return count_lines(*texts)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Let Python's collector wait while thousands of small tuples come into being, which it would walk each time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Room:
    """Counts how many files and bytes may still be stored."""

    def __init__(self, limits: Limits) -> None:
        self._files, self._bytes, self._largest = limits.scan_kept_files, limits.scan_kept_bytes, limits.scan_file_bytes

    def takes(self, size: int) -> bool:
        """Reserve room for a file. Returns False if there is not enough."""
        if size > self._largest or size > self._bytes or not self._files:
            return False
        self._files -= 1
        self._bytes -= size
        return True


def _in_order(scan: "Scan | LayerScan", files: list[tuple[str, Fingerprint]]) -> list[tuple[str, Fingerprint]]:
    """Sort files as they are stored: the newest first, those that ignore files exclude last."""
    newest_first = sorted(files, key=lambda each: -each[1][3])
    return sorted(newest_first, key=lambda each: scan.is_ignored(each[0])) if scan.has_ignored else newest_first


def index_path(state: State) -> str:
    """Return the path of the index of stored contents."""
    return os.path.join(state.path, "kept.json")


def load_index(path: str) -> dict[str, _Kept]:
    """Return fingerprint and stored entry of each file, by path; nothing if the index is damaged."""
    try:
        checksum, _, body = read_text(path).partition("\n")
        if checksum != f"{zlib.crc32(body.encode()):08x}":
            return {}
        found = json.loads(body).items()
        return {path: _Kept((*mark,), KeptNode(*node)) for path, (mark, node) in found}
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):  # a snapshot may hold any index
        return {}


def _about(lost: list[str]) -> list[str]:
    return [f"not kept: the former contents of {len(lost)} files"] if lost else []


def _unkept(node: KeptNode | None) -> bool:
    return node is not None and node.kind == "file" and not node.kept


def _differ(before: KeptNode | None, after: KeptNode | None) -> bool:
    if before is not None and after is not None and before.kind == after.kind == "directory":
        return False
    return before != after or _unkept(after)
