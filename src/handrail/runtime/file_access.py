"""Reads, lists and changes the files of the workspace for one call; asks for approval before a change."""

import stat
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from handrail.model.approval import Verdict
from handrail.model.effects import Effect, needs_approval
from handrail.model.faults import (
    AccessDenied,
    AlreadyExists,
    BadLineRange,
    Conflict,
    HomePath,
    NotFound,
    PathFault,
    TooLarge,
)
from handrail.model.files import (
    Change,
    File,
    FileEntry,
    Listing,
    MakeDirectory,
    Page,
    Put,
    Remove,
    RemoveDirectory,
    Restore,
    Version,
)
from handrail.model.hints import BinaryShown, OtherEncoding
from handrail.model.limits import BINARY_CHECK_BYTES, BYTES_PER_TOKEN
from handrail.model.paths import quote, unquote
from handrail.model.warnings import (
    CleanupFailed,
    JournaledElsewhere,
    LinesUncounted,
    LongFile,
    NotJournaled,
)
from handrail.ops.listing import looks_binary
from handrail.ops.media_types import media_type
from handrail.runtime.content_hints import encoding_hints, oddities

if TYPE_CHECKING:
    from handrail.model.media import Media
    from handrail.ops.patch import Action, FilePatch, PatchOutcome
    from handrail.runtime.call import Call


BOTH_TREES = "*"
"""The mount of a call that changes resolved paths of any tree: an undo. No tool has it."""


class Approved(NamedTuple):
    """Holds approved changes and the resolved path of each."""

    changes: list[Change]
    places: list[str]
    shown: tuple[str, ...]
    """Every path that changes, quoted."""
    verdict: Verdict


