"""Declares the `claude-agent` dialect: the tools of `agent_toolset_20260401`, with the strings of its reference."""

from handrail.dialects import claude_bash
from handrail.model.editor_faults import (
    BadViewRange,
    PatternRefused,
    RangeNotAllowed,
    RangeTooLarge,
    TextTooLarge,
)
from handrail.model.effects import Effect
from handrail.model.faults import (
    AccessDenied,
    AlreadyExists,
    BlockedByFile,
    DanglingLink,
    InvalidPattern,
    IsDirectory,
    LinkLoop,
    MatchCount,
    NoMatch,
    NotADirectory,
    NotFound,
    OutsideRoot,
    PatchTyped,
    PathFault,
    PathTooLong,
    SpecialFile,
    TooLarge,
    WriteFailed,
)
from handrail.model.files import Put
from handrail.model.media_faults import NotText
from handrail.model.paths import is_absolute, quote
from handrail.model.warnings import FilesLeftOut
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest
from handrail.ops.text.display import that_fit
from handrail.ops.text.replace import replace_expected, replace_found
from handrail.runtime.call import Call
from handrail.tools.common_messages import nearest_or
from handrail.tools.media_output import inline
from handrail.tools.messages import Facts, Message, Words
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect, Output

_REASONS: dict[type[PathFault], tuple[str, str, str]] = {
    NotFound: ("file_not_found", "no such file or directory", "Use glob to find the file"),
    NotADirectory: ("not_a_directory", "not a directory", "Name a directory"),
    BlockedByFile: ("not_a_directory", "not a directory", "'{blocker}' is a file; choose another directory"),
    IsDirectory: ("is_directory", "not a regular file", "Name a file in this directory"),
    SpecialFile: ("not_a_file", "not a regular file", "Only regular files can be used"),
    AccessDenied: ("permission_denied", "permission denied", "Check the permissions of the file and its directory"),
    AlreadyExists: ("file_exists", "file already exists", "Choose another name"),
    DanglingLink: ("dangling_link", "no such file or directory", "The path is a link; use the path of its target"),
    PathTooLong: ("invalid_parameters", "file name too long", "Use shorter names"),
    WriteFailed: ("write_failed", "{why}", "Nothing was changed; fix the cause and try again"),
}
"""The end of an error, after tool and path: a code, the reason in the words of the reference, what to do."""
_SHORTEST_MATCH = len("/a:1:\n")
_OPERATIONS = ("read", "write", "edit", "glob", "grep")


def _words_of(tool: str) -> Words:
    words: Words = {
        (tool, fault): Message(code, f"{tool}: {{path}}: {reason}", instead)
        for fault, (code, reason, instead) in _REASONS.items()
    }
    outside = f"{tool}: path {{path!r}} is outside the session's working directory"
    words[tool, OutsideRoot] = Message("path_outside_workspace", outside, "Use a path inside the working directory")
    loop = f"{tool}: path {{path!r}}: too many levels of symbolic links"
    words[tool, LinkLoop] = Message("link_loop", loop, "Use the path of the file itself")
    return words


def _relative_pattern(facts: Facts) -> str:
    """Return what to write instead of a pattern that is absolute or leads up."""
    stem = f"{facts['root']}/"
    pattern, asked_path = facts["params"].get("pattern", ""), facts["params"].get("path")
    if pattern.startswith(stem) and not asked_path and ".." not in pattern.split("/"):
        return f"Use the pattern {pattern.removeprefix(stem)}"
    return "Write the pattern relative to the directory in path"


