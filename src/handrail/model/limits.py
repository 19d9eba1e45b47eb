"""Holds every limit. The configuration may override each of them by name."""

from typing import NamedTuple

KIB, MIB, GIB = 1024, 1024**2, 1024**3
DAY = 86_400
"""In seconds."""
LARGEST_INTEGER = 2**63 - 1
"""The largest number that a model may give: system calls reject larger ones."""
ANSWER_TOKENS = 10_000
"""The default of the setting `answer_tokens`: about how many tokens one answer shows."""
BYTES_PER_TOKEN = 4
"""An estimate: no two models count alike."""
VIEW_CHARS = 16_000
"""The most characters that the editor of `claude` shows, as its declaration tells the API."""
BINARY_CHECK_BYTES = 8 * KIB
"""The first bytes of a file, which decide whether it is binary."""


class Limits(NamedTuple):
    """Holds the limits in force. Names end in their unit: bytes, chars, seconds, days; otherwise they are counts."""

    edit_bytes: int = 64 * MIB
    """The largest file that an edit reads."""
    page_bytes: int = 16 * MIB
    """The most bytes in one page of a file."""
    page_seconds: float = 30.0
    """The time in which a page read counts the lines of a file; the answer holds the lines counted until then."""
    gemini_read_bytes: int = 20 * MIB
    listed_files: int = 100_000
    """The most files that a listing by glob returns."""
    gemini_matches: int = 20_000
    gemini_files: int = 20_000
    gemini_3_lines: int = 2000
    """Lines that `read_file` of `gemini-3` shows unless the call names more."""
    gemini_3_line_chars: int = 2000
    """Characters of a line that `gemini-3` shows."""
    gemini_3_matches: int = 100
    """Matches that `grep_search` of `gemini-3` shows unless the call names another number."""
    gemini_3_files: int = 1000
    """The most files that `read_many_files` of `gemini-3` reads."""
    copilot_bytes: int = 10 * MIB
    """The most bytes that `copilot` reads or creates."""
    copilot_depth: int = 20
    copilot_entries: int = 1000
    """Entries on one page of `list_dir`."""
    context_depth: int = 10
    context_file_bytes: int = MIB
    context_entries: int = 500
    """The most entries in any result list of `context`."""
    claude_view_chars: int = VIEW_CHARS
    """The most characters of a file or directory that the editor of `claude` shows."""
    claude_bash_bytes: int = 100 * KIB
    """The most bytes of output that `bash` of `claude` and `claude-agent` returns: the last ones."""
    claude_agent_bytes: int = 256 * KIB
    """The largest text that `read` of `claude-agent` returns, and the largest file that `edit` changes."""
    claude_agent_files: int = 200
    """The most files that `glob` of `claude-agent` returns."""
    claude_agent_grep_bytes: int = 100 * KIB
    """The longest output of `grep` of `claude-agent`."""
    memory_file_bytes: int = MIB
    """The largest file in the memory directory."""
    memory_bytes: int = 64 * MIB
    """The size of all files in the memory directory together."""
    memory_files: int = 10_000
    """The most files in the memory directory."""
    memory_entries: int = 1000
    """The most files and directories that one call of `memory` lists, deletes or renames."""
    conflict_retries: int = 64
    """The most retries of an edit whose file changed before the commit."""
    resolve_retries: int = 128
    """The most times that a path is resolved again because another process renamed a part of it."""
    links: int = 40
    """The most symbolic links in one path, as in the Linux kernel."""
    command_chars: int = 8 * KIB
    """The longest command that is parsed for its programs: the parser's time can grow with the square of the length."""
    protect_seconds: float = 2.0
    """The shortest time for which a scan for protected files stays valid."""
    project_file_bytes: int = 64 * KIB
    """The largest `.handrail.toml` or `.handrailignore`; with a larger one the workspace does not open."""
    config_bytes: int = 4 * MIB
    """The largest configuration file of the user or of an MCP client."""
    config_check_seconds: int = 60
    """How long `handrail config --check` waits for the server."""
    protect_globs: int = 2000
    """The most globs for protected files in a project file, after brace expansion."""
    masked_files: int = 400
    """The most protected files that a sandbox can hide; with more of them no command runs."""
    remembered_files: int = 10_000
    """The most protected files that later sessions recognise after a move."""
    guarded_repositories: int = 100
    """The most repositories (the workspace, its submodules and worktrees) whose `.git` the sandbox guards."""
    rule_seconds: float = 0.25
    """The time limit for matching one approval rule."""
    hook_seconds: float = 60.0
    """The time limit of one hook that names none of its own."""
    hook_output_bytes: int = 256 * KIB
    """The most bytes that a hook may print; a longer answer is a broken one."""
    hook_chars: int = 4000
    """The most characters of a hook's reason or context that are shown."""
    rule_chars: int = 20_000
    """The longest pattern of an approval rule, after expansion of its counted repeats."""
    log_chars: int = 2000
    """The longest string that the session log keeps uncut."""
    log_debug_chars: int = 4 * MIB
    """The same for level debug, whose logs can be replayed."""
    replay_log_bytes: int = 256 * MIB
    """The largest session log that can be replayed."""
    replay_bytes: int = 8 * GIB
    """The most bytes of the workspace that a replay copies; holes in sparse files do not count and stay holes."""
    seen_bytes: int = 16 * MIB
    """The most bytes of file contents that a session keeps, to show what another process changed in them."""
    scan_files: int = 200_000
    """The most files and directories that are compared before and after a command."""
    scan_kept_files: int = 5000
    """The most files whose contents are saved before a command; only files changed since the last command count."""
    scan_kept_bytes: int = 64 * MIB
    scan_file_bytes: int = 8 * MIB
    """The largest file whose content is saved before a command."""
    scan_ignored_files: int = 2000
    """The most files in a directory that ignore files exclude; commands' changes in a larger one are not recorded."""
    scan_directories: int = 20_000
    """The most directories that are watched with inotify."""
    scan_depth: int = 200
    """The most levels of directories in which changes and git repositories are looked for."""
    skipped_directories: int = 10_000
    """The most directories in `node_modules` and other skipped directories that are searched for git repositories."""
    redo_log_bytes: int = 16 * MIB
    """The most new content that the log of `durability = "log"` takes before it is emptied."""
    redo_log_seconds: float = 30.0
    """The longest time after which that log is emptied."""
    journal_days: int = 90
    """The time for which a pruned journal keeps entries; session logs and unfinished intents are kept as long."""
    journal_bytes: int = 2 * GIB
    """The most disk space of the contents in a pruned journal."""
    patch_search: int = 200_000_000
    """The most lines that a patch compares in one file, over all its hunks."""
    places: int = 20
    """The most places that the answer to an ambiguous edit lists."""
    nearest_bytes: int = 32 * MIB
    """The most bytes that are searched for the place most similar to a text that was not found."""
    layer_depth: int = 60
    """The most layers below a fork; with more of them they become one."""
    layer_copy_bytes: int = GIB
    """The largest root that is copied where the system has no layers."""
    command_seconds: float = 120.0
    """The time limit of a command if the call names none."""
    output_bytes: int = 256 * KIB
    """The most bytes of one output stream in an answer: half from its start, half from its end."""
    exec_output_bytes: int = 16 * MIB
    """The most bytes of one output stream that `Workspace.exec` returns."""
    spools: int = 16
    """The most complete outputs that are kept in files."""
    spool_seconds: float = DAY
    """The time for which a file with a whole output is kept."""
    spool_bytes: int = 256 * MIB
    """The most bytes of one output stream that are kept in a file."""
    end_grace_seconds: float = 0.25
    """The time between SIGTERM and SIGKILL."""
    end_patience_seconds: float = 5.0
    """The time in which a killed command must end before its whole sandbox is killed."""
    sandbox_start_seconds: float = 10.0
    """The time in which a sandbox must start."""
    sandbox_tmp_bytes: int = GIB
    """The size of each private directory: /tmp, /dev/shm and home."""
    sandbox_processes: int = 1024
    """The most processes and threads of all commands together."""
    sandbox_memory_bytes: int = 8 * GIB
    """The memory of all commands together (at most three quarters of the memory of the machine)."""
    sandbox_file_bytes: int = 8 * GIB
    """The largest file that a command may write."""
    sandbox_open_files: int = 4096
    """The most open files of one process."""
    sandbox_disk_reserve_bytes: int = 512 * MIB
    """The free space on the disk of the workspace below which commands are killed."""
    terminals: int = 16
    """The most terminals that may run at once."""
    terminal_bytes: int = MIB
    """The most unread output of one terminal; the oldest output is dropped first."""
    terminal_wait_seconds: float = 10.0
    """The longest wait of a read until the terminal is quiet or ends."""
    terminal_write_seconds: float = 5.0
    """The time in which a program must read typed input."""
    terminal_quiet_seconds: float = 0.15
    """The time without output after which a terminal counts as quiet."""
    jobs: int = 64
    """The most jobs of one session that may run at once."""
    job_wait_seconds: float = 600.0
    """The longest that a call waits for a job, whatever it asks for."""
    progress_seconds: float = 1.0
    """After how long the command line shows that a call is still running."""
    search_seconds: float = 30.0
    """The time limit of one search; the answer holds the matches found until then."""
    hidden_seconds: float = 2.0
    """The time in which a search that found nothing looks through the files that ignore files hide."""
    nearest_seconds: float = 0.5
    """The time for a search for the file that a wrong path may mean."""
    regex_seconds: float = 5.0
    """The time limit for matching one file, in an engine that can backtrack without end."""
    diff_chars: int = MIB
    """The most characters of a diff in an answer."""
    pattern_chars: int = 16 * KIB
    """The longest regular expression or glob."""
    repetitions: int = 10_000
    """The most repetitions in a regular expression; nested counts multiply."""
    glob_alternatives: int = 1000
    """The most globs that the braces of one glob may expand to."""
    ignore_bytes: int = 128 * KIB
    """The largest ignore file that a search obeys."""
    ignore_rules: int = 20_000
    """The most rules from all ignore files that one walk obeys, after brace expansion."""
    line_bytes: int = 2000
    """The longest line that a search shows uncut; a longer line is cut around its match."""
    search_look_seconds: float = 0.02
    """The time budget for answering from the first files before ripgrep starts."""
    search_stream_bytes: int = 128 * KIB
    """The most output of one ripgrep run; beyond it, a first run counts lines and a second one fetches them."""
    search_survey_seconds: float = 600.0
    """How long a workspace remembers which files and directories lie beyond the limits of a search."""
    search_read_bytes: int = 64 * MIB
    """The largest file that the built-in engine reads."""
    search_memory_bytes: int = GIB
    """The memory limit of ripgrep; if ripgrep exceeds it, the built-in engine answers."""
    search_silent_seconds: float = 1.0
    """After how long without output from ripgrep its ignore files are checked for one that blocks it."""
    skipped_names: int = 20
    """The most skipped files that an answer names; it counts the rest."""
    rank_candidates: int = 200
    """The number of files beyond the shown ones that are read before the ranking is final."""
    query_words: int = 8
    """The most words of a query that the ranking uses."""
    fetch_bytes: int = MIB
    """The most bytes of a decompressed web page that are kept; also the longest Markdown made from it."""
    fetch_redirects: int = 5
    """The most redirects that one fetch follows."""
    fetch_header_bytes: int = 64 * KIB
    """The most bytes that a server may send before the end of its headers, including interim responses."""
    fetch_url_chars: int = 8192
    """The longest URL of a fetch."""
    fetch_convert_bytes: int = 512 * MIB
    """The memory limit for the conversion of one page to Markdown."""
    network_connections: int = 200
    """The most connections of commands to the network that are open at once; others are closed."""
    network_header_bytes: int = 64 * KIB
    """The longest head of a request that commands send through the proxy."""
    network_header_seconds: float = 20.0
    """The time in which a command must say what it wants of a connection."""
    network_connect_seconds: float = 15.0
    """The time to connect to one address of a host."""
    network_idle_seconds: float = 300.0
    """After how long without a byte a connection of a command is closed."""
    network_waiting_bytes: int = 64 * KIB
    """The most bytes of one direction of a connection that wait to be passed on."""
    network_logged: int = 10_000
    """The most connections of a session that the log names."""
    image_file_bytes: int = 20 * MIB
    """The largest image file that is read for a model."""
    image_base64_bytes: int = 5 * MIB
    """The most characters of an image in an answer, in base64; the APIs of models refuse more."""
    image_side: int = 8000
    """The longest side of an image, in pixels, that an answer holds unscaled if nothing can scale it."""
    image_edge: int = 2000
    """The longest side, in pixels, to which a larger image is scaled down."""
    image_pixels: int = 100_000_000
    """The most pixels of an image that is decoded."""
    image_memory_bytes: int = GIB
    """The memory limit for scaling one image."""
    image_seconds: float = 20.0
    """The time limit for scaling one image."""
    pdf_bytes: int = 20 * MIB
    """The largest PDF that is read for a model."""
    pdf_pages: int = 20
    """The most pages of a PDF that one call chooses."""
    pdf_memory_bytes: int = GIB
    """The memory limit for taking pages out of one PDF."""
    pdf_seconds: float = 20.0
    """The time limit for taking pages out of one PDF."""
    claude_code_lines: int = 2000
    """The lines of a file that `Read` shows if the call names no limit."""
    claude_code_line_chars: int = 2000
    """The most characters of a line that `Read` shows."""
    claude_code_read_bytes: int = 256 * KIB
    """The most bytes of a file that one `Read` shows, unless the call has `allow_large`."""
    claude_code_files: int = 100
    """The most files that `Glob` returns."""
    claude_code_matches: int = 20_000
    """The most lines that `Grep` returns without a `head_limit`."""
    claude_code_output_chars: int = 30_000
    """The most characters of a command's output that `Bash` shows."""
    claude_code_background_seconds: float = 1800.0
    """The time limit of a command in the background if the call of `Bash` names none."""
    claude_code_page_chars: int = 100_000
    """The most characters of a page that one `WebFetch` shows."""
    claude_code_fetch_seconds: float = 60.0
    """The time limit of `WebFetch`."""
    oci_layers: int = 128
    """The most layers of a container image."""
    oci_layer_bytes: int = 16 * GIB
    """The most bytes of one layer of a container image after decompression."""
    oci_entries: int = 1_000_000
    """The most files, directories and links in one layer."""
    oci_depth: int = 200
    """The most directories inside each other in a layer."""
    oci_header_bytes: int = MIB
    """The longest header of an entry in a layer: its names, times and attributes."""
    oci_document_bytes: int = 4 * MIB
    """The longest index, manifest or configuration of a container image."""
    oci_archive_entries: int = 10_000
    """The most members of a `docker-archive`."""
    notebook_chars: int = 256 * KIB
    """The most characters of a notebook in one answer."""
    notebook_output_chars: int = 10_000
    """The most characters of the outputs of one cell in an answer."""
    message_bytes: int = 32 * MIB
    """The longest message that an MCP client may send."""
    client_calls: int = 32
    """The most calls of one MCP client that run at once; others wait."""
    question_seconds: float = 600.0
    """The time in which an MCP client must answer a question."""
    quickest_answer_seconds: float = 0.3
    """The shortest time in which a user can say no; a client that declines sooner has asked no user."""
    idle_seconds: float = 600.0
    """After how long without a request the session of an HTTP client ends, with its terminals."""
    request_seconds: float = 20.0
    """The time in which an HTTP client must send a request, and for which its connection may stay idle."""
    http_sessions: int = 1000
    http_silent: int = 200
    """The most connections that have not sent a request yet; beyond it, the oldest one is closed."""
    http_bodies: int = 500
    """The most requests whose body is still arriving; beyond it, the oldest one is dropped."""
    http_bodies_bytes: int = 128 * MIB
    """The most bytes of these bodies together; beyond it, the oldest one is dropped. One message always fits."""


