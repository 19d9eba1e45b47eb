"""Declares the text editor tool: one tool with the commands view, create, str_replace and insert."""

from collections.abc import Iterator
from typing import Any, Literal

from handrail.dialects.claude.dialect import EDITOR, dialect
from handrail.model.editor_faults import BadInsertLine, BadViewRange, MissingParameter, RangeNotAllowed, ReadDenied
from handrail.model.effects import Effect
from handrail.model.faults import AccessDenied, AlreadyExists, IsDirectory, NotAbsolute, NotFound
from handrail.model.files import File, Put
from handrail.model.limits import BINARY_CHECK_BYTES, VIEW_CHARS
from handrail.model.media_faults import NotText
from handrail.model.paths import is_absolute, quote, quote_all, unquote
from handrail.ops.listing import looks_binary
from handrail.ops.text.numbered_views import cat, clipped, insert_after, lines_before, shown_lines
from handrail.ops.text.replace import replace_once
from handrail.runtime.call import Call
from handrail.tools.media_output import inline
from handrail.tools.schema import Params, field
from handrail.tools.tool import Builtin, Output

VIEW_RANGE = "For view: the first and the last line to show, counted from 1; -1 as the last line means the end."
_SNIPPET_LINES = 4
_REVIEW = "Review the changes and make sure they are as expected"
_AGAIN = "Edit the file again if necessary."


def one_form(given: Any) -> Any:
    """Return the parameters with the text to insert as `insert_text`: older versions of the tools call it `new_str`."""
    if not isinstance(given, dict) or given.get("command") != "insert" or "new_str" not in given:
        return given
    rest = {name: value for name, value in given.items() if name != "new_str"}
    return rest if rest.get("insert_text") is not None else {**rest, "insert_text": given["new_str"]}


def effects_of(command: str) -> Effect:
    """Return what a command of an editor tool may do."""
    changes = {"view": Effect.READ, "create": Effect.CREATE, "delete": Effect.DELETE}
    moves = Effect.READ | Effect.CREATE | Effect.DELETE
    return moves if command == "rename" else changes.get(command, Effect.READ | Effect.WRITE)


def needed(value: Any, name: str, command: str) -> Any:
    """Return the value of a parameter. Raises MissingParameter if a command needs it and it is not given."""
    if value is None:
        raise MissingParameter(name, command)
    return value


class EditorView(Params):
    """The parameters of the command that only reads; the only one in a read-only workspace."""

    command: Literal["view"] = field("What to do.")
    path: str = field("Absolute path of the file or directory.", path=True)
    view_range: list[int] | None = field(VIEW_RANGE, default=None)


class Editor(Params):
    reading = EditorView
    command: Literal["view", "create", "str_replace", "insert"] = field("What to do.")
    path: str = field("Absolute path of the file or directory.", path=True)
    view_range: list[int] | None = field(VIEW_RANGE, default=None)
    file_text: str | None = field("For create: the content of the new file.", default=None, body=True)
    old_str: str | None = field("For str_replace: the text to replace; it occurs once.", default=None, any_text=True)
    new_str: str | None = field("For str_replace: the new text; empty if left out.", default=None, any_text=True)
    insert_line: int | None = field("For insert: the line after which the text goes; 0 for the start.", default=None)
    insert_text: str | None = field("For insert: the text to insert.", default=None, any_text=True)

    @classmethod
    def normal(cls, given: Any) -> Any:
        return one_form(given)

    def narrowed(self, effects: Effect) -> Effect:
        return effects & effects_of(self.command)


@dialect.tool(
    EDITOR,
    Effect.READ | Effect.CREATE | Effect.WRITE,
    builtin=Builtin("anthropic", {"type": "text_editor_20250728", "name": EDITOR, "max_characters": VIEW_CHARS}),
)
def str_replace_based_edit_tool(p: Editor, c: Call) -> Output:
    """View, create and edit files. Paths are absolute."""
    if not is_absolute(p.path):
        raise NotAbsolute(p.path)
    kind = c.files.kind(p.path)
    if kind is None and p.command != "create":
        raise NotFound(p.path)
    if kind is not None and p.command == "create":
        raise AlreadyExists(p.path)
    if kind == "directory" and p.command != "view":
        raise IsDirectory(p.path)
    run = {"view": _view, "create": _create, "str_replace": _str_replace, "insert": _insert}[p.command]
    return run(p, c) if kind != "directory" else _view_directory(p, c)


