"""Every number, in one place. The configuration may override each of them by name."""

from dataclasses import dataclass

KIB, MIB = 1024, 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    edit_bytes: int = 64 * MIB
    """The largest file that is read whole to be edited."""
    page_bytes: int = 16 * MIB
    """The most that one page of a paged read may hold."""
    gemini_read_bytes: int = 20 * MIB
    copilot_bytes: int = 10 * MIB
    """What `copilot` reads or creates at most."""
    copilot_entries: int = 1000
    """Entries on a page of `list_dir`."""
    context_entries: int = 500
    """The ceiling of every result list in `context`."""
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
    message_bytes: int = 32 * MIB
    """The longest message that an MCP client may send."""
    client_calls: int = 32
    """Calls of one MCP client that run at once; others wait."""
    question_seconds: float = 600.0
    """How long a question that was handed to an MCP client may be answered."""
    idle_seconds: float = 600.0
    """After how long without a request an HTTP client's session ends, terminals included."""
    request_seconds: float = 20.0
    """How long an HTTP client may take to send a request."""
    http_sessions: int = 1000
    http_silent: int = 200
    """Connections that have not yet sent a request; more of them, and the oldest is closed."""
