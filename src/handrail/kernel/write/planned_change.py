"""Holds one change while the writer commits it."""

import os

from handrail.kernel.fs.resolver import Place
from handrail.kernel.write.intent_log import Step, file_mark
from handrail.model.files import Change, Node, Put, Restore, Version
from handrail.model.record import record


@record
class PlannedChange:
    """Holds one change during a commit: its place, the old entry found there, and its step in the intent."""

    change: Change
    place: Place
    found: os.stat_result | None
    step: Step | None = None
    missing: tuple[str, ...] = ()
    """The directories to create before the file."""
    target: str = ""
    """The path in the root, links resolved."""
    made: os.stat_result | None = None
    """The stat result of the new file, once it is prepared."""
    unsynced: int = -1
    """The open handle of the new file until it is synced."""
    spares: tuple[str, ...] = ()
    """The temporary and second names to remove after publishing."""


def new_state(change: Change) -> Put | Node | None:
    """Return the new content and mode of a name; None if the change removes it."""
    if isinstance(change, Put):
        return change
    return change.to if isinstance(change, Restore) else None


def close_file(work: PlannedChange) -> None:
    """Close the new file. This must happen before publishing: the system does not run a program open for writing."""
    if work.unsynced >= 0:
        os.close(work.unsynced)
        work.unsynced = -1


def version_after(work: PlannedChange) -> Version | None:
    """Return the version of the new file after publishing, which changes its times; None if there is no new file."""
    if work.step is None or work.step.removes:
        return None
    now = Place(work.place.dir_fd, work.step.name, "").stat()
    return Version.of(now) if now is not None and file_mark(now) == work.step.identity else None