class Files:
    """Reads, lists and changes the files of the workspace for one call."""

    def __init__(self, call: "Call") -> None:
        self._call, self._services = call, call.session.services
        self._reader = self._services.reader_of(call.mount)
        self._boundary = self._reader.boundary
        self._shows = not call.trial and not needs_approval(call.effects)

    def read(self, path: str) -> File:
        """Read a whole file and note that the session has seen it."""
        try:
            file = self._reader.read(path)
        except NotFound:
            self._missed(path)
            raise
        self._saw(file.place, file.version, file.data)
        self._note_encoding(path, file.data)
        return file

    def read_if_there(self, path: str) -> File | None:
        """Read a whole file; None if it does not exist."""
        try:
            return self.read(path)
        except NotFound:
            return None

    def page(self, path: str, first: int = 1, count: int | None = None, room: int | None = None) -> Page:
        """Read `count` lines from line `first` on, at most `room` bytes. Notes that the session has seen the file."""
        try:
            page = self._reader.page(path, first, count, room)
        except NotFound:
            self._missed(path)
            raise
        if page.version is not None:
            self._saw(page.place, page.version, page.data if len(page.data) == page.size else None)
        self._note_encoding(path, page.data)
        if not page.complete:
            self._call.warnings.append(LinesUncounted(self._services.limits.page_seconds))
        else:
            self._note_length(page)
        return page

    def _note_length(self, page: Page) -> None:
        """Say which lines of a file are shown if the whole file is longer than an answer should be."""
        budget, tokens = self._services.powers.answer_tokens, page.size // BYTES_PER_TOKEN
        if tokens > budget > 0 and page.count and not needs_approval(self._call.effects):
            last = page.first + page.count - 1
            self._call.warnings.append(LongFile(page.first, last, page.total_lines, tokens))

    def note_binary(self, path: str) -> None:
        """Add the warning that a file is binary, unless it is text in another encoding."""
        if not any(isinstance(each, OtherEncoding) for each in self._call.warnings):
            self._call.warnings.append(BinaryShown(path, media_type(path) or ""))

    def _note_encoding(self, path: str, data: bytes) -> None:
        """Warn of a text that is not UTF-8 if the tool shows it."""
        if self._shows and b"\0" in data:
            self._call.warnings += encoding_hints(self._reader, path, self._call.warnings)

    def lines(self, path: str, first: int, last: int | None, *, room: int | None = None, content: bool = True) -> Page:
        """Read the lines from `first` to `last`, or to the end; without `content`, only count the lines of the file.

        Raises BadLineRange if the file has no such lines.
        """
        count = None if last is None else max(0, last - first + 1)
        page = self.page(path, first, count if content else 0, room)
        if first > max(page.total_lines, 1) or (last is not None and last < first):
            raise BadLineRange(path, first, last, page.total_lines)
        return page

    def _saw(self, place: str, version: Version, data: bytes | None) -> None:
        """Note a file as seen if the tool only reads: a tool that edits does not show the file to the model."""
        if place and self._shows:
            self._call.session.seen.note(place, version, data)

    def _missed(self, path: str) -> None:
        if self._shows:
            with suppress(PathFault):  # a dangling link has no resolved path
                self._call.session.seen.forget(self.target(path))

    def head(self, path: str, count: int) -> tuple[bytes, int]:
        """Return the first bytes of a file, and its size."""
        try:
            data, size = self._reader.head(path, count)
        except NotFound:
            self._missed(path)
            raise
        self._note_encoding(path, data)
        return data, size

    def media(self, path: str, *, scale: bool = True) -> "Media | None":
        """Read an image or a PDF for a model; None for every other file. Scales a large image down if `scale`."""
        from handrail.runtime.read_media import read_media  # noqa: PLC0415  most calls read text

        return read_media(self._call, path, scale=scale)

    def text(self, path: str, data: bytes) -> str:
        """Return bytes of a file as text. Raises NotText if the file is an image or a PDF."""
        try:
            return data.decode()
        except UnicodeDecodeError:
            from handrail.runtime.read_media import refuse_media  # noqa: PLC0415  most files are text

            refuse_media(self._call, path)
            if looks_binary(data[:BINARY_CHECK_BYTES]):
                self.note_binary(path)
            return data.decode(errors="replace")

    def entries(self, path: str) -> list[FileEntry]:
        """List a directory with the kind, size and time of each entry."""
        return self._reader.entries(path)

    def names(self, path: str) -> list[str]:
        """Return all names in a directory, hidden ones included."""
        return self._reader.names(path)

    def entry(self, path: str) -> FileEntry:
        """Return name, kind, size and time of a path, links followed."""
        return self._reader.stat(path)

    def kind(self, path: str) -> str | None:
        """Return the kind of what is at a path, links followed; None if nothing is there."""
        return self._reader.kind(path)

    def listing(self, path: str) -> Listing:
        """List the names in a directory, by kind."""
        return self._reader.listing(path)

    def stem(self, directory: str) -> str:
        """Return the prefix of the names in a directory: its path relative to the root, and a slash."""
        place = self._boundary.locate(directory)
        place.close()
        return f"{place.rel}/" if place.rel else ""

    def missing_parents(self, path: str) -> list[str] | None:
        """Return the parent directories that do not exist yet; None if the directory itself exists."""
        place, found = self._boundary.locate_with_stat(path, future=True)
        place.close()
        if found is not None and stat.S_ISDIR(found.st_mode):
            return None
        parts = place.target.split("/")
        return [quote("/".join(parts[:count])) for count in range(len(parts) - len(place.rest), len(parts))]

    def target(self, path: str, *, follow: bool = True) -> str:
        """Return a path relative to the root, with links resolved, whether or not it exists.

        Without `follow`, a link in the last name is not resolved.
        """
        place = self._boundary.locate(path, follow=follow, future=True)
        place.close()
        return place.target

    def relative(self, path: str) -> str:
        """Return a path relative to the root, quoted; links in it stay, unless `..` follows one of them."""
        parts = self._boundary.split(path).parts
        return quote(self.target(path, follow=False) if ".." in parts else "/".join(parts))

    def read_before(self, path: str) -> File | None:
        """Read a file that the session has read before; None if it does not exist. Raises NotReadYet for others."""
        from handrail.model.editor_faults import NotReadYet  # noqa: PLC0415  few dialects are that strict

        file = self.read_if_there(path)
        if file is not None and not self._call.session.seen.knows(file.place or self.target(path)):
            raise NotReadYet(path)
        return file

    def is_link(self, path: str) -> bool:
        """Return whether the path itself is a symbolic link."""
        try:
            return stat.S_ISLNK(self._boundary.stat(path, follow=False).st_mode)
        except NotFound:
            return False

    def removal(self, path: str) -> Remove:
        """Return the change that deletes a file in its current state. Of a link, it deletes only the link."""
        try:
            linked = stat.S_ISLNK(self._boundary.stat(path, follow=False).st_mode)
            return Remove(path, None if linked else self.read(path))
        except (TooLarge, AccessDenied):
            return Remove(path)

    def overwrite(self, path: str, data: bytes) -> bool:
        """Write a whole file, new or existing. Returns whether the file existed."""
        old = self.read_if_there(path)
        self.put(path, data, old)
        return old is not None

    def put(self, path: str, data: bytes, old: File | None) -> None:
        """Write a whole file that was just read, or that did not exist."""
        try:
            self.commit(Put(path, data, old))
        except AlreadyExists:  # created after the read: the retry overwrites it
            raise Conflict(path) from None

    def apply_patch(self, text: str) -> "list[PatchOutcome]":
        """Apply a unified diff or a `*** Begin Patch` envelope: all of its changes or none."""
        from handrail.ops.patch import parse  # noqa: PLC0415  most calls apply no patch

        return self._apply(parse(text))

    def apply_operation(self, action: "Action", path: str, diff: str, target: str = "") -> "list[PatchOutcome]":
        """Create, change, move or delete one file by the section of an envelope without the lines around it."""
        from handrail.ops.patch import parse_operation  # noqa: PLC0415  most calls apply no patch

        return self._apply([parse_operation(action, path, diff, target)])

    def _apply(self, patches: "list[FilePatch]") -> "list[PatchOutcome]":
        from handrail.runtime.patching import apply_patches  # noqa: PLC0415  most calls apply no patch

        return apply_patches(self, patches, self._services.limits)

    def commit(self, *changes: Change) -> None:
        """Ask for the changes, then make all of them or none. Drops changes that change nothing, without asking.

        Raises HomePath for a new file below `~`, a directory that does not exist.
        """
        for change in changes:
            if change.path.startswith("~/") and self._services.reader.kind("./~") is None:
                raise HomePath(change.path)
        approved = self.ask(*changes)
        if approved is not None:
            self.carry_out(approved)
            self._call.warnings += [note for change in approved.changes for note in oddities(change)]

    def ask(self, *changes: Change) -> Approved | None:
        """Ask whether the changes may be made; None if they would change nothing."""
        targets = [self._target_of(change) for change in changes]
        real = [(change, to) for change, to in zip(changes, targets, strict=True) if not _changes_nothing(change)]
        if not real:
            return None
        self._refuse_stale(real)
        made, places = [change for change, _ in real], [to for _, to in real]
        shown = tuple(quote(place) for change, to in real for place in _all_places(change, to))
        known = (made[0].path, places[0]) if len(made) == 1 and isinstance(made[0], (Put, Remove)) else None
        verdict = self._call.ask(_effects(made), known=known, targets=shown, changes=tuple(made))
        return Approved(made, places, shown, verdict)

    def _target_of(self, change: Change) -> str:
        """Return the resolved path of a change. Only a call without a tree of its own may name paths of both trees."""
        anywhere = self._call.mount == BOTH_TREES
        boundary = self._services.trees.of(unquote(change.path)) if anywhere else self._boundary
        return self._services.writer.targets([change], boundary)[0]

    def carry_out(self, approved: Approved, kind: str = "commit", undoes: tuple[int, ...] = ()) -> None:
        """Make all of the approved changes or none, and record them. Raises Conflict if a file has changed since."""
        origin = self._call.origin(approved.verdict, kind, undoes)
        try:
            with (
                self._call.session.part("commit") as span,
                self._services.writer.locked(approved.changes[0].path) as writer,
            ):
                versions = writer.commit(approved.changes, approved.places, origin)
                if span:
                    from handrail.runtime.spans import commit_facts  # noqa: PLC0415  off by default

                    span.set_attributes(commit_facts(approved.changes, self._services.journal))
                self._wrote(approved, versions)
                self._note_for_hooks(approved, versions)
        finally:
            if why := self._services.writer.take_trouble():
                self._call.warnings.append(CleanupFailed(why))
        self._call.files_affected.extend(approved.shown)
        if trouble := self._services.journal.take_trouble():
            self._call.warnings.append(NotJournaled(trouble))
        elif self._services.journal.on and self._services.journal.elsewhere:
            self._call.warnings.append(JournaledElsewhere(self._services.state.path, self._services.journal.elsewhere))

    def _note_for_hooks(self, approved: Approved, versions: list[Version | None]) -> None:
        """Note what hooks may change next, with the journal entry that their change completes."""
        if self._call.session.hooks is None:
            return
        from handrail.runtime.hook_changes import Written  # noqa: PLC0415  most sessions have no hooks

        journal = self._services.journal
        entry = journal.last_number() if journal.on else 0
        done = zip(approved.changes, approved.places, versions, strict=True)
        made = {place: Written(version, entry) for change, place, version in done if isinstance(change, Put)}
        self._call.written.update(made)

    def _refuse_stale(self, real: list[tuple[Change, str]]) -> None:
        seen = self._call.session.seen
        for change, place in real:
            if not isinstance(change, Put) and not (isinstance(change, Remove) and change.base is not None):
                continue
            if seen.changed(place, change.base):
                with (
                    self._services.state.lock()
                ):  # a parallel call may just have written the file: wait until it has noted that
                    self._target_of(change)  # raises Conflict if the file is not even the one that was just read
                    if seen.changed(place, change.base):
                        raise seen.fault(change.path, place, change.base)

    def _wrote(self, approved: Approved, versions: list[Version | None]) -> None:
        """Note what this session has written, so that it does not count as changed by another process."""
        for change, place, version in zip(approved.changes, approved.places, versions, strict=True):
            if isinstance(change, Put):
                self._call.session.seen.wrote(place, version, change.data)
            elif isinstance(change, Remove):
                self._call.session.seen.wrote(place, None, None)
            elif isinstance(change, Restore):
                self._call.session.seen.wrote(place, version, change.to.data if change.to else None)
                for rel, _, _ in change.inner_changes():
                    self._call.session.seen.forget(f"{place}/{rel}")


def _changes_nothing(change: Change) -> bool:
    return (
        isinstance(change, Put)
        and change.base is not None
        and change.data == change.base.data
        and change.mode in (None, change.base.mode)
    )


def _all_places(change: Change, place: str) -> list[str]:
    within = [f"{place}/{rel}" for rel, _, _ in change.inner_changes()] if isinstance(change, Restore) else []
    return [place, *within]


def _effects(changes: list[Change]) -> Effect:
    found = Effect.READ
    for change in changes:
        if isinstance(change, (Remove, RemoveDirectory)) or (isinstance(change, Restore) and change.to is None):
            found |= Effect.DELETE
        elif isinstance(change, Restore) and change.swaps_directory:
            found |= Effect.WRITE | Effect.DELETE
        elif isinstance(change, MakeDirectory) or change.base is None:
            found |= Effect.CREATE
        else:
            found |= Effect.WRITE
    return found