MAY_BE_LOWERED = frozenset({
    "page_bytes", "page_seconds", "gemini_read_bytes", "listed_files", "gemini_matches", "gemini_files",
    "gemini_3_lines", "gemini_3_line_chars", "gemini_3_matches", "gemini_3_files", "copilot_bytes", "copilot_depth",
    "copilot_entries", "context_depth", "context_file_bytes", "context_entries", "claude_view_chars",
    "claude_bash_bytes", "claude_agent_bytes", "claude_agent_files", "claude_agent_grep_bytes", "memory_file_bytes",
    "memory_bytes", "memory_files", "memory_entries", "patch_search", "command_seconds", "output_bytes",
    "exec_output_bytes", "spool_bytes", "sandbox_processes", "sandbox_memory_bytes", "sandbox_file_bytes",
    "sandbox_open_files", "terminals", "terminal_bytes", "jobs", "search_seconds", "hidden_seconds",
    "nearest_seconds", "search_read_bytes", "regex_seconds", "diff_chars", "line_bytes", "fetch_bytes",
    "fetch_redirects", "fetch_header_bytes", "fetch_url_chars", "fetch_convert_bytes", "network_connections",
    "network_header_bytes", "network_header_seconds", "network_connect_seconds", "network_idle_seconds",
    "image_file_bytes", "image_base64_bytes", "image_side", "image_edge", "image_pixels", "image_memory_bytes",
    "image_seconds", "pdf_bytes", "pdf_pages", "pdf_memory_bytes", "pdf_seconds", "claude_code_lines",
    "claude_code_line_chars", "claude_code_read_bytes", "claude_code_files", "claude_code_matches",
    "claude_code_output_chars", "claude_code_background_seconds", "claude_code_page_chars",
    "claude_code_fetch_seconds", "notebook_chars",
    "notebook_output_chars",
})  # fmt: skip
"""The limits that a project file may lower: those that bound what an agent does or sees, and no others.

A project file comes from a stranger. It must not reduce what the journal and the logs keep (`edit_bytes`: a file that
is too large to be read is deleted without a copy), the rules of the user, the time to answer, or the sandbox
(`sandbox_tmp_bytes`: bubblewrap refuses 0).
"""
