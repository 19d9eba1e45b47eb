"""Every number, in one place. The configuration may override each of them by name."""

from typing import NamedTuple

KIB, MIB, GIB = 1024, 1024**2, 1024**3
DAY = 86_400
"""In seconds."""
LARGEST_INTEGER = 2**63 - 1
"""The largest number that a model may give: system calls reject larger ones."""
BINARY_CHECK_BYTES = 8 * KIB
"""The first bytes of a file, which decide whether it is binary."""


class Limits(NamedTuple):
    edit_bytes: int = 64 * MIB
    """The largest file that is read whole to be edited."""
    page_bytes: int = 16 * MIB
    """The most that one page of a paged read may hold."""
    page_seconds: float = 30.0
    """How long the lines of a file are counted for a page of it; those until then are the answer."""
    gemini_read_bytes: int = 20 * MIB
    listed_files: int = 100_000
    """Files that a listing by glob returns at most."""
    gemini_matches: int = 20_000
    gemini_files: int = 20_000
    copilot_bytes: int = 10 * MIB
    """What `copilot` reads or creates at most."""
    copilot_depth: int = 20
    copilot_entries: int = 1000
    """Entries on a page of `list_dir`."""
    context_depth: int = 10
    context_file_bytes: int = MIB
    context_entries: int = 500
    """The ceiling of every result list in `context`."""
    conflict_retries: int = 64
    """How often an edit is worked out anew because its file changed before it could land."""
    resolve_retries: int = 128
    """How often a resolution is tried again because a rename raced it."""
    links: int = 40
    """Symbolic links followed in one path, as in the Linux kernel."""
    command_chars: int = 8 * KIB
    """The longest command whose programs are looked for: the parser's time can grow with the square of it."""
    protect_seconds: float = 2.0
    """How long what is known about protected files stays good, at least."""
    project_file_bytes: int = 64 * KIB
    """The largest `.handrail.toml` or `.handrailignore` that is read; with a larger one the workspace is not opened."""
    config_bytes: int = 4 * MIB
    """The largest configuration file of the user's own, or of an MCP client, that is read."""
    protect_globs: int = 2000
    """Globs for protected files that a project may name, braces written out."""
    masked_files: int = 400
    """Protected files that a sandbox can cover; with more of them no command runs."""
    remembered_files: int = 10_000
    """Protected files that later sessions know again after they were moved."""
    guarded_repositories: int = 100
    """Trees with a `.git` of their own (the workspace, submodules, worktrees in it) that are guarded in the sandbox."""
    rule_seconds: float = 0.25
    """The time that one approval rule may take to match."""
    rule_chars: int = 20_000
    """The longest pattern of an approval rule, its counted repeats written out."""
    log_chars: int = 2000
    """The longest string that the session log keeps whole."""
    log_debug_chars: int = 4 * MIB
    """The same at level debug, whose logs can be replayed."""
    replay_log_bytes: int = 256 * MIB
    """The largest session log that is replayed."""
    replay_bytes: int = 8 * GIB
    """What a replay may copy of the tree, holes in sparse files left out; they stay holes."""
    seen_bytes: int = 16 * MIB
    """The contents that a session remembers, to say what somebody else changed in them."""
    scan_files: int = 200_000
    """Files that are watched around a command."""
    scan_kept_files: int = 5000
    """Files whose contents are kept before a command, counted anew for those that changed since the last one."""
    scan_kept_bytes: int = 64 * MIB
    scan_file_bytes: int = 8 * MIB
    """The largest file that is kept around a command."""
    scan_directories: int = 20_000
    """Directories that the system is asked to report changes of."""
    journal_days: int = 90
    """How long the journal remembers, if it is pruned; session logs and records that wait are kept as long."""
    journal_bytes: int = 2 * GIB
    """The most that its contents may take on the disk then."""
    patch_search: int = 200_000_000
    """Lines that a patch may make us look at in one file, all hunks together."""
    places: int = 20
    """How many places an ambiguous edit lists."""
    nearest_bytes: int = 32 * MIB
    """Bytes that may be looked at to say which place is most like the one that was not found."""
    command_seconds: float = 120.0
    """How long a command may run when nothing else was asked for."""
    output_bytes: int = 256 * KIB
    """The most of one output stream that an answer keeps, half from its start and half from its end."""
    spools: int = 16
    """How many whole outputs are kept in files."""
    spool_seconds: float = DAY
    """How long a whole output is kept in a file at most."""
    spool_bytes: int = 256 * MIB
    """The most of one output stream that is kept in a file."""
    end_grace_seconds: float = 0.25
    """The time between being asked to end (SIGTERM) and being ended (SIGKILL)."""
    end_patience_seconds: float = 5.0
    """How long a command may take to be gone before its whole sandbox is ended instead."""
    sandbox_start_seconds: float = 10.0
    """How long a sandbox may take to stand."""
    sandbox_tmp_bytes: int = GIB
    """The size of each private directory: /tmp, /dev/shm and home."""
    sandbox_processes: int = 1024
    """Processes and threads of all commands together."""
    sandbox_memory_bytes: int = 8 * GIB
    """Memory of all commands together (at most three quarters of the machine's)."""
    sandbox_file_bytes: int = 8 * GIB
    """The largest file that a command may write."""
    sandbox_open_files: int = 4096
    """Open files of one process."""
    sandbox_disk_reserve_bytes: int = 512 * MIB
    """Commands are ended when they leave less free than this on the workspace's disk."""
    terminals: int = 16
    """Terminal sessions that may live at once."""
    terminal_bytes: int = MIB
    """Output of one terminal that waits to be read; the oldest is dropped first."""
    terminal_wait_seconds: float = 10.0
    """How long a reading of a terminal waits for it to go quiet or end."""
    terminal_write_seconds: float = 5.0
    """How long a program may take to read what is typed."""
    terminal_quiet_seconds: float = 0.15
    """A terminal that printed nothing for so long is quiet."""
    progress_seconds: float = 1.0
    """After how long a terminal is told that a call still runs."""
    search_seconds: float = 30.0
    """The time that one search may take; what was found until then is the answer."""
    regex_seconds: float = 5.0
    """The time that one file may take to match, where the engine can run away."""
    diff_chars: int = MIB
    """What an answer shows of a diff."""
    pattern_chars: int = 16 * KIB
    """The longest regular expression or glob."""
    repetitions: int = 10_000
    """How often a regular expression may repeat something, nested counts multiplied."""
    glob_alternatives: int = 1000
    """How many plain globs the braces of one may stand for."""
    ignore_bytes: int = 128 * KIB
    """The largest ignore file that a search follows."""
    ignore_rules: int = 20_000
    """The rules of all ignore files that one walk follows, braces written out."""
    line_bytes: int = 2000
    """The longest line that a search shows whole; a longer one is cut around its match."""
    search_look_seconds: float = 0.02
    """How long the first files are looked through for an answer that ends with its limit."""
    search_stream_bytes: int = 4 * MIB
    """How much ripgrep may print in one go; beyond it, lines are counted first and then fetched."""
    search_read_bytes: int = 64 * MIB
    """The largest file that the built-in engine reads."""
    search_memory_bytes: int = GIB
    """The memory of one ripgrep; where it is not enough, the built-in engine answers."""
    search_silent_seconds: float = 1.0
    """After how long without a word from ripgrep its ignore files are looked over for one that holds it."""
    skipped_names: int = 20
    """How many skipped files are named; the rest are counted."""
    rank_candidates: int = 200
    """How many files beyond those shown are looked into before the ranking is settled."""
    query_words: int = 8
    """How many words of a query are ranked by."""
    fetch_bytes: int = MIB
    """The most that is kept of a page, unpacked; also the longest Markdown made of it."""
    fetch_redirects: int = 5
    """Redirects followed by one fetch."""
    fetch_header_bytes: int = 64 * KIB
    """The most that a server may send before its headers end, interim answers included."""
    fetch_url_chars: int = 8192
    """The longest URL that is fetched."""
    fetch_convert_bytes: int = 512 * MIB
    """The memory that turning one page into Markdown may take."""
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
    http_bodies: int = 500
    """Requests whose body is still arriving; more of them, and the oldest is given up."""
    http_bodies_bytes: int = 128 * MIB
    """What these have sent so far, all together; more, and the oldest is given up. One message always has room."""


MAY_BE_LOWERED = frozenset({
    "page_bytes",
    "page_seconds",
    "gemini_read_bytes",
    "listed_files",
    "gemini_matches",
    "gemini_files",
    "copilot_bytes",
    "copilot_depth",
    "copilot_entries",
    "context_depth",
    "context_file_bytes",
    "context_entries",
    "patch_search",
    "command_seconds",
    "output_bytes",
    "spool_bytes",
    "sandbox_processes",
    "sandbox_memory_bytes",
    "sandbox_file_bytes",
    "sandbox_open_files",
    "terminals",
    "terminal_bytes",
    "search_seconds",
    "search_read_bytes",
    "regex_seconds",
    "diff_chars",
    "line_bytes",
    "fetch_bytes",
    "fetch_redirects",
    "fetch_header_bytes",
    "fetch_url_chars",
    "fetch_convert_bytes",
})  # fmt: skip
"""By a project's own file: what bounds what an agent does or sees, and nothing else. A stranger's file must not take
from the person what the journal and the logs keep (`edit_bytes`: what is too large to be read is deleted without a
copy), their rules, their time to answer, or a sandbox that stands (`sandbox_tmp_bytes`: bubblewrap refuses 0).
"""
