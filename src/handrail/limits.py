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
    patch_search: int = 200_000_000
    """Lines that a patch may make us look at in one file, all hunks together."""
    places: int = 20
    """How many places an ambiguous edit lists."""
    nearest_bytes: int = 32 * MIB
    """Bytes that may be looked at to say which place is most like the one that was not found."""
