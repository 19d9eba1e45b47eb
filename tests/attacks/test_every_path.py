"""Puts the table of path attacks into every path of every tool: nothing outside is shown or changed."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attacks.test_boundary import TABLE
from support import tool_scenarios
from support.media import png
from support.trap_arena import SECRET, Arena, build

from handrail import Workspace
from handrail.model.effects import Effect
from handrail.tools.tool import Tool

PATHS = [path for rows in TABLE.values() for path, _, _ in rows]
PATCH = "*** Begin Patch\n{}\n*** End Patch\n"
HUNKS = (
    "*** Add File: {}\n+mine",
    "*** Update File: {}\n@@\n-two\n+2",
    "*** Delete File: {}",
    "*** Update File: inside.txt\n*** Move to: {}\n@@\n-two\n+2",
)
READS_OUTSIDE = "cat secret.txt; cat */secret.txt; echo mine > here.txt"
COMMANDS = ("command", "cmd", "commands")
OTHER_FILES = ("NotebookEdit", "view_image")
"""Tools for files that the arena does not have."""
EDITS = {"old_string": "two", "old_str": "two", "diff": "-two\n+2", "pattern": "CANARY|one"}
"""Parameters that fit the files of the arena."""


def _has_paths(tool: Tool) -> bool:
    return bool(tool.params.paths) or "patch" in tool.name or tool.name == "read_many_files"


def _calls(tool: Tool, path: str, arena: Arena) -> Iterator[dict[str, Any]]:
    """Yield calls of a tool that name a path in each place where the tool takes one."""
    for name in tool.params.paths:
        fine = tool_scenarios.example_with(tool, name, arena.root)
        fitting = {key: EDITS[key] for key in fine if key in EDITS}
        if Effect.RUN in tool.effects:
            fitting |= {key: READS_OUTSIDE for key in COMMANDS if key in fine}
        yield {**fine, **fitting, name: path}
    if tool.name == "read_many_files":
        yield {"include": [path], "useDefaultExcludes": False}
        yield {"include": [f"{path}/**"]}
    if "patch" in tool.name and not tool.params.paths:
        text = next(iter(tool.params.bodies))
        yield from ({text: PATCH.format(hunk.format(path))} for hunk in HUNKS)


EVERY = [tool for tool in tool_scenarios.every_tool() if _has_paths(tool) and not tool.params.mount]


def test_every_tool_with_a_path_is_attacked() -> None:
    attacked = {(tool.dialect, tool.name) for tool in EVERY}
    assert {("gemini-3", "read_many_files"), ("codex-2026", "apply_patch"), ("openai", "apply_patch")} <= attacked
    assert {dialect for dialect, _ in attacked} == {tool.dialect for tool in tool_scenarios.every_tool()} - {"bash"}


@pytest.mark.sandbox
@pytest.mark.parametrize("tool", EVERY, ids=lambda tool: f"{tool.dialect}:{tool.name}")
def test_path_of_tool_never_leads_outside(tool: Tool, tmp_path: Path) -> None:
    arena = build(tmp_path)
    succeeded = 0
    limits = {"page_seconds": 1.0, "command_seconds": 20}
    with Workspace(str(arena.root), approve="auto", durability="none", limits=limits) as workspace:
        for row in PATHS:
            given = arena.fill(row)
            for path in {given, f"{arena.root}/{given}"}:
                for params in _calls(tool, path, arena):
                    tool_scenarios.prepare(workspace, tool, params)
                    result = workspace.call(tool.dialect, tool.name, params)
                    succeeded += result.success
                    assert SECRET not in str(result.to_dict()), (params, result)
                    assert result.error is None or result.error.code != "internal_error", (params, result)
    arena.check()
    assert succeeded or tool.name in OTHER_FILES  # the calls are not refused for another reason


@pytest.mark.parametrize(
    ("dialect", "tool", "name"),
    [
        ("codex-2026", "view_image", "path"),
        ("claude-code", "Read", "file_path"),
        ("claude-agent", "read", "file_path"),
        ("gemini-3", "read_file", "file_path"),
        ("gemini", "read_file", "absolute_path"),
        ("claude", "str_replace_based_edit_tool", "path"),
    ],
)
def test_image_outside_is_never_shown(dialect: str, tool: str, name: str, tmp_path: Path) -> None:
    arena, image = build(tmp_path), png(3, 3, b"x" * 30)
    (arena.outside / "i.png").write_bytes(image)
    (arena.root / "i.png").write_bytes(image)
    (arena.root / "out.png").symlink_to(arena.outside / "i.png")
    shown, rest = b64encode(image).decode(), {"command": "view"} if dialect == "claude" else {}
    with Workspace(str(arena.root), approve="auto") as workspace:
        given = {**rest, name: str(arena.root / "i.png")}
        assert shown in str(workspace.call(dialect, tool, given).output)
        for path in ("out.png", "out_dir/i.png", "sub/up/i.png", "../outside/i.png", f"{arena.outside}/i.png"):
            for form in {path, str(arena.root / path)}:
                result = workspace.call(dialect, tool, {**rest, name: form})
                assert not result.success, (form, result)
                assert shown not in str(result.to_dict())