WORDS: Words = {key: say for tool in _OPERATIONS for key, say in _words_of(tool).items()} | {
    ("write", IsDirectory): Message("is_directory", "write: {path}: is a directory", "Name a file in this directory"),
    ("read", NotText): Message(
        "not_text",
        "read: {path}: not valid UTF-8 text (binary files are only supported for image/PDF extensions)",
        "Use bash to inspect the file",
    ),
    ("edit", NotText): Message(
        "not_text", "edit: {path}: not valid UTF-8 text (cannot edit binary files)", "Use bash to change the file"
    ),
    ("read", BadViewRange): Message(
        "invalid_parameters", "read: view_range must be [start_line, end_line]", "Give two line numbers"
    ),
    ("read", RangeNotAllowed): Message(
        "invalid_parameters",
        "read: view_range is not supported for image/PDF files",
        "Call read without view_range",
    ),
    ("read", TextTooLarge): Message(
        "file_too_large",
        "read: {path} is {size} bytes, exceeds {limit}-byte limit. "
        "Use the view_range parameter to read specific line ranges, e.g. view_range: [1, 500].",
        "Read a part of it with view_range",
    ),
    ("read", TooLarge): Message(
        "file_too_large",
        "read: {path} is {size} bytes, exceeds {limit}-byte limit for image/PDF files.",
        "Make a smaller copy with bash",
    ),
    ("read", RangeTooLarge): Message(
        "file_too_large",
        lambda f: (
            f"read: line {f['first']} of {f['path']} alone exceeds {f['limit']}-byte limit. "
            "The read tool cannot return part of a line, so view_range cannot narrow this further."
            if f["first"] == f["last"]
            else f"read: view_range [{f['first']}, {f['last']}] of {f['path']} exceeds {f['limit']}-byte limit. "
            "Narrow the view_range to read a smaller portion."
        ),
        "Read fewer lines, or use bash",
    ),
    ("edit", TextTooLarge): Message(
        "file_too_large",
        "edit: {path} is {size} bytes, exceeds {limit}-byte limit. "
        "The edit tool loads the whole file and cannot modify a file this large.",
        "Change the file with bash",
    ),
    ("edit", NoMatch): Message(
        "no_match", "edit: old_string not found in {path}", nearest_or("Read the file again and copy the text exactly")
    ),
    ("edit", MatchCount): Message(
        "match_count",
        "edit: old_string appears {found} times in {path} (must be unique)",
        "Add surrounding lines, or set replace_all",
    ),
    PatchTyped: Message(
        "not_a_program",
        "apply_patch is not a program here; nothing was run",
        "Call edit to change a file, or write to make a new one",
    ),
    ("grep", InvalidPattern): Message(
        "invalid_pattern",
        "grep: invalid regex: {reason} at position {position}",
        "A valid pattern would be: {example}",
    ),
    ("glob", PatternRefused): Message(
        "invalid_parameters",
        lambda f: (
            "glob: absolute pattern not permitted; pass a relative pattern (and optionally path)"
            if f["why"] == "absolute"
            else "glob: '..' is not permitted in the pattern"
        ),
        _relative_pattern,
    ),
    ("glob", InvalidPattern): Message("invalid_pattern", "glob: {reason}", "A valid pattern would be: {example}"),
}

dialect = Dialect("claude-agent", WORDS | claude_bash.WORDS, lambda error: error.message)


class AgentBash(Params):
    command: str | None = field("The command to run; needed unless restart is true.", default=None)
    restart: bool = field("End the shell with everything that it started, and begin a new one.", default=False)
    timeout_ms: int | None = field("How long the command may run; 0 means the usual time.", default=None, ge=0)


@dialect.tool(claude_bash.SHELL, Effect.RUN)
def bash(p: AgentBash, c: Call) -> str:
    """Run a command in a bash that keeps its state from call to call."""
    return claude_bash.answer(c, p.command, p.restart, (p.timeout_ms or 0) / 1000)


class AgentRead(Params):
    file_path: str = field("Path of the file, absolute or relative to the working directory.", path=True)
    view_range: list[int] | None = field(
        "First and last line to return, counted from 1; a last line of 0 or less means the end of the file.",
        default=None,
    )


@dialect.tool("read", Effect.READ)
def read(p: AgentRead, c: Call) -> Output:
    """Read a file: text as it is, an image or a PDF as a picture or document."""
    if p.view_range and len(p.view_range) != 2:
        raise BadViewRange(p.file_path, p.view_range, "shape")
    if media := c.files.media(p.file_path):
        if p.view_range:
            raise RangeNotAllowed(p.file_path, "an image or a PDF")
        return inline(media)
    _, size = c.files.head(p.file_path, 0)
    if size > c.limits.claude_agent_bytes and not p.view_range:
        raise TextTooLarge(p.file_path, size, c.limits.claude_agent_bytes)
    first, last = p.view_range or (1, 0)
    first, count = max(1, first), None if last <= 0 else max(0, last - max(1, first) + 1)
    page = c.files.page(p.file_path, first, count, c.limits.claude_agent_bytes)
    if page.cut:
        raise RangeTooLarge(p.file_path, first, last, c.limits.claude_agent_bytes)
    text = _text(p.file_path, page.data)
    return text.removesuffix("\n") if last > 0 and page.count == count and text.endswith("\n") else text


