"""Tries to leave the memory directory, and to reach it from the workspace: neither is possible."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attacks.swapper import swapping
from attacks.test_boundary import RESOLVERS, TABLE, use
from support import tool_scenarios
from support.trap_arena import SECRET, Arena, build

from handrail import Workspace
from handrail.dialects import NAMES
from handrail.kernel.host.state_dir import State

PATHS = [path for rows in TABLE.values() for path, _, _ in rows]
SWAPS, CALLS = 2000, 150


@pytest.fixture(params=RESOLVERS)
def arena(request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arena]:
    """Make the workspace full of traps the memory directory of `root`, with the canary files beside it."""
    use(request.param, monkeypatch)
    top = Path(State.of(str(root)).path)
    made = build(top / "arena")
    memory = top / "memories"
    made.root.rename(memory)
    for each in (top / "arena").iterdir():
        each.rename(top / each.name)
    outside = {name: (top / name) for name in ("outside", "workspace-evil")}
    before = {name: _tree(path) for name, path in outside.items()}
    yield Arena(top, memory, top / "outside", {})
    assert {name: _tree(path) for name, path in outside.items()} == before


def _tree(top: Path) -> dict[str, tuple[int, bytes]]:
    return {str(each): (each.stat().st_ino, each.read_bytes()) for each in sorted(top.rglob("*")) if each.is_file()}


def calls(path: str) -> list[dict[str, Any]]:
    return [
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "mine"},
        {"command": "str_replace", "path": path, "old_str": "two", "new_str": "2"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "mine"},
        {"command": "rename", "old_path": path, "new_path": "/memories/renamed"},
        {"command": "rename", "old_path": "/memories/sub/file.txt", "new_path": path},
        {"command": "delete", "path": path},
    ]


def test_memory_attack_paths_never_leave_its_root(root: Path, arena: Arena) -> None:
    with Workspace(str(root), approve="auto", durability="none") as workspace:
        for path in PATHS:
            given = arena.fill(path)
            for form in (given, f"/memories/{given}"):
                for params in calls(form):
                    result = workspace.call("claude", "memory", params)
                    assert SECRET not in str(result.to_dict()), params
                    assert result.error is None or result.error.code != "internal_error", (params, result)
    assert not list(root.iterdir())


def test_memory_cannot_grow_without_end(root: Path) -> None:
    limits = {"memory_bytes": 2000, "memory_files": 20}
    with Workspace(str(root), approve="auto", durability="none", limits=limits) as workspace:
        for number in range(40):
            made = {"command": "create", "path": f"/memories/d{number}/a.md", "file_text": "x" * 150}
            workspace.call("claude", "memory", made)
            grown = {"command": "insert", "path": "/memories/d0/a.md", "insert_line": 0, "insert_text": "y" * 90}
            workspace.call("claude", "memory", grown)
            workspace.call("claude", "memory", {**made, "path": f"/memories/.{number}", "file_text": ""})
    files = [each for each in (Path(State.of(str(root)).path) / "memories").rglob("*") if each.is_file()]
    assert 1500 < sum(each.stat().st_size for each in files) <= 2000
    assert len(files) == 20


def test_memory_stays_inside_while_links_are_exchanged(root: Path) -> None:
    memory = tool_scenarios.memory_of(root)
    outside = memory.parent / "canary"
    for directory in (memory / "place", outside):
        directory.mkdir()
        (directory / "a.md").write_text(SECRET if directory == outside else "one\n")
    (memory / "trap").symlink_to(outside)
    with (
        Workspace(str(root), approve="auto", durability="none") as workspace,
        swapping(str(memory), ("place", "trap")) as swapper,
    ):
        number = 0
        while swapper.swaps < SWAPS or number < CALLS:
            number += 1
            for params in (
                {"command": "view", "path": "/memories/place/a.md"},
                {"command": "create", "path": f"/memories/place/{number}.md", "file_text": "mine"},
                {"command": "rename", "old_path": f"/memories/place/{number}.md", "new_path": "/memories/place/b.md"},
                {"command": "delete", "path": "/memories/place/b.md"},
            ):
                assert SECRET not in str(workspace.call("claude", "memory", params).to_dict())
    assert [each.name for each in outside.iterdir()] == ["a.md"]
    assert (outside / "a.md").read_text() == SECRET


@pytest.mark.parametrize("put", ["link", "file"])
def test_memory_directory_replaced_by_another_process_is_refused(root: Path, put: str, tmp_path: Path) -> None:
    memory = tool_scenarios.memory_of(root)
    shutil.rmtree(memory)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    memory.symlink_to(elsewhere) if put == "link" else memory.write_text("x")
    with Workspace(str(root), approve="auto") as workspace:
        params = {"command": "create", "path": "/memories/a.md", "file_text": "x"}
        result = workspace.call("claude", "memory", params)
        assert result.error is not None
        assert (result.error.code, str(memory) in str(result.to_dict())) == ("permission_denied", False)
        assert workspace.call("file", "file.write", {"path": "a.txt", "content": "x"}).success
    assert not list(elsewhere.iterdir())


def test_memory_files_and_directories_are_private(root: Path) -> None:
    before = os.umask(0)
    try:
        with Workspace(str(root), approve="auto") as workspace:
            params = {"command": "create", "path": "/memories/d/e/a.md", "file_text": "x\n"}
            assert workspace.call("claude", "memory", params).success
            params = {"command": "str_replace", "path": "/memories/d/e/a.md", "old_str": "x", "new_str": "y"}
            assert workspace.call("claude", "memory", params).success
            params = {"command": "rename", "old_path": "/memories/d", "new_path": "/memories/f/g"}
            assert workspace.call("claude", "memory", params).success
    finally:
        os.umask(before)
    memory = Path(State.of(str(root)).path) / "memories"
    modes = {str(each.relative_to(memory)): each.stat().st_mode & 0o777 for each in [memory, *memory.rglob("*")]}
    assert modes == {".": 0o700, "f": 0o700, "f/g": 0o700, "f/g/e": 0o700, "f/g/e/a.md": 0o600}


@pytest.mark.parametrize("dialect", NAMES)
@pytest.mark.parametrize("state", ["outside", "inside"])
def test_workspace_tools_cannot_reach_memory(
    dialect: str, state: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Try every path parameter of every other tool, also if the state directory lies in the workspace."""
    if state == "inside":
        monkeypatch.setenv("HANDRAIL_STATE_DIR", str(root / ".state"))
    tool_scenarios.plant(root)
    memory = tool_scenarios.memory_of(root)
    (memory / "a.txt").write_text(SECRET)
    with Workspace(str(root), approve="auto") as workspace:
        for tool in workspace.tools(dialect).tools.values():
            for name in [] if tool.params.mount else sorted(tool.params.paths):
                for path in ("/memories", "/memories/a.txt", "/memories/new", str(memory), f"{memory}/a.txt"):
                    fine = tool_scenarios.example_with(tool, name, root)
                    result = workspace.call(dialect, tool.name, {**fine, name: path})
                    assert result.error is not None, (tool.name, path)
                    assert SECRET not in str(result.to_dict())
    assert {each.name for each in memory.iterdir()} == {"a.txt", "out"}


@pytest.mark.sandbox
def test_sandboxed_commands_cannot_reach_memory(root: Path) -> None:
    memory = tool_scenarios.memory_of(root)
    (memory / "a.txt").write_text(SECRET)
    with Workspace(str(root), approve="auto") as workspace:
        command = f"cat {memory}/a.txt /memories/a.txt; echo x > {memory}/new; find / -name a.txt 2>/dev/null; true"
        for dialect, tool in (("codex", "shell"), ("claude", "bash"), ("claude-agent", "bash")):
            result = workspace.call(dialect, tool, {"command": command})
            assert result.success, result
            assert SECRET not in str(result.output)
            assert "memories" not in str(result.output).replace(str(memory), "").replace("/memories/a.txt: No", "")
    assert not (memory / "new").exists()
    assert (memory / "a.txt").read_text() == SECRET
