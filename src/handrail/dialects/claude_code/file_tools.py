"""Declares the tools that read and change files and notebooks."""

import re
from typing import Any, Literal

from handrail.dialects.claude_code.dialect import absolute, dialect
from handrail.model.editor_faults import PagesUnknown, SameText
from handrail.model.effects import Effect
from handrail.model.faults import AlreadyExists, BadLineRange, BadParameters, NotFound, OutsideRoot, Problem
from handrail.model.files import File, Put
from handrail.model.limits import BINARY_CHECK_BYTES
from handrail.model.media import Media
from handrail.model.media_faults import NotText
from handrail.model.notebook_faults import BadNotebook, CellNotFound
from handrail.model.warnings import CellToolExists
from handrail.ops.listing import looks_binary
from handrail.ops.notebook import edit as cell_edit
from handrail.ops.notebook.notebook import Notebook, parse
from handrail.ops.notebook.notebook_text import show
from handrail.ops.text.buffer import numbered, split_lines
from handrail.ops.text.display import without_escapes
from handrail.ops.text.replace import replace_found, replace_once
from handrail.ops.text.structured_patch import structured_patch
from handrail.runtime.call import Call
from handrail.runtime.read_media import read_pages
from handrail.tools.media_output import inline
from handrail.tools.schema import Params, field
from handrail.tools.tool import Output

_NOTEBOOK = ".ipynb"
_PAGES = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


class CodeRead(Params):
    file_path: str = field("The absolute path to the file to read.", path=True)
    offset: int | None = field(
        "The line number to start reading from; for a notebook, the number of cells to skip.", default=None, ge=0
    )
    limit: int | None = field("The number of lines to read; for a notebook, of cells.", default=None, ge=1)
    pages: str | None = field('Page range for PDF files, such as "1-5" or "3". At most 20 pages.', default=None)
    allow_large: bool = field("Show more of a large file at once.", default=False)


@dialect.tool("Read", Effect.READ)
def read(p: CodeRead, c: Call) -> Output:
    """Read a file: text with line numbers, a notebook by cells, an image or a PDF as it is."""
    path = absolute(p.file_path)
    if path.endswith(_NOTEBOOK):
        return _read_notebook(p, c)
    try:
        head, size = c.files.head(path, BINARY_CHECK_BYTES)
    except OutsideRoot:
        if (printed := c.jobs.printed(path)) is None:
            raise
        return _read_printed(p, c, printed)
    media = c.files.media(path)
    if p.pages is not None:
        return _read_pages(p, c, media)
    if media is not None:
        c.metadata.update(_media_facts(path, media))
        return inline(media)
    if looks_binary(head):
        raise NotText(path, f"a binary file, {size} bytes")
    return _read_text(p, c)


def _read_printed(p: CodeRead, c: Call, printed: bytes) -> str:
    """Return the output of a task in the background, which lies outside the workspace."""
    lines, first = split_lines(without_escapes(printed.decode(errors="replace"))), max(1, p.offset or 1)
    shown = lines[first - 1 :][: p.limit or c.limits.claude_code_lines]
    facts = {"filePath": p.file_path, "numLines": len(shown), "startLine": first, "totalLines": len(lines)}
    c.metadata.update(type="text", file=facts)
    return "\n".join(numbered(shown, first)) or "The task has printed nothing yet."


def _read_text(p: CodeRead, c: Call) -> str:
    limits, first = c.limits, max(1, p.offset or 1)
    room = limits.page_bytes if p.allow_large else limits.claude_code_read_bytes
    page = c.files.page(p.file_path, first, p.limit or limits.claude_code_lines, room)
    if first > max(page.total_lines, 1):
        raise BadLineRange(p.file_path, first, None, page.total_lines)
    lines = [_cut(line, limits.claude_code_line_chars) for line in split_lines(c.files.text(p.file_path, page.data))]
    if page.cut and len(lines) > 1:
        lines.pop()  # the answer ends with a whole line
    about: dict[str, Any] = {"filePath": p.file_path, "numLines": len(lines), "startLine": first}
    about |= {"totalLines": page.total_lines} | ({"truncatedByTokenCap": True} if page.cut else {})
    c.metadata.update(type="text", file=about)
    if not page.size:
        return "The file exists, but it is empty."
    text = "\n".join(numbered(lines, first))
    if not page.more:
        return text
    last = first + len(lines) - 1
    return f"{text}\n\n(Lines {first}-{last} of {page.total_lines}; use offset and limit to read more.)"