def _text(path: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise NotText(path, "binary data") from None


class AgentWrite(Params):
    file_path: str = field("Path of the file, absolute or relative to the working directory.", path=True)
    content: str = field("The whole content of the file.", body=True)


@dialect.tool("write", Effect.CREATE | Effect.WRITE)
def write(p: AgentWrite, c: Call) -> str:
    """Write a file. Creates missing parent directories."""
    data = p.content.encode()
    c.files.overwrite(p.file_path, data)
    return f"wrote {len(data)} bytes to {p.file_path}"


class AgentEdit(Params):
    file_path: str = field("Path of the file, absolute or relative to the working directory.", path=True)
    old_string: str = field("Exact text to replace.", min_length=1, any_text=True)
    new_string: str = field("Text to replace it with.", any_text=True)
    replace_all: bool = field("Replace every occurrence; otherwise the text must occur once.", default=False)


@dialect.tool("edit", Effect.READ | Effect.WRITE)
def edit(p: AgentEdit, c: Call) -> str:
    """Replace text in a file by an exact match."""
    _, size = c.files.head(p.file_path, 0)
    if size > c.limits.claude_agent_bytes:
        raise TextTooLarge(p.file_path, size, c.limits.claude_agent_bytes)
    file = c.files.read(p.file_path)
    _text(p.file_path, file.data)
    if p.replace_all:
        data, count = replace_found(p.file_path, file.data, p.old_string, p.new_string, c.limits)
    else:
        data = replace_expected(p.file_path, file.data, p.old_string, p.new_string, 1, c.limits)
        count = 1
    c.files.commit(Put(p.file_path, data, file))
    return f"edited {p.file_path} ({count} replacement(s))"


class AgentGlob(Params):
    pattern: str = field('Glob relative to the directory, such as "**/*.py".')
    path: str | None = field("Directory to search; the working directory if left out.", default=None, path=True)


@dialect.tool("glob", Effect.READ)
def glob(p: AgentGlob, c: Call) -> str:
    """List the files that match a glob, newest first."""
    if is_absolute(p.pattern):
        raise PatternRefused("absolute")
    if ".." in p.pattern.split("/"):
        raise PatternRefused("above")
    base = p.path or "."
    scope = Scope((p.pattern,), anywhere=False, ignore_files=False)
    found = c.finder.find(base, FindRequest(scope, sort="time", limit=c.limits.claude_agent_files))
    if found.total > len(found.files):
        c.warnings.append(FilesLeftOut(len(found.files), found.total))
    stem = c.stem + c.files.stem(base)
    return "\n".join(quote(stem + name) for name in found.files) or "no matches"


class AgentGrep(Params):
    pattern: str = field("Regular expression to search for.")
    path: str | None = field("File or directory to search; the working directory if left out.", default=None, path=True)


@dialect.tool("grep", Effect.READ)
def grep(p: AgentGrep, c: Call) -> str:
    """Search the contents of files for a regular expression."""
    room = c.limits.claude_agent_grep_bytes
    directory, only = c.finder.within(p.path or ".")
    request = SearchRequest(p.pattern, limit=room // _SHORTEST_MATCH, scope=Scope(only, anywhere=False))
    result, stem = c.finder.search(directory, request), c.stem + c.files.stem(directory)
    lines = [f"{quote(stem + match.path)}:{match.line}:{match.content}" for match in result.matches]
    kept = that_fit(lines, room)
    cut = [] if len(kept) == len(lines) and not result.truncated else [f"[output truncated at {room} bytes]"]
    return "\n".join([*kept, *cut]) or "no matches"
