"""Leads every path of every claude-code tool out of the workspace: through links, `..`, encodings and hard links."""

from pathlib import Path
from typing import Any

import pytest
from support.trap_arena import LINKS, ODD_NAMES, SECRET, build

from handrail import Workspace

ABOVE = ["..", "../outside", "../outside/secret.txt", "sub/../../outside/secret.txt", "../workspace-evil/secret.txt"]
ABOVE += ["%2e%2e/outside/secret.txt", "..\\outside\\secret.txt", "sub/up/secret.txt", "out_dir/secret.txt", "twin.txt"]
PATHS = [*LINKS, *ABOVE, *ODD_NAMES, "fifo", "socket", "sparse", ""]
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("Read", "file_path", {}),
    ("Read", "file_path", {"allow_large": True, "limit": 5}),
    ("Write", "file_path", {"content": "x"}),
    ("Edit", "file_path", {"old_string": "CANARY", "new_string": "x"}),
    ("Edit", "file_path", {"old_string": "", "new_string": "x"}),
    ("Glob", "path", {"pattern": "**/*"}),
    ("Grep", "path", {"pattern": "CANARY", "output_mode": "content"}),
    ("Grep", "path", {"pattern": "CANARY", "output_mode": "count"}),
    ("Grep", "path", {"pattern": "CANARY", "multiline": True, "output_mode": "content"}),
    ("NotebookEdit", "notebook_path", {"cell_id": "a", "new_source": "x"}),
]


@pytest.mark.parametrize(("tool", "name", "rest"), CALLS, ids=lambda value: str(value)[:30])
def test_claude_code_path_never_leads_outside(tool: str, name: str, rest: dict[str, Any], tmp_path: Path) -> None:
    arena = build(tmp_path)
    suffix = ".ipynb" if tool == "NotebookEdit" else ""
    if suffix:
        for each in LINKS:
            (arena.root / f"{each}{suffix}").symlink_to(arena.root / each)
    with Workspace(str(arena.root), approve="auto", limits={"page_seconds": 1.0}) as workspace:
        for path in PATHS:
            for given in (f"{arena.root}/{path}{suffix}", f"{path}{suffix}"):
                if tool in ("Write", "Edit"):
                    workspace.call("claude-code", "Read", {"file_path": given})
                result = workspace.call("claude-code", tool, {**rest, name: given})
                assert SECRET not in str(result.to_dict()), (given, result)
                assert result.error is None or result.error.code != "internal_error", (given, result)
    arena.check()


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "../../**", "out_dir/*", "sub/../../outside/*", "{..,x}/*"])
def test_glob_pattern_shows_nothing_outside(pattern: str, tmp_path: Path) -> None:
    arena = build(tmp_path)
    with Workspace(str(arena.root)) as workspace:
        result = workspace.call("claude-code", "Glob", {"pattern": pattern})
    assert "secret" not in str(result.to_dict())
    assert "passwd" not in str(result.to_dict())