def _cut(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[:most]}… ({len(line) - most} characters cut)"


def _read_pages(p: CodeRead, c: Call, media: Media | None) -> Output:
    """Return a PDF with the chosen pages only. Raises PagesUnknown."""
    if media is None or media.is_image:
        raise PagesUnknown(p.file_path, "not_pdf")
    named = _PAGES.fullmatch((p.pages or "").strip())
    first, last = (int(named[1]), int(named[2] or named[1])) if named else (0, 0)
    if not 0 < first <= last:
        raise PagesUnknown(p.file_path, "form")
    if last - first >= c.limits.pdf_pages:
        raise PagesUnknown(p.file_path, "too_many", c.limits.pdf_pages)
    chosen, total = read_pages(c, p.file_path, media, (first, last))
    facts = {"filePath": p.file_path, "originalSize": media.original_size, "count": min(last, total) - first + 1}
    c.metadata.update(type="parts", file=facts, firstPage=first)
    return inline(chosen)


def _media_facts(path: str, media: Media) -> dict[str, Any]:
    if not media.is_image:
        return {"type": "pdf", "file": {"filePath": path, "originalSize": media.original_size}}
    original = {"originalWidth": media.original_width, "originalHeight": media.original_height}
    sizes = original | {"displayWidth": media.width, "displayHeight": media.height}
    return {"type": "image", "file": {"type": media.mime, "originalSize": media.original_size, "dimensions": sizes}}


def _read_notebook(p: CodeRead, c: Call) -> str:
    if p.pages is not None:
        raise PagesUnknown(p.file_path, "not_pdf")
    book = parse(p.file_path, c.files.read(p.file_path).data)
    first = p.offset or 0
    if first > max(len(book.cells) - 1, 0):
        raise CellNotFound(p.file_path, f"cell-{first}", [book.name(cell) for cell in book.cells])
    cells, more = show(book, first, p.limit, c.limits)
    facts = [{"cell_id": cell.name, "cellType": cell.kind, "outputs": len(cell.outputs)} for cell in cells]
    c.metadata.update(type="notebook", file={"filePath": p.file_path, "cells": facts})
    text = "\n".join(cell.text for cell in cells) or "The notebook has no cells."
    shown = f"(Cells {first}-{first + len(cells) - 1} of {len(book.cells)}; use offset and limit to read more.)"
    return f"{text}\n\n{shown}" if more else text


class CodeWrite(Params):
    file_path: str = field("The absolute path to the file to write (must be absolute, not relative).", path=True)
    content: str = field("The content to write to the file.", body=True)


@dialect.tool("Write", Effect.CREATE | Effect.WRITE)
def write(p: CodeWrite, c: Call) -> str:
    """Write a file. An existing file must have been read before, and is replaced."""
    path, data = absolute(p.file_path), p.content.encode()
    old = c.files.read_before(path)
    c.files.put(path, data, old)
    _note_change(c, path, old, data, type="update" if old else "create")
    return f"The file {path} has been updated successfully." if old else f"File created successfully at: {path}"


class CodeEdit(Params):
    file_path: str = field("The absolute path to the file to modify.", path=True)
    old_string: str = field("The text to replace.", any_text=True)
    new_string: str = field(
        "The text to replace it with (must be different from old_string).", any_text=True, body=True
    )
    replace_all: bool = field("Replace all occurrences of old_string.", default=False)