def _view_directory(p: Editor, c: Call) -> str:
    if p.view_range:
        raise RangeNotAllowed(p.path, "a directory")
    top = quote(unquote(p.path).rstrip("/") or "/")
    listed = "\n".join([top, *quote_all([*_names(c, unquote(top), 2)])])
    heading = f"Here's the files and directories up to 2 levels deep in {p.path}, excluding hidden items:"
    return f"{heading}\n{clipped(listed, c.limits.claude_view_chars)}\n\n"


def _names(c: Call, directory: str, depth: int) -> Iterator[str]:
    """Yield the paths below a directory in the order of their names, without hidden ones. Links are not followed."""
    for entry in c.files.entries(quote(directory)):
        if not entry.name.startswith("."):
            path = f"{directory}/{entry.name}"
            yield path
            if depth > 1 and entry.is_directory and not entry.is_link:
                yield from _names(c, path, depth - 1)


def _view(p: Editor, c: Call) -> Output:
    if media := c.files.media(p.path):
        if p.view_range:
            raise RangeNotAllowed(p.path, "an image or a PDF")
        return inline(media)
    data = c.files.read(p.path).data
    if looks_binary(data[:BINARY_CHECK_BYTES]):
        raise NotText(p.path, "binary data")
    lines, note, first = shown_lines(data), "", 1
    if p.view_range:
        first, last = _range(p.path, p.view_range, len(lines))
        if last > len(lines):
            note = f"NOTE: We only show up to {len(lines)} since there're only {len(lines)} lines in this file.\n"
        lines = lines[first - 1 : None if last == -1 else last]
    return note + cat(lines, p.path, first, c.limits.claude_view_chars)


def _range(path: str, given: list[int], total: int) -> tuple[int, int]:
    if len(given) != 2:
        raise BadViewRange(path, given, "shape", total)
    first, last = given
    if not 1 <= first <= total:
        raise BadViewRange(path, given, "first", total)
    if last != -1 and last < first:
        raise BadViewRange(path, given, "order", total)
    return first, last


def read_to_change(c: Call, path: str) -> File:
    """Read a whole file that the call is about to change. Raises ReadDenied if it may not be read."""
    try:
        return c.files.read(path)
    except AccessDenied:
        raise ReadDenied(path) from None


def _create(p: Editor, c: Call) -> str:
    c.files.commit(Put(p.path, needed(p.file_text, "file_text", p.command).encode()))
    return f"File created successfully at: {p.path}"


def _str_replace(p: Editor, c: Call) -> str:
    old, new, file = needed(p.old_str or None, "old_str", p.command), p.new_str or "", read_to_change(c, p.path)
    data = replace_once(p.path, file.data, old, new)
    c.files.commit(Put(p.path, data, file))
    after, changed = shown_lines(data), lines_before(file.data, old)
    start = max(0, changed - _SNIPPET_LINES)
    snippet = after[start : changed + _SNIPPET_LINES + new.count("\n") + 1]
    shown = cat(snippet, f"a snippet of {p.path}", start + 1, c.limits.claude_view_chars)
    return f"The file {p.path} has been edited. {shown}{_REVIEW}. {_AGAIN}"


def _insert(p: Editor, c: Call) -> str:
    at, text = needed(p.insert_line, "insert_line", p.command), needed(p.insert_text, "insert_text", p.command)
    file = read_to_change(c, p.path)
    total = len(shown_lines(file.data))
    if not 0 <= at <= total:
        raise BadInsertLine(p.path, at, total)
    data = insert_after(file.data, at, text)
    c.files.commit(Put(p.path, data, file))
    start = max(0, at - _SNIPPET_LINES)
    snippet = shown_lines(data)[start : at + text.count("\n") + 1 + _SNIPPET_LINES]
    shown = cat(snippet, "a snippet of the edited file", start + 1, c.limits.claude_view_chars)
    return (
        f"The file {p.path} has been edited. {shown}{_REVIEW} (correct indentation, no duplicate lines, etc). {_AGAIN}"
    )
