"""Types the outputs of tools that answer with an object. The output schemas are derived from these types."""

from typing import NotRequired, TypedDict

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


class Content(TypedDict):
    content: str
    total_lines: int


class Done(TypedDict):
    message: str


class Written(Done):
    bytes_written: int


class Replaced(Done):
    replacements: int
    diff: str


class Edited(Done):
    total_lines: int
    diff: str


class GrepMatch(TypedDict):
    path: str
    line: int
    content: str
    before: list[str]
    after: list[str]


class GrepMatches(Done):
    matches: list[GrepMatch]
    total_matches: int
    files_matched: int
    truncated: bool
    warnings: list[str]


class GlobFiles(Done):
    files: list[str]
    total_files: int
    truncated: bool
    warnings: list[str]


class Ranked(TypedDict):
    path: str
    score: float
    line: int | None
    content: str | None


class Ranking(Done):
    results: list[Ranked]
    total: int
    truncated: bool


class DirectoryEntry(TypedDict):
    name: str
    type: str
    size: int


class Directory(TypedDict):
    entries: list[DirectoryEntry]
    total_entries: int
    truncated: bool


# codex


class Entries(TypedDict):
    entries: list[str]


class Slice(TypedDict):
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