@dialect.tool("Edit", Effect.READ | Effect.CREATE | Effect.WRITE)
def edit(p: CodeEdit, c: Call) -> str:
    """Replace text in a file that was read before. Without replace_all, the text must occur exactly once."""
    path = absolute(p.file_path)
    if p.old_string == p.new_string:
        raise SameText(path)
    old = c.files.read_before(path)
    data = _edited(p, c, old)
    c.files.put(path, data, old)
    _note_change(c, path, old, data, replaceAll=p.replace_all, userModified=False)
    if old is None:
        return f"File created successfully at: {path}"
    done = "All occurrences were successfully replaced." if p.replace_all else ""
    return f"The file {path} has been updated. {done}" if done else f"The file {path} has been updated successfully."


def _edited(p: CodeEdit, c: Call, old: File | None) -> bytes:
    """Return the new content. An empty old_string writes a file that does not exist, or is empty."""
    if not p.old_string and (old is None or not old.data):
        return p.new_string.encode()
    if old is None:
        raise NotFound(p.file_path)
    if not p.old_string:
        raise AlreadyExists(p.file_path)
    if p.replace_all:
        return replace_found(p.file_path, old.data, p.old_string, p.new_string, c.limits)[0]
    return replace_once(p.file_path, old.data, p.old_string, p.new_string)


def _note_change(c: Call, path: str, old: File | None, data: bytes, **facts: Any) -> None:
    """Add the facts of a change, and a warning if a notebook was changed as text."""
    patch = structured_patch(old.data if old else b"", data, c.limits.diff_chars) if old else []
    c.metadata.update({"filePath": path, "structuredPatch": patch} | facts)
    if path.endswith(_NOTEBOOK) and old is not None:
        c.warnings.append(CellToolExists("NotebookEdit"))


class NotebookEdit(Params):
    notebook_path: str = field("The absolute path to the Jupyter notebook file to edit.", path=True)
    cell_id: str | None = field(
        "The ID of the cell to edit. A new cell is inserted after this cell, or first if it is not given.", default=None
    )
    new_source: str = field("The new source for the cell.", any_text=True, body=True)
    cell_type: Literal["code", "markdown"] | None = field(
        "The type of the cell. It stays as it is if not given; insert needs it.", default=None
    )
    edit_mode: Literal["replace", "insert", "delete"] = field("What to do with the cell.", default="replace")


@dialect.tool("NotebookEdit", Effect.READ | Effect.WRITE)
def notebook_edit(p: NotebookEdit, c: Call) -> str:
    """Replace, insert or delete one cell of a notebook that was read before. Every other byte of it stays."""
    path = absolute(p.notebook_path)
    c.files.kind(path)  # raises a PathFault if the path leads outside
    if not path.endswith(_NOTEBOOK):
        raise BadNotebook(path, "name")
    old = c.files.read_before(path)
    if old is None:
        raise NotFound(path)
    book = parse(path, old.data)
    done = _cell_edited(p, book)
    c.files.commit(Put(path, done.data, old))
    facts = {"notebook_path": path, "cell_id": done.name, "cell_type": done.kind, "language": book.language}
    c.metadata.update(facts | {"edit_mode": p.edit_mode, "old_source": done.old_source})
    said = {"replace": "Updated", "insert": "Inserted", "delete": "Deleted"}[p.edit_mode]
    return f"{said} cell {done.name}" + (f" with {p.new_source}" if p.edit_mode != "delete" else "")


def _cell_edited(p: NotebookEdit, book: Notebook) -> cell_edit.Edited:
    missing = "cell_type" if p.edit_mode == "insert" else "cell_id"
    if getattr(p, missing) is None:
        raise BadParameters([Problem("", "missing", missing)])
    cell = book.find(p.cell_id) if p.cell_id else None
    if p.edit_mode == "insert" or cell is None:
        return cell_edit.insert(book, cell, p.new_source, p.cell_type or "code")
    if p.edit_mode == "delete":
        return cell_edit.delete(book, cell)
    return cell_edit.replace(book, cell, p.new_source, p.cell_type)
