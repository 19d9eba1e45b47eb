"""Declares the tools that list, read and change files."""

from handrail.dialects.gemini_3.dialect import Gemini3Params, absolute, dialect
from handrail.model.editor_faults import SameText
from handrail.model.effects import Effect
from handrail.model.faults import BadLineRange, BadParameters, PathFault, Problem, TooLarge
from handrail.model.files import Page, Put
from handrail.model.limits import BINARY_CHECK_BYTES
from handrail.model.paths import quote
from handrail.ops.listing import collation_key, looks_binary, name_filter
from handrail.ops.media_types import media_type
from handrail.ops.search.scope import FindRequest, Scope
from handrail.ops.text.replace import replace_expected, replace_found
from handrail.ops.text.snippet import changed_parts
from handrail.runtime.call import Call
from handrail.tools.media_output import inline
from handrail.tools.schema import field
from handrail.tools.tool import Output

_AROUND = 5
"""Lines that an edit shows before and after its changes."""
_BINARY = "Cannot display content of binary file: "
_TRUNCATED = "... [truncated]"
_NEVER_READ = (
    *("node_modules", ".git", "bower_components", ".svn", ".hg", ".vscode", ".idea"),
    *("dist", "build", "coverage", "__pycache__", ".DS_Store", ".env", "GEMINI.md"),
    "*.{bin,exe,dll,so,dylib,class,jar,war,zip,tar,gz,bz2,rar,7z,pak,rpa,pyc,pyo}",
    "*.{doc,docx,xls,xlsx,ppt,pptx,odt,ods,odp}",
)
"""What `read_many_files` leaves out unless the call says otherwise."""


class ListDirectory3(Gemini3Params):
    dir_path: str = field("The path to the directory to list", path=True)
    ignore: list[str] | None = field("List of glob patterns to ignore", default=None)


@dialect.tool("list_directory", Effect.READ, bounded=True)
def list_directory(p: ListDirectory3, c: Call) -> str:
    """List the names of files and subdirectories directly within a directory, with the sizes of files."""
    ignored, where = name_filter(p.ignore or []), absolute(c.root, p.dir_path)
    entries = [each for each in c.files.entries(p.dir_path or ".") if each.kind in ("file", "directory")]
    if not entries:
        return f"Directory {where} is empty."
    shown = [each for each in entries if not ignored(each.name)]
    shown.sort(key=lambda each: (not each.is_directory, collation_key(each.name)))
    lines = (
        f"[DIR] {quote(each.name)}" if each.is_directory else f"{quote(each.name)} ({each.size} bytes)"
        for each in shown
    )
    return f"Directory listing for {where}:\n" + "\n".join(lines)


class ReadFile3(Gemini3Params):
    file_path: str = field("The path to the file to read.", path=True)
    start_line: int | None = field("Optional: The 1-based line number to start reading from.", default=None, ge=1)
    end_line: int | None = field("Optional: The 1-based line number to end reading at (inclusive).", default=None, ge=1)


@dialect.tool("read_file", Effect.READ)
def read_file(p: ReadFile3, c: Call) -> Output:
    """Read the content of a file: text, or part of it by lines, an image, audio or a PDF."""
    if p.start_line and p.end_line and p.start_line > p.end_line:
        raise BadLineRange(p.file_path, p.start_line, p.end_line, c.files.page(p.file_path, 1, 0).total_lines)
    if media_type(p.file_path) and (media := c.files.media(p.file_path)):
        return inline(media)
    page = _text_page(c, p.file_path, p.start_line or 1, p.end_line)
    if page is None:
        return f"{_BINARY}{quote(c.files.relative(p.file_path))}"
    text, cut = _shortened(page.data.decode(errors="replace"), c)
    if not (page.more or page.first > 1 or cut):
        return text
    if not page.count:
        return _no_lines(page.first, page.total_lines)
    first, last = page.first, page.first + page.count - 1
    return (
        "\nIMPORTANT: The file content has been truncated.\n"
        f"Status: Showing lines {first}-{last} of {page.total_lines} total lines.\n"
        "Action: To read more of the file, you can use the 'start_line' and 'end_line' parameters in a subsequent "
        f"'read_file' call. For example, to read the next section of the file, use start_line: {last + 1}.\n\n"
        f"--- FILE CONTENT (truncated) ---\n{text.removesuffix(chr(10))}"
    )


def _no_lines(first: int, total: int) -> str:
    action = f"\nAction: To read the file, use a start_line from 1 to {total}." if total else ""
    return (
        f"\nIMPORTANT: No file content is shown.\nStatus: There is no line {first}: the file has {total} lines.{action}"
    )


def _text_page(c: Call, path: str, first: int, last: int | None) -> Page | None:
    """Read lines of a text file; None for a binary file. Raises TooLarge."""
    head, size = c.files.head(path, BINARY_CHECK_BYTES)
    if size > c.limits.gemini_read_bytes:
        raise TooLarge(path, size, c.limits.gemini_read_bytes)
    if looks_binary(head):
        return None
    return c.files.page(path, first, last - first + 1 if last else c.limits.gemini_3_lines)


def _shortened(text: str, c: Call) -> tuple[str, bool]:
    """Cut long lines. Returns the text, and whether a line was cut."""
    most = c.limits.gemini_3_line_chars
    lines = text.split("\n")
    cut = [line if len(line) <= most else line[:most] + _TRUNCATED for line in lines]
    return "\n".join(cut), cut != lines


