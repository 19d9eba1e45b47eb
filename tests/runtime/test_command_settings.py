"""Tests which files, variables and directories the user's settings let a command see and change."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from support.command_line import handrail
from support.sandboxes import await_word

from handrail import Workspace

pytestmark = pytest.mark.sandbox


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "data").write_text("data\n")
    return place


def shell(root: Path, command: str, **settings: Any) -> dict[str, Any]:
    with Workspace(str(root), approve="auto", **settings) as workspace:
        result = workspace.call("codex", "shell", {"command": command})
    if result.metadata.get("sandbox") == "reduced":
        pytest.skip("no bubblewrap here")
    return result.to_dict()


def test_command_unlisted_directory_is_invisible(root: Path, elsewhere: Path) -> None:
    assert shell(root, f"ls {elsewhere}")["output"]["returncode"] == 2


def test_command_readable_directory_is_read_only(root: Path, elsewhere: Path) -> None:
    told = shell(root, f"cat {elsewhere}/data; echo x > {elsewhere}/data", readable=[str(elsewhere)])
    assert told["output"]["stdout"] == "data\n"
    assert told["warnings"] == [
        f"the sandbox blocks writes outside the workspace ({elsewhere}/data); only the user can allow them"
    ]
    assert (elsewhere / "data").read_text() == "data\n"


def test_command_writable_directory_can_be_changed(root: Path, elsewhere: Path) -> None:
    assert shell(root, f"echo x > {elsewhere}/data", writable=[str(elsewhere)])["output"]["returncode"] == 0
    assert (elsewhere / "data").read_text() == "x\n"


def test_readable_setting_expands_home(root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(elsewhere.parent))
    assert shell(root, f"cat {elsewhere}/data", readable=["~/elsewhere"])["output"]["stdout"] == "data\n"


def test_readable_setting_missing_directory_noted_and_ignored(root: Path, elsewhere: Path) -> None:
    with Workspace(
        str(root), approve="auto", readable=[f"{elsewhere}/no", "relative"], writable=["/no/such"]
    ) as workspace:
        assert workspace.warnings == [
            f"readable: {elsewhere}/no is not an absolute path to an existing directory",
            "readable: relative is not an absolute path to an existing directory",
            "writable: /no/such is not an absolute path to an existing directory",
        ]
        assert workspace.call("codex", "shell", {"command": "echo runs"}).output["stdout"] == "runs\n"  # type: ignore[index]


def test_command_sees_only_listed_variables_without_secrets(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROJECT_MODE", "fast")
    monkeypatch.setenv("OTHER_MODE", "slow")
    monkeypatch.setenv("SERVICE_TOKEN", "secret")
    told = shell(root, "env", environment=["PROJECT_MODE", "SERVICE_TOKEN"])
    seen = dict(line.split("=", 1) for line in told["output"]["stdout"].split("\n") if "=" in line)
    assert seen["PROJECT_MODE"] == "fast"
    assert not {"OTHER_MODE", "SERVICE_TOKEN"} & seen.keys()


def test_command_cannot_create_guarded_name(root: Path) -> None:
    told = shell(root, "mkdir .vscode; echo x > guarded.toml", guarded=["guarded.toml"])
    assert told["output"]["returncode"] != 0
    assert (root / ".vscode").is_dir()
    assert not (root / "guarded.toml").is_file()


def test_command_cannot_change_handrail_files_in_workspace(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, name in (("HANDRAIL_CONFIG_DIR", "config"), ("HANDRAIL_STATE_DIR", "state")):
        monkeypatch.setenv(variable, str(root / name))
        (root / name).mkdir()
    (root / "config" / "approvals.toml").write_text("")
    told = shell(root, "echo x > config/approvals.toml; touch state/x; echo x > own")
    assert told["output"]["stderr"].count("Permission denied") == 2  # the directories are covered
    assert (root / "config" / "approvals.toml").read_text() == ""
    assert (root / "own").read_text() == "x\n"


@pytest.mark.parametrize("level", ["strict", "network", "off"])
@pytest.mark.parametrize("surface", ["call", "run"])
def test_sandbox_flag_sets_level_on_command_line(root: Path, surface: str, level: str) -> None:
    flags = ["--dialect", "codex", "--root", str(root), "--approve", "auto", "--sandbox", level]
    params = {"command": "echo hi"}
    if surface == "call":
        done = handrail("call", "shell", json.dumps(params), "--json", *flags)
    else:
        done = handrail("run", *flags, stdin=json.dumps({"tool": "shell", "params": params}) + "\n")
    told = json.loads(done.stdout)
    assert told["output"]["stdout"] == "hi\n"
    assert told["metadata"]["sandbox"] in (level, "reduced" if level != "off" else "off")


def test_sandbox_off_command_runs_unconfined(root: Path, elsewhere: Path) -> None:
    told = shell(root, f"echo x > {elsewhere}/data", sandbox="off")
    assert (told["output"]["returncode"], told["metadata"]) == (
        0,
        {"sandbox": "off", "sandbox_cannot_stop": ["everything"]},
    )
    assert (elsewhere / "data").read_text() == "x\n"


def test_project_file_cannot_switch_sandbox_off(root: Path) -> None:
    (root / ".handrail.toml").write_text('sandbox = "off"\nwritable = ["/"]\n')
    with Workspace(str(root), approve="auto") as workspace:
        assert (workspace.settings.sandbox, workspace.settings.writable) == ("strict", ())
        assert len(workspace.warnings) == 2


@pytest.mark.root
def test_command_output_file_readable_by_workspace_owner(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    for place in (tmp_path, *list(tmp_path.parents)[:-2]):
        if place.stat().st_uid == 0 and place != Path("/tmp"):
            place.chmod(0o755)
    os.chown(root, 1234, 1234)
    with Workspace(str(root), approve="auto") as workspace:
        first = workspace.call("codex", "shell", {"command": "id -u; seq 1 200000"})
        if first.metadata.get("sandbox") != "strict" or not first.success:
            pytest.skip("the owner of the workspace cannot reach an interpreter here")
        assert isinstance(first.output, dict)
        reading = first.output["stdout"].partition("all of it: ")[2].partition(" …]")[0]
        again = workspace.call("codex", "shell", {"command": reading}).output
    assert isinstance(again, dict)
    assert again["stdout"].endswith("\n200000\n"), again


COMMANDS = [
    ("gemini", "run_shell_command", "command"),
    ("copilot", "run_in_terminal", "command"),
    ("codex", "shell", "command"),
]


@pytest.mark.parametrize(("dialect", "tool", "name"), COMMANDS)
def test_command_whose_sandbox_dies_gets_warning(root: Path, dialect: str, tool: str, name: str) -> None:
    os.mkfifo(root / "runs")
    with Workspace(str(root), approve="auto", journal="off") as workspace:
        workspace.call(dialect, tool, {name: "true"})
        link = workspace._default._session.processes.sandbox._link
        assert link is not None

        def when_it_runs() -> None:
            await_word(root / "runs")
            link.kill()

        watcher = threading.Thread(target=when_it_runs)
        watcher.start()
        result = workspace.call(dialect, tool, {name: "echo early; echo > runs; sleep 60"})
        watcher.join()
    assert result.warnings == ["the sandbox stopped, and with it the command: its work may be incomplete"]
    assert "early" in str(result.output)


def test_command_over_time_limit_is_ended(root: Path) -> None:
    with Workspace(str(root), approve="auto", limits={"command_seconds": 0.3}) as workspace:
        result = workspace.call("gemini", "run_shell_command", {"command": "sleep 60"})
    assert result.error is not None
    assert result.error.code == "timeout"
    assert "\nError: Command timed out after 0.3 seconds and was ended.\n" in result.error.message
