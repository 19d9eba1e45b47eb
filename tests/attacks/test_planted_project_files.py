"""Checks that no command creates or changes the project files of Handrail, such as .handrail.toml."""

from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import has_bubblewrap

from handrail import Workspace
from handrail.ops.glob.guarded_names import OWN_FILES

ATTEMPTS = (
    "echo 'read_only = true' > {name}",
    "echo x > a && mv -T a {name}",
    "rmdir {name}; echo x > {name}",
    "mv {name} aside; echo x > {name}",
    "ln -sfT a {name}",
    "mkdir -p {name}/below",
)


@pytest.fixture(autouse=True)
def bubblewrap(tmp_path: Path) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")


def shell(workspace: Workspace, command: str) -> int:
    result: Any = workspace.call("codex", "shell", {"command": command, "timeout_ms": 20_000})
    assert result.success, result
    return int(result.output["returncode"])


@pytest.mark.parametrize("name", OWN_FILES)
def test_command_cannot_create_project_file(workspace: Workspace, root: Path, name: str) -> None:
    for attempt in ATTEMPTS:
        assert shell(workspace, attempt.format(name=name)) != 0, attempt
        assert [*(root / name).iterdir()] == []
    workspace.close()
    assert not (root / name).exists()


@pytest.mark.parametrize("name", OWN_FILES)
def test_command_cannot_change_project_file(root: Path, name: str) -> None:
    (root / name).write_text("")
    with Workspace(str(root), approve="auto") as workspace:
        for attempt in ATTEMPTS:
            assert shell(workspace, attempt.format(name=name)) != 0, attempt
    assert (root / name).read_text() == ""


def test_git_does_not_see_placeholder_of_project_file(workspace: Workspace, root: Path) -> None:
    assert shell(workspace, 'git init -q && git add -A && test -z "$(git status --porcelain)"') == 0
    assert (root / ".handrail.toml").is_dir()


def test_second_session_reads_placeholder_of_first_as_absent(workspace: Workspace, root: Path) -> None:
    assert shell(workspace, "true") == 0
    with Workspace(str(root), approve="auto") as second:
        assert second.warnings == []
        assert shell(second, "echo x > .handrail.toml") != 0
        workspace.close()
        assert (root / ".handrail.toml").is_dir()
    assert not (root / ".handrail.toml").exists()


def test_file_tool_creates_project_file_after_approval(root: Path) -> None:
    with Workspace(str(root), approver=lambda _: True) as workspace:
        assert shell(workspace, "true") == 0
        made = workspace.call("file", "file.write", {"path": ".handrail.toml", "content": "read_only = true\n"})
        assert made.success, made
        assert shell(workspace, "echo > .handrail.toml") != 0
    assert (root / ".handrail.toml").read_text() == "read_only = true\n"
