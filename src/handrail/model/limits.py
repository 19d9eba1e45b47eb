"""Holds every numeric limit. The configuration can override each limit by its name."""

from typing import NamedTuple

KIB, MIB, GIB = 1024, 1024**2, 1024**3
DAY = 86_400
"""In seconds."""
LARGEST_INTEGER = 2**63 - 1
"""The largest number that a model may give: system calls accept no larger one."""


class Limits(NamedTuple):
    """Holds the limits in force."""

    edit_bytes: int = 64 * MIB
    """The largest file that an edit reads."""
    page_bytes: int = 16 * MIB
    """The largest page that a paged read returns."""
    page_seconds: float = 30.0
    """The time for counting the lines of a file for one page; the answer then holds the lines counted so far."""
    gemini_read_bytes: int = 20 * MIB
    listed_files: int = 100_000
    """The most files that a listing by glob returns."""
    gemini_matches: int = 20_000
    gemini_files: int = 20_000
    copilot_bytes: int = 10 * MIB
    """The largest file that `copilot` reads or creates."""
    copilot_depth: int = 20
    copilot_entries: int = 1000
    """Entries on one page of `list_dir`."""
    context_depth: int = 10
    context_file_bytes: int = MIB
    context_entries: int = 500
    """The most entries in any result list of `context`."""
    conflict_retries: int = 64
    """How often an edit is retried because its file changed before the write."""
    resolve_retries: int = 128
    """How often a path is resolved again because another process renamed a part of it."""
    links: int = 40
    """Symbolic links that one path may follow, as in the Linux kernel."""
    command_chars: int = 8 * KIB
    """The longest command whose programs are determined: the parser's time can grow with the square of the length."""
    protect_seconds: float = 2.0
    """The least time for which a scan for protected files stays valid."""
    project_file_bytes: int = 64 * KIB
    """The largest `.handrail.toml` or `.handrailignore`; a workspace with a larger one does not open."""
    config_bytes: int = 4 * MIB
    """The largest configuration file of the user, or of an MCP client, that is read."""
    protect_globs: int = 2000
    """Globs for protected files that a project may list, with braces expanded."""
    masked_files: int = 400
    """Protected files that a sandbox can hide; if there are more, no command runs."""
    remembered_files: int = 10_000
    """Protected files that later sessions recognise after a move."""
    guarded_repositories: int = 100
    """Trees with their own `.git` (workspace, submodules, worktrees inside it) that the sandbox guards."""
    rule_seconds: float = 0.25
    """The time that one approval rule may take to match."""
    rule_chars: int = 20_000
    """The longest pattern of an approval rule, with counted repetitions expanded."""
    log_chars: int = 2000
    """The longest string that the session log stores whole."""
    log_debug_chars: int = 4 * MIB
    """The same for level debug, whose logs can be replayed."""
    replay_log_bytes: int = 256 * MIB
    """The largest session log that can be replayed."""
    replay_bytes: int = 8 * GIB
    """The most data that a replay copies from the tree; holes of sparse files stay holes and do not count."""
    seen_bytes: int = 16 * MIB
    """The contents that a session remembers, in order to show what another process changed."""
    scan_files: int = 200_000
    """Files that are watched around a command."""
    scan_kept_files: int = 5000
    """Files whose contents are kept before a command; only files that changed since the last command count."""
    scan_kept_bytes: int = 64 * MIB
    scan_file_bytes: int = 8 * MIB
    """The largest file whose contents are kept around a command."""
    scan_directories: int = 20_000
    """Directories whose changes the system is asked to report."""
    journal_days: int = 90
    """How long pruning keeps journal entries, session logs and waiting records."""
    journal_bytes: int = 2 * GIB
    """The most disk space that the journal's contents use after pruning."""
    patch_search: int = 200_000_000
    """Lines that the search for all hunks of a patch may compare in one file."""
    places: int = 20
    """How many places the error about an ambiguous edit lists."""
    nearest_bytes: int = 32 * MIB
    """Bytes that may be searched for the place that is most similar to a text that was not found."""
    command_seconds: float = 120.0
    """How long a command may run if the caller sets no time limit."""
    output_bytes: int = 256 * KIB
    """The most of one output stream that an answer holds: half from its start and half from its end."""
    spools: int = 16
    """How many complete outputs are kept in files."""
    spool_seconds: float = DAY
    """How long a complete output is kept in a file at most."""
    spool_bytes: int = 256 * MIB
    """The most of one output stream that is kept in a file."""
    end_grace_seconds: float = 0.25
    """The time between SIGTERM and SIGKILL when a command must end."""
    end_patience_seconds: float = 5.0
    """How long a command may take to end before its whole sandbox is ended."""
    sandbox_start_seconds: float = 10.0
    """How long a sandbox may take to start."""
    sandbox_tmp_bytes: int = GIB
    """The size of each private directory: /tmp, /dev/shm and home."""
    sandbox_processes: int = 1024
    """Processes and threads of all commands together."""
    sandbox_memory_bytes: int = 8 * GIB
    """Memory of all commands together (at most three quarters of the machine's memory)."""
    sandbox_file_bytes: int = 8 * GIB
    """The largest file that a command may write."""
    sandbox_open_files: int = 4096
    """Open files of one process."""
    sandbox_disk_reserve_bytes: int = 512 * MIB
    """Commands are ended when the free space on the workspace's disk falls below this."""
    terminals: int = 16
    """Terminals that may run at once."""
    terminal_bytes: int = MIB
    """Unread output that one terminal keeps; the oldest output is dropped first."""
    terminal_wait_seconds: float = 10.0
    """How long a read of a terminal waits until the terminal is quiet or ends."""
    terminal_write_seconds: float = 5.0
    """How long a program may take to read typed input."""
    terminal_quiet_seconds: float = 0.15
    """A terminal is quiet after it printed nothing for this time."""
    progress_seconds: float = 1.0
    """How long a call runs before the command line shows that it still runs."""
    search_seconds: float = 30.0
    """The time for one search; the answer then holds the matches found so far."""
    regex_seconds: float = 5.0
    """The time for matching one file with an engine whose time can grow without bound."""
    diff_chars: int = MIB
    """The most of a diff that an answer shows."""
    pattern_chars: int = 16 * KIB
    """The longest regular expression or glob."""
    repetitions: int = 10_000
    """How often a regular expression may repeat a part; nested counts are multiplied."""
    glob_alternatives: int = 1000
    """How many plain globs the braces of one glob may expand to."""
    ignore_bytes: int = 128 * KIB
    """The largest ignore file that a search follows."""
    ignore_rules: int = 20_000
    """The rules of all ignore files that one walk follows, with braces expanded."""
    line_bytes: int = 2000
    """The longest line that a search shows whole; a longer line is cut around its match."""
    search_look_seconds: float = 0.02
    """The time for answering from the first files before ripgrep starts, if a search may end at its limit."""
    search_stream_bytes: int = 4 * MIB
    """How much ripgrep may print in one run; beyond it, a first run counts lines and a second one fetches them."""
    search_read_bytes: int = 64 * MIB
    """The largest file that the built-in engine reads."""
    search_memory_bytes: int = GIB
    """The memory of one ripgrep process; if it is not enough, the built-in engine answers."""
    search_silent_seconds: float = 1.0
    """How long ripgrep may print nothing before its ignore files are checked for one that blocks it."""
    skipped_names: int = 20
    """How many skipped files a warning names; the others are counted."""
    rank_candidates: int = 200
    """How many files beyond the shown ones are read before the ranking is final."""
    query_words: int = 8
    """How many words of a query the ranking uses."""
    fetch_bytes: int = MIB
    """The most of a page that is kept, uncompressed; also the longest Markdown made from it."""
    fetch_redirects: int = 5
    """Redirects that one fetch follows."""
    fetch_header_bytes: int = 64 * KIB
    """The most that a server may send before its headers end, interim responses included."""
    fetch_url_chars: int = 8192
    """The longest URL that can be fetched."""
    fetch_convert_bytes: int = 512 * MIB
    """The memory for converting one page to Markdown."""
    message_bytes: int = 32 * MIB
    """The longest message that an MCP client may send."""
    client_calls: int = 32
    """Calls of one MCP client that run at once; more calls wait."""
    question_seconds: float = 600.0
    """How long an MCP client may take to answer a question."""
    idle_seconds: float = 600.0
    """How long an HTTP client may send no request before its session, terminals included, ends."""
    request_seconds: float = 20.0
    """How long an HTTP client may take to send a request."""
    http_sessions: int = 1000
    http_silent: int = 200
    """Connections that have not sent a request yet; if there are more, the oldest is closed."""
    http_bodies: int = 500
    """Requests whose body is not complete yet; if there are more, the oldest is dropped."""
    http_bodies_bytes: int = 128 * MIB
    """Bytes of all incomplete bodies; beyond it the oldest is dropped. One message always has room."""


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
"""The limits that a project's own file may lower: those that bound what an agent does or sees.

A file from a stranger must not reduce what the journal and the logs keep (with a low `edit_bytes`, a file that is too
large to read is deleted without a copy), the user's rules, the user's time to answer, or break the sandbox
(`sandbox_tmp_bytes`: bubblewrap refuses 0).
"""
