"""Limits what the page keeps and how long it waits. These are not settings: one server serves all workspaces."""

from typing import NamedTuple

from handrail.model.limits import KIB, MIB


class PageLimits(NamedTuple):
    """Holds the limits of the page."""

    calls: int = 10_000
    """The most calls that the page lists."""
    detail_chars: int = 64 * KIB
    """The most characters of a call's parameters, and of its answer, that the page shows."""
    details_chars: int = 64 * MIB
    """The most characters of all these together; the oldest calls keep only their line in the list."""
    diff_chars: int = 16 * MIB
    """The most characters of a diff on the page."""
    queue_bytes: int = 32 * MIB
    """The most bytes of reports that wait for the page's server; with more, the connection ends."""
    events: int = 2000
    """The most events that a browser can catch up with after a lost connection; with more, it loads everything."""
    events_bytes: int = 8 * MIB
    """The most bytes of these events."""
    output_bytes: int = 256 * KIB
    """The most output of one command, terminal or job that the page keeps, the newest."""
    absent_seconds: float = 60.0
    """How long a question waits for the page after the last browser left, or after an address was shown."""
    token_seconds: float = 3600.0
    """How long an address of the page can be opened."""
    quiet_seconds: float = 0.4
    """How long a new question takes no answer, so that no key that was meant for something else answers it."""
    idle_seconds: float = 600.0
    """After how long without a process and a browser a page's server that a command has started ends."""
    browsers: int = 32
    """The most browser windows that follow the page at once."""


PAGE_LIMITS = PageLimits()
