"""Checks that commands commit as the user, and that they learn nothing else from the user's git configuration."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail import ToolResult, Workspace
from handrail.dialects.output_types import ShellOutcome
from handrail.kernel.sandbox import find_bwrap
from handrail.kernel.sandbox.view import git_identity

USER = """\
[user]
    name = Ada "the first" Lovelace \\\\ \u00e9
    email = ada@example.org
    signingkey = TOPSECRET
[alias]
    own = !echo TOPSECRET
[credential]
    helper = store TOPSECRET
"""
NAMED = "Ada the first Lovelace \\ \u00e9 <ada@example.org>\n"
AUTHOR = "git log -1 --format='%an <%ae>'"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "gitconfig"
    file.write_text(USER)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(file))
    return file


@pytest.fixture
def repository(root: Path, config: Path) -> Iterator[Workspace]:
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "a").write_text("x")
    with Workspace(str(root), approve="auto") as workspace:
        yield workspace


def shell(workspace: Workspace, command: str) -> ToolResult:
    return workspace.call("codex", "shell", {"command": command})


def section(config: Path) -> bytes:
    return git_identity.section({"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": str(config)}, "/", ())


@pytest.mark.sandbox
def test_commit_has_identity_of_user(repository: Workspace) -> None:
    done = shell(repository, f"git add a && git commit -qm x && {AUTHOR}")
    assert (done.output_as(ShellOutcome)["stdout"], done.warnings) == (NAMED, [])


@pytest.mark.sandbox
@pytest.mark.parametrize("level", ["strict", "reduced"])
def test_command_sees_nothing_else_of_configuration(
    repository: Workspace, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if level == "reduced":
        monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    done = shell(
        repository, f"git add a && git commit -qm x && {AUTHOR}; git config --list; cat ~/.gitconfig; env; git own"
    )
    assert done.output_as(ShellOutcome)["stdout"].startswith(NAMED)
    assert "TOPSECRET" not in str(done.to_dict())


@pytest.mark.sandbox
def test_identity_of_repository_is_used_first(repository: Workspace, root: Path) -> None:
    subprocess.run(["git", "-C", root, "config", "user.email", "own@example.org"], check=True)
    done = shell(repository, f"git add a && git commit -qm x && {AUTHOR}")
    assert "<own@example.org>" in done.output_as(ShellOutcome)["stdout"]


@pytest.mark.sandbox
def test_commit_without_identity_gets_hint(repository: Workspace, config: Path) -> None:
    config.write_text("")
    done = shell(repository, "git add a && git commit -m x")
    assert "tell me who you are" in done.output_as(ShellOutcome)["stderr"]
    assert [each for each in done.warnings if "git -c user.name=NAME" in each]


@pytest.mark.sandbox
@pytest.mark.parametrize("command", ["git config user.name x", "git config user.name x 2>&1 | head -5"])
def test_git_config_says_what_to_use_instead(repository: Workspace, command: str) -> None:
    (warning,) = shell(repository, command).warnings
    assert "git -c NAME=VALUE" in warning
    assert ".git/config" in warning


def test_included_identity_of_user_is_found(tmp_path: Path, config: Path) -> None:
    (tmp_path / "work").write_text("[user]\nemail = work@example.org\n")
    config.write_text(f"{USER}[include]\npath = {tmp_path}/work\n")
    assert b'email = "work@example.org"' in section(config)


@pytest.mark.parametrize(
    "value", ['"a\\nb"', '"a\\tb"', "x" * 257, '"\u202eevil"', ""], ids=["line", "tab", "long", "bidi", "empty"]
)
def test_unusable_identity_is_left_out(config: Path, value: str) -> None:
    config.write_text(f"[user]\nname = {value}\n")
    assert section(config) == b""


def test_quoted_identity_cannot_add_settings(tmp_path: Path, config: Path) -> None:
    config.write_text('[user]\nname = "x\\" #\\\\"\nemail = "[core] pager=evil"\n')
    (tmp_path / "made").write_bytes(section(config))
    listed = subprocess.run(
        ["git", "config", "--file", tmp_path / "made", "--list"], capture_output=True, text=True, check=True
    )
    assert listed.stdout == 'user.name=x" #\\\nuser.email=[core] pager=evil\n'


def test_git_in_writable_directory_is_not_started(tmp_path: Path, config: Path) -> None:
    planted = tmp_path / "bin" / "git"
    planted.parent.mkdir()
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    planted.chmod(0o755)
    found = git_identity.section({"PATH": str(planted.parent)}, "/", (str(tmp_path),))
    assert (found, (tmp_path / "ran").exists()) == (b"", False)
