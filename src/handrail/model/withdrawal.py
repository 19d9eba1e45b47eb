"""Says that a question which is asked in several places was answered in another one."""

import threading
from contextvars import ContextVar

withdrawn: ContextVar[threading.Event | None] = ContextVar("withdrawn", default=None)
"""Set when the question that this context asks needs no answer any more; None if only this place is asked."""


class Withdrawn(Exception):  # noqa: N818  no error: another place was faster
    """Ends the asking in one place, because another place has answered."""


def expect_wanted() -> None:
    """Raise Withdrawn if the question of this context was answered in another place."""
    event = withdrawn.get()
    if event is not None and event.is_set():
        raise Withdrawn
