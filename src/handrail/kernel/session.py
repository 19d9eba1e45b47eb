"""The capability that a tool is handed. A session belongs to one client; each call gets a `Call` of its own."""

import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from handrail.effects import Effect
from handrail.faults import AccessDenied, Cancelled, Denied, TooLarge
from handrail.kernel.boundary import FsBoundary
from handrail.kernel.commit import Writer
from handrail.kernel.files import Reader
from handrail.kernel.gate import Approver, Question, ask
from handrail.kernel.state import State
from handrail.kernel.values import Change, Entry, File, MakeDirectory, Page, Put, Remove
from handrail.limits import Limits
from handrail.paths import quote


@dataclass(frozen=True, slots=True)
class Kernel:
    """What all sessions of one open workspace share."""

    boundary: FsBoundary
    state: State
    limits: Limits
    writer: Writer
    reader: Reader

    def close(self) -> None:
        self.writer.close()
        self.boundary.close()


class Session:
    def __init__(self, kernel: Kernel, approver: Approver, *, read_only: bool = False) -> None:
        self.kernel, self.approver, self.read_only = kernel, approver, read_only
        self.id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"


@dataclass(slots=True)
class Call:
    """One call: what it may touch, and what it has to say beside its output."""

    session: Session
    dialect: str
    tool: str
    params: dict[str, Any]
    effects: Effect
    bodies: frozenset[str] = frozenset()
    cancel: threading.Event | None = None
    files_affected: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def limits(self) -> Limits:
        return self.session.kernel.limits

    @property
    def root(self) -> str:
        return self.session.kernel.boundary.root

    @property
    def files(self) -> "Files":
        return Files(self)

    def check_cancelled(self) -> None:
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled

    def begin_again(self) -> None:
        """The file changed before the edit could land: forget what was said and work it out anew."""
        self.files_affected.clear()
        self.warnings.clear()
        self.metadata.clear()

    def ask(self, effects: Effect, *, targets: tuple[str, ...] = (), changes: tuple[Change, ...] = ()) -> None:
        if self.session.read_only:
            raise Denied(self.tool, "the workspace is open for reading only", "open it without --read-only")
        self.check_cancelled()
        question = Question(self.dialect, self.tool, self.params, effects, self.bodies, targets, changes)
        verdict = ask(self.session.approver, question)
        if verdict.warning:
            self.warnings.append(verdict.warning)
        self.check_cancelled()


class Files:
    """The files of the workspace, as one call may use them."""

    def __init__(self, call: Call) -> None:
        self._call, self._kernel = call, call.session.kernel

    def read(self, path: str) -> File:
        return self._kernel.reader.read(path)

    def read_if_there(self, path: str) -> File | None:
        return self._kernel.reader.read_if_there(path)

    def page(self, path: str, first: int = 1, count: int | None = None) -> Page:
        return self._kernel.reader.page(path, first, count)

    def entries(self, path: str) -> list[Entry]:
        return self._kernel.reader.entries(path)

    def kind(self, path: str) -> str | None:
        return self._kernel.reader.kind(path)

    def stem(self, directory: str) -> str:
        """What stands before the names in a directory: its place beneath the root, and a slash."""
        place = self._kernel.boundary.locate(directory)
        place.close()
        return f"{place.rel}/" if place.rel else ""

    def removal(self, path: str) -> Remove:
        """To delete a file as it is now; of a link, only the link."""
        try:
            linked = self._kernel.boundary.stat(path, follow=False).st_mode & 0o170000 == 0o120000
            return Remove(path, None if linked else self.read(path))
        except (TooLarge, AccessDenied):
            return Remove(path)

    def commit(self, *changes: Change) -> None:
        """Make the changes, all or none, after the gate was asked. What changes nothing is dropped, unasked."""
        real = [change for change in changes if not _changes_nothing(change)]
        targets = self._kernel.writer.targets([*changes])
        if not real:
            return
        shown = tuple(quote(target) for change, target in zip(changes, targets, strict=True) if change in real)
        approved = [target for change, target in zip(changes, targets, strict=True) if change in real]
        self._call.ask(_effects(real), targets=shown, changes=tuple(real))
        self._kernel.writer.commit(real, approved)
        self._call.files_affected.extend(shown)


def _changes_nothing(change: Change) -> bool:
    return (
        isinstance(change, Put)
        and change.base is not None
        and change.data == change.base.data
        and change.mode in (None, change.base.mode)
    )


def _effects(changes: list[Change]) -> Effect:
    found = Effect.READ
    for change in changes:
        if isinstance(change, Remove):
            found |= Effect.DELETE
        elif isinstance(change, MakeDirectory) or change.base is None:
            found |= Effect.CREATE
        else:
            found |= Effect.WRITE
    return found
