"""Tests that the command line finds its workspace upwards and names the root that it took."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from support.command_line import USER, handrail
from support.mcp_client import talk

from handrail.surfaces.cli.click_commands import main

LINES = {
    "call": ["call", "file.list"],
    "run": ["run"],
    "agent": ["agent", "--model", "scripted:none", "a task"],
    "config": ["config", "cursor"],
    "tools": ["tools"],
    "jobs": ["jobs"],
    "approvals list": ["approvals", "list"],
    "approvals add": ["approvals", "add", *USER, "file.read", ".*"],
    "approvals remove": ["approvals", "remove", *USER, "1"],
    "approvals enable": ["approvals", "enable", *USER, "1"],
    "approvals disable": ["approvals", "disable", *USER, "1"],
    "approvals test": ["approvals", "test", "file.list"],
    "hooks list": ["hooks", "list"],
    "hooks trust": ["hooks", "trust"],
    "hooks untrust": ["hooks", "untrust"],
    "layer apply": ["layer", "apply"],
    "layer changes": ["layer", "changes"],
    "layer discard": ["layer", "discard"],
    "layer list": ["layer", "list"],
    "history": ["history"],
    "show": ["show", "1"],
    "mark": ["mark", "x"],
    "undo": ["undo"],
    "redo": ["redo"],
    "restore": ["restore", "a.txt", "--at", "0"],
    "replay": ["replay", __file__],
    "try": ["try", "true"],
    "doctor": ["doctor"],
}
REFUSAL = "cannot use {} as the workspace: it is or contains your home directory; choose one with --root DIR"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / "project/.git").mkdir(parents=True)
    (home / "project/src").mkdir()
    (home / "project/src/deep.txt").write_text("")
    monkeypatch.setenv("HOME", str(home))
    return home / "project"


def said(project: Path) -> str:
    return f"handrail: using the workspace {project}, which has a .git\n"


def test_cli_in_subdirectory_takes_project_and_says_so(project: Path) -> None:
    above, below = (handrail("call", "file.list", "--json", cwd=place) for place in (project, project / "src"))
    listed = [json.loads(done.stdout)["output"] for done in (above, below)]
    assert listed == [{"files": [], "directories": ["src/"]}] * 2
    assert (above.stderr, below.stderr) == ("", said(project))


def test_cli_settings_file_above_counts_in_subdirectory(project: Path) -> None:
    (project / ".handrail.toml").write_text("read_only = true\n")
    done = handrail("call", "file.write", "path=a", "content=b", "--json", cwd=project / "src")
    assert json.loads(done.stdout)["error"]["code"] == "approval_denied"
    assert done.stderr == f"handrail: using the workspace {project}, which has a .handrail.toml\n"


def test_cli_root_option_wins(project: Path) -> None:
    done = handrail("call", "file.list", "--json", "--root", ".", cwd=project / "src")
    assert [each["path"] for each in json.loads(done.stdout)["output"]["files"]] == ["deep.txt"]
    assert done.stderr == ""
    assert handrail("call", "file.list", "--root", ".", cwd=project.parent).returncode == 0


def test_cli_config_writes_found_root(project: Path) -> None:
    done = handrail("config", "windsurf", cwd=project / "src")
    arguments = json.loads(done.stdout)["mcpServers"]["handrail"]["args"]
    assert arguments[arguments.index("--root") + 1] == str(project)
    assert handrail("config", "codex", cwd=project.parent).returncode == 0  # needs no root


def test_cli_odd_root_name_is_escaped(project: Path) -> None:
    odd = project.rename(project.with_name("a\x1b[2Jb"))
    assert handrail("tools", cwd=odd / "src").stderr == said(project.with_name("a\\x1b[2Jb"))


def commands(group: click.Group, before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(main)):
        command = group.get_command(click.Context(main), name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def test_cli_every_command_with_root_is_tested() -> None:
    rooted = [name for name, command in commands(main) if any("--root" in each.opts for each in command.params)]
    assert sorted(rooted) == sorted([*LINES, "mcp"])


@pytest.mark.parametrize("name", LINES)
def test_cli_in_home_refuses_and_names_root(name: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.parent)
    done = CliRunner().invoke(main, LINES[name])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith(f"\nError: {REFUSAL.format(project.parent)}\n")


def test_cli_root_refusal_with_json_is_json(project: Path) -> None:
    done = handrail("history", "--json", cwd=project.parent)
    error = {"code": "usage_error", "message": REFUSAL.format(project.parent)}
    assert json.loads(done.stdout) == {"success": False, "error": error}


def test_cli_in_directory_of_another_user_refuses(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setattr("os.geteuid", lambda: 1234)
    done = CliRunner().invoke(main, ["tools"])
    assert done.exit_code == 2
    assert f"cannot use {project} as the workspace: it belongs to another user; choose" in done.stderr


def test_cli_in_deleted_directory_refuses(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = project / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = CliRunner().invoke(main, ["tools"])
    assert "cannot use . as the workspace: it cannot be found; choose one with --root DIR" in done.stderr


def test_cli_completion_lists_paths_of_found_root(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_HANDRAIL_COMPLETE", "bash_complete")

    def offered(line: str, cwd: Path) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        done = handrail(cwd=cwd)
        assert done.stderr == ""
        return done.stdout.split()

    below = project / "src"
    for line in ("call file.read path = src/", "restore src/", "undo 1 src/"):
        assert offered(f"handrail {line}", below) == ["plain,src/deep.txt"]
    assert offered("handrail call file.read path=src/", below) == ["plain,path=src/deep.txt"]
    assert offered("handrail restore sr", project) == ["file,sr"]
    assert offered("handrail restore sr", project.parent) == ["file,sr"]


def test_mcp_root_is_current_directory(project: Path) -> None:
    async def act(client: Client) -> Any:
        return await client.call_tool("file.list", {})

    arguments = ["-m", "handrail", "mcp", "--dialect", "file"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ}, cwd=project / "src")
    assert [each["path"] for each in talk(server, act).structured_content["files"]] == ["deep.txt"]


def test_mcp_without_root_refuses_home(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.parent)
    done = CliRunner().invoke(main, ["mcp"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.endswith(f"\nError: {REFUSAL.format(project.parent)}\n")
