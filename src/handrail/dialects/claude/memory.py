"""Declares the memory tool: files that a model keeps from session to session, in a directory of their own."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

from handrail.dialects.claude.dialect import MEMORY, dialect, is_in_memory
from handrail.dialects.claude.editor import VIEW_RANGE, effects_of, needed, one_form, read_to_change
from handrail.model.editor_faults import (
    BadInsertLine,
    DestinationExists,
    IntoItself,
    MemoryFull,
    MountItself,
    NothingToMove,
    TooManyLines,
)
from handrail.model.effects import Effect
from handrail.model.faults import IsDirectory, NotFound, OutsideRoot, TooLarge
from handrail.model.files import FileEntry, Put
from handrail.model.paths import MEMORIES, quote, unquote
from handrail.ops.text.buffer import numbered
from handrail.ops.text.display import short_size
from handrail.ops.text.numbered_views import insert_after, lines_before, shown_lines
from handrail.ops.text.replace import replace_once
from handrail.runtime.call import Call
from handrail.runtime.whole_trees import moves, removals, total_size
from handrail.tools.answer_budget import short_listing
from handrail.tools.schema import Params, field
from handrail.tools.tool import Builtin

_MOST_LINES = 999_999
_SNIPPET_LINES = 2


class MemoryView(Params):
    """The parameters of the command that only reads; the only one in a read-only workspace."""

    mount = MEMORIES
    command: Literal["view"] = field("What to do.")
    path: str = field("Path of the file or directory; it begins with /memories.", path=True)
    view_range: list[int] | None = field(VIEW_RANGE, default=None)


class Memory(Params):
    mount, reading = MEMORIES, MemoryView
    command: Literal["view", "create", "str_replace", "insert", "delete", "rename"] = field("What to do.")
    path: str | None = field("Path of the file or directory; it begins with /memories.", default=None, path=True)
    view_range: list[int] | None = field(VIEW_RANGE, default=None)
    file_text: str | None = field("For create: the content of the new file.", default=None, body=True)
    old_str: str | None = field("For str_replace: the text to replace; it occurs once.", default=None, any_text=True)
    new_str: str | None = field("For str_replace: the new text; empty if left out.", default=None, any_text=True)
    insert_line: int | None = field("For insert: the line after which the text goes; 0 for the start.", default=None)
    insert_text: str | None = field("For insert: the text to insert.", default=None, any_text=True)
    old_path: str | None = field("For rename: the present path.", default=None, path=True)
    new_path: str | None = field("For rename: the new path.", default=None, path=True)

    @classmethod
    def normal(cls, given: Any) -> Any:
        return one_form(given)

    def narrowed(self, effects: Effect) -> Effect:
        return effects & effects_of(self.command)


@dialect.tool(
    MEMORY,
    Effect.READ | Effect.CREATE | Effect.WRITE | Effect.DELETE,
    builtin=Builtin("anthropic", {"type": "memory_20250818", "name": MEMORY}),
)
def memory(p: Memory, c: Call) -> str:
    """Keep files from session to session, in a directory of their own: /memories."""
    return _COMMANDS[p.command](p, c)


def _checked(path: str | None, name: str, command: str) -> str:
    """Return a path in the memory directory. Raises OutsideRoot for every other path."""
    given: str = needed(path, name, command)
    if not is_in_memory(given):
        raise OutsideRoot(given)
    return given


def _file(p: Memory, c: Call) -> str:
    """Return the path of an existing file."""
    path = _checked(p.path, "path", p.command)
    kind = c.files.kind(path)
    if kind is None:
        raise NotFound(path)
    if kind == "directory":
        raise IsDirectory(path)
    return path


def _view(p: Memory, c: Call) -> str:
    path = _checked(p.path, "path", p.command)
    if c.files.kind(path) == "directory":
        return _listing(path, c)
    lines = shown_lines(c.files.read(path).data)
    if len(lines) > _MOST_LINES:
        raise TooManyLines(path)
    first = 1
    if p.view_range and len(p.view_range) == 2:
        first, last = max(1, p.view_range[0]), p.view_range[1]
        lines = lines[first - 1 : None if last == -1 else last]
    return f"Here's the content of {path} with line numbers:\n" + "\n".join(numbered(lines, first))


def _listing(path: str, c: Call) -> str:
    top = unquote(path).rstrip("/")
    rows = [f"{short_size(c.files.entry(path).size)}\t{quote(top)}"]
    for stem, entry in _entries(c, top, 2):
        if len(rows) > c.limits.memory_entries:
            rows.append(f"… more than {c.limits.memory_entries} entries")
            break
        mark = "/" if entry.is_directory else ""
        rows.append(f"{short_size(entry.size)}\t{quote(f'{stem}/{entry.name}{mark}')}")
    heading = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return short_listing("\n".join([heading, *rows]), c)


def _entries(c: Call, directory: str, depth: int) -> Iterator[tuple[str, FileEntry]]:
    for entry in c.files.entries(quote(directory)):
        if entry.kind in ("file", "directory") and not entry.name.startswith("."):
            yield directory, entry
            if depth > 1 and entry.is_directory:
                yield from _entries(c, f"{directory}/{entry.name}", depth - 1)


def _create(p: Memory, c: Call) -> str:
    path, text = _checked(p.path, "path", p.command), needed(p.file_text, "file_text", p.command)
    c.files.commit(_put(path, text.encode(), c))
    return f"File created successfully at: {path}"


def _put(path: str, data: bytes, c: Call) -> Put:
    """Return the change that writes a file. Raises TooLarge or MemoryFull; a smaller file always fits."""
    if len(data) > c.limits.memory_file_bytes:
        raise TooLarge(path, len(data), c.limits.memory_file_bytes)
    size, count = total_size(c.files, MEMORIES)
    there = c.files.entry(path).size if (exists := c.files.kind(path) is not None) else 0
    if len(data) > there and size - there + len(data) > c.limits.memory_bytes:
        raise MemoryFull(path, c.limits.memory_bytes, "bytes")
    if not exists and count >= c.limits.memory_files:
        raise MemoryFull(path, c.limits.memory_files, "files")
    return Put(path, data)


def _str_replace(p: Memory, c: Call) -> str:
    path = _file(p, c)
    old, file = needed(p.old_str or None, "old_str", p.command), read_to_change(c, path)
    data = replace_once(path, file.data, old, p.new_str or "")
    c.files.commit(_put(path, data, c)._replace(base=file))
    after, changed = shown_lines(data), lines_before(file.data, old)
    start = max(0, changed - _SNIPPET_LINES)
    snippet = "\n".join(numbered(after[start : changed + _SNIPPET_LINES + 1], start + 1))
    return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"


def _insert(p: Memory, c: Call) -> str:
    path = _file(p, c)
    at, text = needed(p.insert_line, "insert_line", p.command), needed(p.insert_text, "insert_text", p.command)
    file = read_to_change(c, path)
    lines = shown_lines(file.data)
    total = len(lines) - (lines[-1] == "")
    if not 0 <= at <= total:
        raise BadInsertLine(path, at, total)
    data = insert_after(file.data, at, text.rstrip("\n"))
    data += b"" if data.endswith(b"\n") else b"\n"
    c.files.commit(_put(path, data, c)._replace(base=file))
    return f"The file {path} has been edited."


def _delete(p: Memory, c: Call) -> str:
    path = _checked(p.path, "path", p.command)
    _expect_below_root(path, p.command, c)
    c.files.commit(*removals(c.files, path, c.limits.memory_entries))
    return f"Successfully deleted {path}"


def _rename(p: Memory, c: Call) -> str:
    old, new = _checked(p.old_path, "old_path", p.command), _checked(p.new_path, "new_path", p.command)
    _expect_below_root(old, p.command, c)
    there, place = c.files.target(old), c.files.target(new)
    if c.files.kind(new) is not None:
        raise DestinationExists(new)
    if f"{place}/".startswith(f"{there}/"):
        raise IntoItself(old)
    c.files.commit(*moves(c.files, old, new, c.limits.memory_entries))
    return f"Successfully renamed {old} to {new}"


def _expect_below_root(path: str, command: str, c: Call) -> None:
    if c.files.kind(path) is None and not c.files.is_link(path):
        raise NothingToMove(path)
    if c.files.target(path) == MEMORIES:
        raise MountItself(path, command)


_COMMANDS: dict[str, Callable[[Memory, Call], str]] = {
    "view": _view,
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
    "delete": _delete,
    "rename": _rename,
}
