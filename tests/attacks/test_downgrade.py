"""Checks that neither a call nor a file in the workspace weakens the sandbox of the next command."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import has_bubblewrap

from handrail import Workspace
from handrail.kernel.sandbox import find_bwrap
from handrail.kernel.sandbox.confinement_choice import ConfinementChoice
from handrail.kernel.sandbox.helpers.landlock_exec import abi
from handrail.kernel.sandbox.landlock_rules import LOWEST_ABI
from handrail.kernel.sandbox.levels import SandboxSettings
from handrail.kernel.sandbox.view.workspace_view import WorkspaceView
from handrail.model.faults import SandboxUnavailable
from handrail.model.limits import Limits
from handrail.settings import load

pytestmark = pytest.mark.sandbox


@pytest.fixture
def strict_root(tmp_path: Path) -> Path:
    if not has_bubblewrap(tmp_path / "trial"):
        pytest.skip("there is no strict level here")
    root = tmp_path / "workspace"
    (root / ".git" / "hooks").mkdir(parents=True)
    return root


def level(workspace: Workspace) -> str | None:
    result = workspace.call("codex", "shell", {"command": "echo evil > .git/hooks/pre-commit"})
    return result.metadata.get("sandbox")


@pytest.mark.parametrize(
    ("tool", "params"),
    [
        ("shell", {"command": "a\0b"}),
        ("exec_command", {"session_id": "s", "cmd": "a\0b"}),
        ("shell", {"command": "true " + "x" * 200_000}),
        ("shell", {"command": "true", "workdir": "a\0b"}),
    ],
    ids=["nul", "nul in a terminal", "too long", "nul in the directory"],
)
def test_first_command_that_cannot_start_keeps_sandbox_strict(
    strict_root: Path, tool: str, params: dict[str, str]
) -> None:
    with Workspace(str(strict_root), approve="auto") as workspace:
        refused = workspace.call("codex", tool, params)
        assert refused.error is not None
        assert refused.error.code in ("invalid_parameters", "command_not_started", "invalid_path")
        assert level(workspace) == "strict"
    assert os.listdir(strict_root / ".git" / "hooks") == []


def test_name_too_long_to_guard_stops_every_command(strict_root: Path) -> None:
    with Workspace(str(strict_root), approve="auto", guarded=["x" * 300]) as workspace:
        for _ in range(2):
            result = workspace.call("codex", "shell", {"command": "echo evil > .git/hooks/pre-commit"})
            assert result.error is not None
            assert result.error.code == "sandbox_unavailable"
            assert "cannot be guarded: File name too long" in result.error.message
    assert os.listdir(strict_root / ".git" / "hooks") == []


def test_bubblewrap_failure_in_deleted_root_stops_every_command(strict_root: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    with Workspace(str(gone), approve="auto") as workspace:
        gone.rmdir()
        for tool, params in (("shell", {"command": "id"}), ("exec_command", {"session_id": "s", "cmd": "id"})):
            result = workspace.call("codex", tool, params)
            assert result.error is not None
            assert result.error.code == "sandbox_unavailable"


def test_guarded_file_survives_move_of_its_directory(strict_root: Path) -> None:
    (strict_root / "a" / "conf").mkdir(parents=True)
    (strict_root / "a" / "conf" / "run.sh").write_text("good\n")
    with Workspace(str(strict_root), approve="auto", guarded=["a/conf/run.sh"]) as workspace:
        for directory in ("a", "a/conf"):
            text = f"mv {directory} moved; mkdir -p a/conf; echo evil > a/conf/run.sh; echo fine > a/conf/other"
            workspace.call("codex", "shell", {"command": text})
    assert (strict_root / "a" / "conf" / "run.sh").read_text() == "good\n"
    assert (strict_root / "a" / "conf" / "other").read_text() == "fine\n"


def test_module_in_workspace_is_not_imported(tmp_path: Path) -> None:
    for name in ("regex", "click", "rich", "tomllib", "json", "tree_sitter"):
        (tmp_path / f"{name}.py").write_text("open('planted', 'w')\n")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "approvals.toml").write_text('[[rule]]\ntool = "file.write"\npattern = "x"\n')
    home = {"HANDRAIL_STATE_DIR": str(tmp_path / "state"), "HANDRAIL_CONFIG_DIR": str(tmp_path / "config")}
    run = subprocess.run(
        [sys.executable, "-P", "-m", "handrail", "call", "file.write", "path=a", "content=x"],
        cwd=tmp_path,
        env={**os.environ, **home},
        capture_output=True,
        check=False,
    )
    assert run.returncode in (0, 3), run.stderr
    assert not (tmp_path / "planted").exists()


@pytest.fixture
def no_strict_level(monkeypatch: pytest.MonkeyPatch) -> None:
    if abi() < LOWEST_ABI:
        pytest.skip("there is no level `reduced` here")
    monkeypatch.delenv("HANDRAIL_ALLOW_REDUCED")
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])


COMMANDS = [
    ("codex", "shell", {"command": "touch ran"}),
    ("codex", "exec_command", {"session_id": "s", "cmd": "touch ran"}),
    ("gemini", "run_shell_command", {"command": "touch ran"}),
    ("copilot", "run_in_terminal", {"command": "touch ran"}),
]


@pytest.mark.usefixtures("no_strict_level")
@pytest.mark.parametrize(("dialect", "tool", "params"), COMMANDS)
@pytest.mark.parametrize("level", ["strict", "network"])
def test_unavailable_sandbox_level_is_an_error_not_a_weaker_level(
    root: Path, dialect: str, tool: str, params: dict[str, object], level: Any
) -> None:
    with Workspace(str(root), approve="auto", sandbox=level) as workspace:
        for _ in range(2):
            result = workspace.call(dialect, tool, params)
            assert result.error is not None
            assert result.error.code == "sandbox_unavailable"
            told = json.dumps(result.to_dict())
            assert f"the sandbox level {level} is not available (bubblewrap: none outside the workspace)" in told
            assert "allow_reduced" not in told
            assert '\\"off\\"' not in told
    assert list(root.iterdir()) == []


@pytest.mark.usefixtures("no_strict_level")
@pytest.mark.parametrize(("dialect", "tool", "params"), COMMANDS)
def test_allowed_reduced_level_is_warned_about_in_every_answer(
    root: Path, dialect: str, tool: str, params: dict[str, object]
) -> None:
    why = "bubblewrap: none outside the workspace"
    with Workspace(str(root), approve="auto", allow_reduced=True) as workspace:
        for name in ("first", "second"):
            result = workspace.call(
                dialect, tool, {**params, **({"session_id": name} if "session_id" in params else {})}
            )
            assert result.metadata["sandbox"] == "reduced"
            assert f"the sandbox level is only reduced, because strict is not available ({why})" in result.warnings


@pytest.mark.usefixtures("no_strict_level")
def test_project_settings_can_forbid_but_not_allow_reduced_level(root: Path) -> None:
    (root / ".handrail.toml").write_text("allow_reduced = true\n")
    with Workspace(str(root), approve="auto") as workspace:
        assert workspace.warnings == [".handrail.toml cannot set allow_reduced = True: a project may only tighten"]
        refused = workspace.call("codex", "shell", {"command": "true"})
        assert refused.error is not None
        assert refused.error.code == "sandbox_unavailable"
    assert load(user="allow_reduced = true", project="allow_reduced = false")[0].allow_reduced is False


def test_lack_of_handles_is_no_reason_for_weaker_level(strict_root: Path) -> None:
    """Commands can make Handrail run out of handles: each one that leaves a process costs three."""
    fd = os.open(strict_root, os.O_RDONLY | os.O_DIRECTORY)
    choice = ConfinementChoice(WorkspaceView(str(strict_root), fd, SandboxSettings(allow_reduced=True), {}))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.dup(fd)
    os.close(spare)
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 2, hard))
    try:
        with pytest.raises(SandboxUnavailable):
            choice.give_up_current("too many open files")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(fd)
    assert choice.current.level == "strict"


def test_lack_of_time_is_no_reason_for_weaker_level(strict_root: Path) -> None:
    """Commands of another session can make the machine slow."""
    fd = os.open(strict_root, os.O_RDONLY | os.O_DIRECTORY)
    settings = SandboxSettings(allow_reduced=True, limits=Limits()._replace(sandbox_start_seconds=0.0))
    choice = ConfinementChoice(WorkspaceView(str(strict_root), fd, settings, {}))
    try:
        with pytest.raises(SandboxUnavailable):
            choice.give_up_current("did not start in time")
    finally:
        os.close(fd)
