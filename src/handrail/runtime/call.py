"""The capability that a tool is handed for one call: what it may touch, and what it has to say beside its output."""

import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.kernel.journal.journal import Origin
from handrail.model.approval import ASK_THE_USER, Question, Verdict, ask
from handrail.model.effects import Effect, needs_approval
from handrail.model.faults import (
    AccessDenied,
    AlreadyExists,
    Cancelled,
    Conflict,
    Denied,
    Fault,
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
from handrail.model.limits import Limits
from handrail.model.paths import quote
from handrail.model.record import record
from handrail.model.warnings import JournaledElsewhere, LinesUncounted, NotJournaled, NotPutRight, RuleNotStored
from handrail.runtime.session import Session

if TYPE_CHECKING:
    from handrail.kernel.web.fetcher import Fetched, Target
    from handrail.runtime.commands import Commands
    from handrail.runtime.search import Finder


class Asked(NamedTuple):
    """Which call of its session it is, what its caller names it, and how the caller stops it."""

    number: int = 0
    call_id: str | None = None
    cancel: threading.Event | None = None


_ASKED_BY_NOBODY = Asked()
_OPEN_FOR_WRITING = "Open the workspace without --read-only, and without read_only in the configuration"


@record
class Call:
    """One call: what it may touch, and what it has to say beside its output."""

    session: Session
    dialect: str
    tool: str
    params: dict[str, Any]
    effects: Effect
    bodies: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    """The parameters that are paths."""
    asked: Asked = _ASKED_BY_NOBODY
    files_affected: list[str] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)
    """Facts to be said beside the answer, worded like faults."""
    metadata: dict[str, Any] = field(default_factory=dict)
    waited: float = 0.0
    """Seconds at the gate, which are not the tool's own."""

    @property
    def cancel(self) -> threading.Event | None:
        return self.asked.cancel

    @property
    def limits(self) -> Limits:
        return self.session.kernel.limits

    @property
    def root(self) -> str:
        return self.session.kernel.boundary.root

    @property
    def files(self) -> "Files":
        return Files(self)

    @property
    def finder(self) -> "Finder":
        from handrail.runtime.search import Finder  # noqa: PLC0415  only where something is searched

        return Finder(self)

    @property
    def commands(self) -> "Commands":
        from handrail.runtime.commands import Commands  # noqa: PLC0415  only where something is run

        return Commands(self)

    def fetch(self, url: str, seconds: float) -> "Fetched":
        fetcher = self.session.kernel.fetcher
        given = [name for name, value in self.params.items() if value == url]

        def ask(target: "Target", unasked: str = "redirect") -> None:
            meant = dict.fromkeys(given, target.normal)
            self.ask(Effect.FETCH, meant, host=target.host, unasked=unasked)

        ask(fetcher.target(url), unasked="")
        return fetcher.fetch(url, seconds, self.cancel, ask)

    def check_cancelled(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled

    def origin(self, verdict: Verdict, kind: str, undoes: tuple[int, ...] = (), about: str = "") -> Origin:
        """Who asks, for the journal."""
        who = (self.session.id, self.asked.number, self.asked.call_id, self.dialect, self.tool)
        return Origin(kind, *who, verdict.by, undoes, about)

    def begin(self) -> None:
        """Refuse what a rule forbids before the tool looks at anything: reading and previews are never asked about."""
        if not self.session.may_forbid(self.tool):
            return
        try:
            resolved = self._resolved(None, follow=Effect.DELETE not in self.effects)
        except Conflict:  # it leads nowhere: the tool will say so
            resolved = None
        ask(self.session.approver, self._question(self.effects, resolved=resolved, unasked="beginning"))

    def begin_again(self) -> None:
        """The file changed before the edit could land: forget what was said and work it out anew."""
        self.files_affected.clear()
        self.warnings.clear()
        self.metadata.clear()

    def ask(
        self, effects: Effect, meant: dict[str, Any] | None = None, known: tuple[str, str] | None = None, **shown: Any
    ) -> Verdict:
        """Pass the gate, or raise Denied. `shown` are the fields of the question that say what would happen, `meant`
        parameters as rules see them, `known` a path whose place was just looked up, and that place.
        """
        if self.session.read_only:
            raise Denied(self.tool, "the workspace is open for reading only", ASK_THE_USER, _OPEN_FOR_WRITING)
        self.check_cancelled()
        resolved, targets = self._resolved(known, follow=Effect.DELETE not in effects), shown.get("targets", ())
        named = [place for name in self.paths if isinstance(place := resolved.get(name), str)]
        guarded = self.session.kernel.guarded(dict.fromkeys([*targets, *named]))
        unnamed = [place for place in targets if place not in named]
        resolved |= (meant or {}) | ({"targets": unnamed} if unnamed else {})
        question = self._question(effects, resolved=resolved, guarded=guarded, **shown)
        began = time.perf_counter()
        try:
            with self.session.presence.away():
                verdict = ask(self.session.approver, question)
        finally:
            self.waited += time.perf_counter() - began
        if verdict.warning:
            self.warnings.append(RuleNotStored(verdict.warning))
        self.check_cancelled()
        return verdict

    def _question(self, effects: Effect, **shown: Any) -> Question:
        return Question(self.dialect, self.tool, self.params, effects, self.bodies, self.paths, root=self.root, **shown)

    def _resolved(self, known: tuple[str, str] | None, *, follow: bool) -> dict[str, Any]:
        """The parameters with every path as the place that it means. They were looked at before: one that leads nowhere
        now has been exchanged since.
        """
        resolved = dict(self.params)
        for name in self.paths & resolved.keys():
            if resolved[name] is not None:
                try:
                    given = resolved[name]
                    place = known[1] if known and given == known[0] else self.files.target(given, follow=follow)
                    resolved[name] = quote(place) or "."
                except PathFault:
                    raise Conflict(resolved[name]) from None
        return resolved


class Files:
    """The files of the workspace, as one call may use them."""

    def __init__(self, call: Call) -> None:
        self._call, self._kernel = call, call.session.kernel

    def read(self, path: str) -> File:
        try:
            file = self._kernel.reader.read(path)
        except NotFound:
            self._missed(path)
            raise
        self._saw(file.place, file.version, file.data)
        return file

    def read_if_there(self, path: str) -> File | None:
        try:
            return self.read(path)
        except NotFound:
            return None

    def page(self, path: str, first: int = 1, count: int | None = None, room: int | None = None) -> Page:
        try:
            page = self._kernel.reader.page(path, first, count, room)
        except NotFound:
            self._missed(path)
            raise
        if page.version is not None:
            self._saw(page.place, page.version, page.data if len(page.data) == page.size else None)
        if not page.complete:
            self._call.warnings.append(LinesUncounted(self._kernel.limits.page_seconds))
        return page

    def _saw(self, place: str, version: Version, data: bytes | None) -> None:
        """A tool that only reads shows the file; one that edits looks at it by itself, which counts for nothing."""
        if place and not needs_approval(self._call.effects):
            self._call.session.seen.note(place, version, data)

    def _missed(self, path: str) -> None:
        if not needs_approval(self._call.effects):
            with suppress(PathFault):  # a dangling link has no place
                self._call.session.seen.forget(self.target(path))

    def head(self, path: str, count: int) -> tuple[bytes, int]:
        """The first bytes of a file, and its size."""
        return self._kernel.reader.head(path, count)

    def entries(self, path: str) -> list[FileEntry]:
        return self._kernel.reader.entries(path)

    def listing(self, path: str) -> Listing:
        return self._kernel.reader.listing(path)

    def kind(self, path: str) -> str | None:
        return self._kernel.reader.kind(path)

    def stem(self, directory: str) -> str:
        """What stands before the names in a directory: its place beneath the root, and a slash."""
        place = self._kernel.boundary.locate(directory)
        place.close()
        return f"{place.rel}/" if place.rel else ""

    def missing_parents(self, path: str) -> list[str] | None:
        """The directories that would have to be made before this one; None where it is there already."""
        place, found = self._kernel.boundary.look(path, future=True)
        place.close()
        if found is not None and stat.S_ISDIR(found.st_mode):
            return None
        parts = place.target.split("/")
        return [quote("/".join(parts[:count])) for count in range(len(parts) - len(place.rest), len(parts))]

    def target(self, path: str, *, follow: bool = True) -> str:
        """The place that a path means, there or not, with links resolved; where not `follow`, the last one is meant."""
        place = self._kernel.boundary.locate(path, follow=follow, future=True)
        place.close()
        return place.target

    def is_link(self, path: str) -> bool:
        """Whether the name itself is a symbolic link."""
        try:
            return stat.S_ISLNK(self._kernel.boundary.stat(path, follow=False).st_mode)
        except NotFound:
            return False

    def removal(self, path: str) -> Remove:
        """To delete a file as it is now; of a link, only the link."""
        try:
            linked = stat.S_ISLNK(self._kernel.boundary.stat(path, follow=False).st_mode)
            return Remove(path, None if linked else self.read(path))
        except (TooLarge, AccessDenied):
            return Remove(path)

    def overwrite(self, path: str, data: bytes) -> bool:
        """Write a file whole, whether it is there or not. Returns whether it was."""
        old = self.read_if_there(path)
        try:
            self.commit(Put(path, data, old))
        except AlreadyExists:  # it came after the look: worked out anew, this overwrites it
            raise Conflict(path) from None
        return old is not None

    def commit(
        self,
        *changes: Change,
        kind: str = "commit",
        undoes: tuple[int, ...] = (),
        approved: Callable[[], None] | None = None,
    ) -> None:
        """Make the changes, all or none, after the gate was asked. What changes nothing is dropped, unasked.

        `approved` is called after a yes, and may raise Conflict where more has changed than the writer looks at.
        """
        targets = self._kernel.writer.targets([*changes])
        real = [(change, to) for change, to in zip(changes, targets, strict=True) if not _changes_nothing(change)]
        if not real:
            return
        self._refuse_stale(real)
        made, places = [change for change, _ in real], [to for _, to in real]
        shown = tuple(quote(place) for change, to in real for place in _all_places(change, to))
        known = (made[0].path, places[0]) if len(made) == 1 and isinstance(made[0], (Put, Remove)) else None
        verdict = self._call.ask(_effects(made), known=known, targets=shown, changes=tuple(made))
        if approved is not None:
            approved()
        origin = self._call.origin(verdict, kind, undoes)
        try:
            self._kernel.writer.commit(made, places, origin, lambda versions: self._wrote(real, versions))
        finally:
            if why := self._kernel.writer.take_trouble():
                self._call.warnings.append(NotPutRight(why))
        self._call.files_affected.extend(shown)
        if trouble := self._kernel.journal.take_trouble():
            self._call.warnings.append(NotJournaled(trouble))
        elif self._kernel.journal.on and self._kernel.journal.elsewhere:
            self._call.warnings.append(JournaledElsewhere(self._kernel.state.path, self._kernel.journal.elsewhere))

    def _refuse_stale(self, real: list[tuple[Change, str]]) -> None:
        seen = self._call.session.seen
        for change, place in real:
            if not isinstance(change, Put) and not (isinstance(change, Remove) and change.base is not None):
                continue
            if seen.changed(place, change.base):
                with self._kernel.state.lock():  # a parallel call of ours may just have written it: let it say so
                    self._kernel.writer.targets([change])  # a conflict where it is not even what was read just now
                    if seen.changed(place, change.base):
                        raise seen.fault(change.path, place, change.base)

    def _wrote(self, real: list[tuple[Change, str]], versions: list[Version | None]) -> None:
        for (change, place), version in zip(real, versions, strict=True):
            if isinstance(change, Put):
                self._call.session.seen.wrote(place, version, change.data)
            elif isinstance(change, Remove):
                self._call.session.seen.wrote(place, None, None)
            elif isinstance(change, Restore):
                self._call.session.seen.wrote(place, version, change.to.data if change.to else None)
                for rel, _, _ in change.beneath():
                    self._call.session.seen.forget(f"{place}/{rel}")


def _changes_nothing(change: Change) -> bool:
    return (
        isinstance(change, Put)
        and change.base is not None
        and change.data == change.base.data
        and change.mode in (None, change.base.mode)
    )


def _all_places(change: Change, place: str) -> list[str]:
    within = [f"{place}/{rel}" for rel, _, _ in change.beneath()] if isinstance(change, Restore) else []
    return [place, *within]


def _effects(changes: list[Change]) -> Effect:
    found = Effect.READ
    for change in changes:
        if isinstance(change, (Remove, RemoveDirectory)) or (isinstance(change, Restore) and change.to is None):
            found |= Effect.DELETE
        elif isinstance(change, Restore) and change.turns:
            found |= Effect.WRITE | Effect.DELETE
        elif isinstance(change, MakeDirectory) or change.base is None:
            found |= Effect.CREATE
        else:
            found |= Effect.WRITE
    return found