class ReadManyFiles(Gemini3Params):
    include: list[str] = field(
        'An array of glob patterns or paths. Examples: ["src/**/*.ts"], ["README.md", "docs/"]', min_length=1
    )
    exclude: list[str] | None = field(
        "Optional. Glob patterns for files/directories to exclude. Added to default excludes if "
        'useDefaultExcludes is true. Example: "**/*.log", "temp/"',
        default=None,
    )
    recursive: bool = field(
        "Optional. Whether to search recursively (primarily controlled by `**` in glob patterns). Defaults to true.",
        default=True,
    )
    default_excludes: bool = field(
        "Optional. Whether to leave out what ignore files name, and a list of usual directories and binary files.",
        default=True,
        name="useDefaultExcludes",
    )


@dialect.tool("read_many_files", Effect.READ, bounded=True)
def read_many_files(p: ReadManyFiles, c: Call) -> str:
    """Read the text files that glob patterns or paths name, one after the other."""
    parts = [part for name in _named_files(p, c) if (part := _content(name, c))]
    if not parts:
        return "No files matching the criteria were found or all were skipped."
    return "".join([*parts, "\n--- End of content ---"])


def _named_files(p: ReadManyFiles, c: Call) -> list[str]:
    """Return the files that the globs name, by path. A path with a final slash names everything below it."""
    if any(not each for each in p.include):
        raise BadParameters([Problem(f"include/{p.include.index('')}", "length", "1 characters", "0")])
    globs = tuple(
        (c.finder.relative_glob(each) or each).removeprefix("./") + ("**" if each.endswith("/") else "")
        for each in p.include
    )
    scope = Scope(
        globs,
        (*(p.exclude or ()), *(_NEVER_READ if p.default_excludes else ())),
        anywhere=False,
        fold_case=True,
        ignore_files=p.default_excludes,
        max_depth=None if p.recursive else 1,
    )
    return c.finder.find(".", FindRequest(scope, limit=c.limits.gemini_3_files)).files


def _content(name: str, c: Call) -> str:
    """Return one file with its header; nothing for an image, or for a file that cannot be read."""
    if media_type(name):
        return ""
    try:
        page = _text_page(c, quote(name), 1, None)
    except (PathFault, TooLarge):
        return ""  # deleted since it was found, not readable, or too large
    header = f"--- {quote(c.stem + name)} ---"
    if page is None:
        return f"{header}\n\n{_BINARY}{quote(name)}\n\n"
    text, cut = _shortened(page.data.decode(errors="replace"), c)
    warning = (
        "[WARNING: This file was truncated. To view the full content, use the 'read_file' tool on this specific file.]"
        "\n\n"
    )
    shown = warning + text.removesuffix("\n") if page.more else warning + text if cut else text
    return f"{header}\n\n{shown}\n\n"


class WriteFile3(Gemini3Params):
    file_path: str = field("Path to the file.", path=True)
    content: str = field(
        "The complete content to write. Provide the full file; do not use placeholders like '// ... rest of code'.",
        body=True,
    )


@dialect.tool("write_file", Effect.CREATE | Effect.WRITE)
def write_file(p: WriteFile3, c: Call) -> str:
    """Write the complete content to a file, and create missing parent directories."""
    data, old = p.content.encode(), c.files.read_if_there(p.file_path)
    c.files.put(p.file_path, data, old)
    where = absolute(c.root, p.file_path)
    done = f"Successfully overwrote file: {where}." if old else f"Successfully created and wrote to new file: {where}."
    return f"{done} Here is the updated code:\n{_updated(old.data if old else b'', data)}"


def _updated(old: bytes, new: bytes) -> str:
    """Return the changed lines and those around them, with plain line ends."""
    return changed_parts(old, new, _AROUND).replace("\r\n", "\n")


class Replace3(Gemini3Params):
    file_path: str = field("The path to the file to modify.", path=True)
    instruction: str = field(
        "A clear, semantic instruction for the code change, acting as a high-quality prompt for an expert LLM "
        "assistant. It must be self-contained and explain the goal of the change."
    )
    old_string: str = field(
        "The exact literal text to replace, unescaped. If this string is not the exact literal text (i.e. you "
        "escaped it) or does not match exactly, the tool will fail.",
        any_text=True,
    )
    new_string: str = field(
        "The exact literal text to replace `old_string` with, unescaped. Provide the EXACT text. Ensure the "
        "resulting code is correct and idiomatic. Do not use omission placeholders like '(rest of methods ...)', "
        "'...', or 'unchanged code'; provide exact literal code.",
        any_text=True,
    )
    allow_multiple: bool = field(
        "If true, the tool will replace all occurrences of `old_string`. If false (default), it will only succeed if "
        "exactly one occurrence is found.",
        default=False,
    )


@dialect.tool("replace", Effect.READ | Effect.CREATE | Effect.WRITE)
def replace(p: Replace3, c: Call) -> str:
    """Replace text within a file, by default exactly one occurrence."""
    where = absolute(c.root, p.file_path)
    if not p.old_string:
        c.files.commit(Put(p.file_path, p.new_string.encode()))
        return f"Created new file: {where} with provided content. Here is the updated code:\n{p.new_string}"
    file, count = c.files.read(p.file_path), 1
    if p.allow_multiple:
        data, count = replace_found(p.file_path, file.data, p.old_string, p.new_string, c.limits)
    else:
        data = replace_expected(p.file_path, file.data, p.old_string, p.new_string, 1, c.limits)
    if data == file.data:
        raise SameText(p.file_path)
    c.files.commit(Put(p.file_path, data, file))
    shown = _updated(file.data, data)
    return f"Successfully modified file: {where} ({count} replacements). Here is the updated code:\n{shown}"
