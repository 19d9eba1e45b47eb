"""Shows a notebook as text: every cell with its name, and its outputs shortened."""

from base64 import b64decode
from binascii import Error
from typing import Any, NamedTuple

from handrail.model.limits import Limits
from handrail.ops.media_header import described, media_header
from handrail.ops.notebook.notebook import Cell, Notebook, joined
from handrail.ops.text.display import cut_middle, without_escapes

_NOT_TEXT = "[the source is not text]"
_HEAD_CHARS = 64 * 1024


class ShownCell(NamedTuple):
    """Holds a cell as an answer shows it."""

    name: str
    kind: str
    source: str
    outputs: list[str]
    execution_count: str

    @property
    def text(self) -> str:
        """The cell between its tags, then its outputs."""
        kind = "" if self.kind == "code" else f"<cell_type>{self.kind}</cell_type>"
        whole = f'<cell id="{self.name}">{kind}{self.source}</cell id="{self.name}">'
        return "\n".join([whole, *self.outputs])


def show(book: Notebook, first: int, count: int | None, limits: Limits) -> tuple[list[ShownCell], bool]:
    """Return some cells, numbered from 0, as far as they fit into an answer, and whether there are more."""
    shown: list[ShownCell] = []
    room = limits.notebook_chars
    last = len(book.cells) if count is None else min(len(book.cells), first + count)
    for cell in book.cells[first:last]:
        made = _shown(book, cell, limits)
        room -= len(made.text)
        if room < 0 and shown:
            break
        shown.append(made)
    return shown, first + len(shown) < len(book.cells)


def _shown(book: Notebook, cell: Cell, limits: Limits) -> ShownCell:
    source = cell.source
    text = _NOT_TEXT if source is None else cut_middle(_clean(source), limits.notebook_chars)
    count = cell.members.get("execution_count", cell.members.get("prompt_number"))
    ran = count if isinstance(count, str) and len(count) < 10 else ""
    return ShownCell(book.name(cell), _clean(cell.kind)[:40], text, _outputs(cell, limits), ran)


def _outputs(cell: Cell, limits: Limits) -> list[str]:
    """Return the outputs of a cell as texts, shortened together to the limit."""
    found = cell.members.get("outputs")
    room, made = limits.notebook_output_chars, list[str]()
    listed = found if isinstance(found, list) else []
    for number, output in enumerate(listed):
        if room <= 0:
            made.append(f"[{len(listed) - number} more outputs are not shown]")
            break
        text = cut_middle(_output(output), room)
        room -= len(text)
        if text:
            made.append(text)
    return made


def _output(output: Any) -> str:
    """Return one output as text: a stream, an error, or the plain text of a result and the kinds of its other forms."""
    if not isinstance(output, dict):
        return ""
    if output.get("output_type") in ("error", "pyerr"):
        trace = output.get("traceback")
        lines = [each for each in trace if isinstance(each, str)] if isinstance(trace, list) else []
        return without_escapes(_clean("\n".join(lines) or f"{output.get('ename')}: {output.get('evalue')}"))
    data = output.get("data")
    parts = data if isinstance(data, dict) else {_mime(name): value for name, value in output.items()}
    text = joined(output.get("text", parts.get("text/plain", ""))) or ""
    images = [_image(kind, value) for kind, value in parts.items() if kind.startswith("image/")]
    return "\n".join([*filter(None, [without_escapes(_clean(text)).rstrip("\n")]), *images])


def _mime(name: str) -> str:
    """Return the media type of a member of an output before format 4."""
    return f"image/{name}" if name in ("png", "jpeg", "svg") else name


def _image(kind: str, value: Any) -> str:
    text = joined(value) or ""
    try:
        found = media_header(b64decode("".join(text[:_HEAD_CHARS].split())[: _HEAD_CHARS // 8 * 4]))
    except (Error, ValueError):
        found = None
    size = len(text) * 3 // 4
    return f"[{described(_clean(kind)[:80], size, *(found[1:] if found else ()))}]"


def _clean(text: str) -> str:
    """Return a text without lone surrogates, which escapes in JSON can make."""
    return text if text.isascii() else text.encode(errors="replace").decode()
