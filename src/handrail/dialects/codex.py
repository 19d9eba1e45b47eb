"""The `codex` dialect. Its advertised schemas are the reference's, key for key; checking them is kinder."""

from typing import Any

from handrail.effects import Effect
from handrail.faults import BadParameters, Problem
from handrail.kernel.call import Call
from handrail.ops.listing import breadth_first
from handrail.ops.text import split_lines
from handrail.params import Params, field
from handrail.paths import quote
from handrail.tool import Dialect, Tool

dialect = Dialect("codex")


class CodexParams(Params):
    """Schemas in the style of the reference: titles, defaults, and every parameter required."""

    @classmethod
    def schema(cls) -> dict[str, Any]:
        schema = super().schema()
        for name, declared in cls.fields.items():
            each = schema["properties"][name]
            if declared.nullable:
                kind = {word: each.pop(word) for word in ("type", "items") if word in each}
                each["anyOf"] = [kind, {"type": "null"}]
            each["title"] = name.replace("_", " ").title()
        return schema | {"title": cls.__name__, "required": list(cls.fields)}


class ListDirInput(CodexParams):
    path: str = field("Root directory to list from.", default=".")
    depth: int = field("Maximum depth to traverse (BFS).", default=2, ge=0)
    offset: int = field("Number of entries to skip from the start.", default=0, ge=0)
    limit: int = field("Maximum number of entries to return.", default=200, ge=1)


@dialect.tool("list_dir", Effect.READ)
def list_dir(p: ListDirInput, c: Call) -> dict[str, Any]:
    """List directory entries breadth-first up to a depth."""
    c.files.entries(p.path)
    names = breadth_first(c.files.entries, p.path, p.depth)
    return {"entries": [quote(name) for name in names[p.offset : p.offset + p.limit]]}


class ReadFileInput(CodexParams):
    path: str = field("File path to read.")
    offset: int = field("Starting line (0-indexed).", default=0, ge=0)
    limit: int = field("Maximum number of lines to return.", default=400, ge=1)
    mode: str = field("Either 'slice' or 'indentation'.", default="slice")
    indent: str = field("Indentation prefix when mode='indentation'.", default="    ")


@dialect.tool("read_file", Effect.READ)
def read_file(p: ReadFileInput, c: Call) -> dict[str, Any]:
    """Read a slice of a file with optional indentation formatting."""
    if p.mode not in ("slice", "indentation"):
        raise BadParameters([Problem("mode", "choice", "slice, indentation", p.mode)])
    page = c.files.page(p.path, p.offset + 1, p.limit)
    text = page.data.decode(errors="replace")
    if p.mode == "indentation":
        text = "".join(f"{p.indent}{line}\n" for line in split_lines(text))
    return {"text": text, "truncated": page.more}


def tool_registrations() -> list[Tool]:
    return list(dialect.tools.values())
