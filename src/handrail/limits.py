"""Every number, in one place. The configuration may override each of them by name."""

from dataclasses import dataclass

KIB, MIB = 1024, 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    edit_bytes: int = 64 * MIB
    """The largest file that is read whole to be edited."""
    page_bytes: int = 16 * MIB
    """The most that one page of a paged read may hold."""
    conflict_retries: int = 64
    """How often an edit is worked out anew because its file changed before it could land."""
    resolve_retries: int = 128
    """How often a resolution is tried again because a rename raced it."""
    links: int = 40
    """Symbolic links followed in one path, as in the Linux kernel."""
    rule_seconds: float = 0.25
    """The time that one approval rule may take to match."""
    log_chars: int = 2000
    """The longest string that the session log keeps whole."""
    search_seconds: float = 30.0
    """The time that one search may take; what was found until then is the answer."""
    regex_seconds: float = 5.0
    """The time that one file may take to match, where the engine can run away."""
    pattern_chars: int = 16 * KIB
    """The longest regular expression or glob."""
    repetitions: int = 10_000
    """How often a regular expression may repeat something, nested counts multiplied."""
    glob_alternatives: int = 256
    """How many plain globs the braces of one may stand for."""
    line_bytes: int = 2000
    """The longest line that a search shows whole; a longer one is cut around its match."""
    search_stream_bytes: int = 8 * MIB
    """How much ripgrep may print in one go; beyond it, lines are counted first and then fetched."""
    search_read_bytes: int = 64 * MIB
    """The largest file that the built-in engine reads."""
    skipped_names: int = 20
    """How many skipped files are named; the rest are counted."""
    query_words: int = 8
    """How many words of a query are ranked by."""
