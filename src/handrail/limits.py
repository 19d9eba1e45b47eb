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
    rule_chars: int = 20_000
    """The longest pattern of an approval rule, its counted repeats written out."""
    log_chars: int = 2000
    """The longest string that the session log keeps whole."""
