"""Types the outputs of tools that answer with an object. The output schemas are derived from these types."""

from typing import Any, NotRequired, TypedDict

# file


class FileRead(TypedDict):
    content: str
    total_lines: int
    truncated: bool


class FileWritten(TypedDict):
    success: bool
    bytes_written: int


class FilePatched(TypedDict):
    success: bool
    patches_applied: int


class FileDeleted(TypedDict):
    success: bool


class ListedFile(TypedDict):
    path: str
    size: int
    modified: str


class FileListing(TypedDict):
    files: list[ListedFile]
    directories: NotRequired[list[str]]


class FileMatch(TypedDict):
    path: str
    line: int
    content: str


class FileMatches(TypedDict):
    matches: list[FileMatch]
    truncated: bool


# context


class ContextRead(TypedDict):
    content: str
    total_lines: int


class ContextDone(TypedDict):
    message: str


class ContextWritten(ContextDone):
    bytes_written: int


class ContextReplaced(ContextDone):
    replacements: int
    diff: str


class ContextEdited(ContextDone):
    total_lines: int
    diff: str


class GrepMatch(TypedDict):
    path: str
    line: int
    content: str
    before: list[str]
    after: list[str]


class GrepMatches(ContextDone):
    matches: list[GrepMatch]
    total_matches: int
    files_matched: int
    truncated: bool
    warnings: list[str]


class GlobFiles(ContextDone):
    files: list[str]
    total_files: int
    truncated: bool
    warnings: list[str]


class ContextRankedFile(TypedDict):
    path: str
    score: float
    line: int | None
    content: str | None


class ContextRanking(ContextDone):
    results: list[ContextRankedFile]
    total: int
    truncated: bool


class DirectoryEntry(TypedDict):
    name: str
    type: str
    size: int


class ContextDirectory(TypedDict):
    entries: list[DirectoryEntry]
    total_entries: int
    truncated: bool


# codex


class CodexListing(TypedDict):
    entries: list[str]


class CodexSlice(TypedDict):
    text: str
    truncated: bool


class LineMatch(TypedDict):
    line_num: int
    line: str


class FileMatchGroup(TypedDict):
    file: str
    matches: list[LineMatch]


class MatchGroups(TypedDict):
    results: list[FileMatchGroup]


class PatchedFile(TypedDict):
    path: str
    bytes_written: int
    created: bool
    deleted: NotRequired[bool]
    moved_from: NotRequired[str]


class PatchResults(TypedDict):
    results: list[PatchedFile]


class ShellOutcome(TypedDict):
    stdout: str
    stderr: str
    returncode: int | None
    stdout_truncated: bool
    stderr_truncated: bool
    timeout: bool
    message: str | None


class TerminalOutput(TypedDict):
    output: str
    truncated: bool


class ExecOutput(TypedDict):
    wall_time_seconds: float
    output: str
    exit_code: NotRequired[int | None]
    session_id: NotRequired[int]
    original_token_count: NotRequired[int]


class GrantedRights(TypedDict):
    permissions: dict[str, Any]
    scope: str


class BashObservation(TypedDict):
    returncode: int | None
    output: NotRequired[str]
    output_head: NotRequired[str]
    output_tail: NotRequired[str]
    elided_chars: NotRequired[int]
    warning: NotRequired[str]


# openai


class ShellOutcomeItem(TypedDict):
    type: str
    exit_code: NotRequired[int]


class ShellCallOutput(TypedDict):
    stdout: str
    stderr: str
    outcome: ShellOutcomeItem


class ShellOutputs(TypedDict):
    output: list[ShellCallOutput]
    max_output_length: NotRequired[int]


class OperationResult(TypedDict):
    status: str
    output: str
