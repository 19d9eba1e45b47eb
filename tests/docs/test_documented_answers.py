"""Tests that clients get the answers that the documents describe."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from support.documents import names, section, table, text
from support.mcp_client import in_memory, talk

from handrail import ToolResult, Workspace

CALLS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "text": ("copilot", "read_file", {"path": "a.txt"}),
    "an object": ("file", "file.read", {"path": "a.txt"}),
    "an image": ("gemini", "read_file", {"absolute_path": "ROOT/a.png"}),
    "audio": ("gemini", "read_file", {"absolute_path": "ROOT/a.mp3"}),
    "a video or a PDF": ("gemini", "read_file", {"absolute_path": "ROOT/a.pdf"}),
    "an error, as text": ("copilot", "read_file", {"path": "nowhere"}),
    "an error, as an object": ("file", "file.read", {"path": "nowhere"}),
    "an unknown tool": ("file", "file.sing", {}),
    "denied": ("file", "file.write", {"path": "b.txt", "content": ""}),
    "timed out, in `codex`": ("codex", "shell", {"command": "sleep 60", "timeout_ms": 100}),
    "timed out, elsewhere": ("copilot", "run_in_terminal", {"command": "sleep 60", "timeout_seconds": 1}),
    "an object, with a warning": ("file", "file.read", {"path": "a.txt"}),
}
ANSWERS = {row[0]: row[1:] for row in table(section("docs/results.md", "Over MCP"))}


@pytest.mark.parametrize("kind", [*CALLS])
def test_documented_answer_matches_mcp_result(kind: str, root: Path) -> None:
    assert [*ANSWERS] == [*CALLS]
    dialect, tool, params = CALLS[kind]
    for name in ("a.txt", "a.png", "a.mp3", "a.pdf"):
        (root / name).write_bytes(b"x")
    given = {
        key: value.replace("ROOT", str(root)) if isinstance(value, str) else value for key, value in params.items()
    }

    async def act(client: Client) -> Any:
        return await client.call_tool(tool, given)

    with Workspace(str(root), sandbox="off", approve="never" if kind == "denied" else "auto") as workspace:
        if "warning" in kind:
            root.rename(root.with_name("elsewhere"))
            root.mkdir()
        result = talk(in_memory(workspace, dialect=dialect), act)
    envelope = result.meta["handrail/result"]
    always = ["tool", "success", "files_affected", "execution_time_ms"]
    assert [*envelope][:4] == always
    assert ANSWERS[kind] == [
        str(result.is_error).lower(),
        ", ".join(block.type for block in result.content),
        _structure(result),
        ", ".join([*envelope][4:]),
    ]


def _structure(result: Any) -> str:
    fields = result.structured_content
    return "" if fields is None else "output, hints" if "hints" in fields else "output"


def test_documented_envelope_fields_match_tool_result() -> None:
    listed = [name for row in table(text("docs/results.md")) for name in names(row[0])]
    assert listed == [each.name for each in dataclasses.fields(ToolResult) if each.repr]
