"""Checks that no command reads or prints a protected file."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from attacks.protected import RULES, SECRET, grow
from support.sandboxes import has_bubblewrap

from handrail import Workspace

pytestmark = pytest.mark.sandbox

needs_bubblewrap = pytest.mark.usefixtures("bubblewrap")


@pytest.fixture
def bubblewrap(tmp_path: Path) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")


@needs_bubblewrap
def test_commands_cannot_read_protected_files(guarded: Any, root: Path) -> None:
    attempts = [
        "cat .env; cat sub/.env id.key conf/private.txt vault/deep/x.txt",
        "ln .env twin; cat twin",
        "cp .env copy; cat copy",
        "mv .env moved; cat moved",
        "mv conf conf2; cat conf2/private.txt; mv conf2 conf",
        "ln -s .env link; cat link",
        "python3 -c \"import mmap; print(open('.env').read())\"",
        "tar cf - . | tr -d '\\0'",
        "grep -r TOKEN .",
        "cat < .env; head -c 100 vault/deep/x.txt; ls vault; find vault",
        "rm -f .env; rm -rf vault; cat .env",
        "umount .env; cat .env",
        "cat /proc/self/root$PWD/.env; cat /proc/1/cwd/.env",
    ]
    for command in attempts:
        result = guarded.call("codex", "shell", {"command": f"({command}) 2>&1", "timeout_ms": 20_000})
        assert result.success, result
        assert "hunter2" not in result.output["stdout"], (command, result.output)
    for name in (".env", "sub/.env", "id.key", "conf/private.txt", "vault/deep/x.txt"):
        assert (root / name).read_text() == f"{SECRET}\n"
    works = guarded.call("codex", "shell", {"command": "cat open.txt conf/public.txt && echo new > made.txt"})
    assert works.output["returncode"] == 0
    assert (root / "made.txt").read_text() == "new\n"


@needs_bubblewrap
def test_git_diff_does_not_print_protected_files(root: Path) -> None:
    grow(root)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-C", str(root)]
    for command in (["init", "-q"], ["add", "open.txt"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    with Workspace(str(root), approve="auto", protect=RULES) as workspace:
        for line in (
            "git add -A -f; git diff --cached",
            "git diff --no-index /dev/null .env",
            "git stash -u; git show",
        ):
            output: Any = workspace.call("codex", "shell", {"command": f"({line}) 2>&1"}).output
            assert "hunter2" not in output["stdout"], line


@needs_bubblewrap
def test_new_or_replaced_protected_file_is_hidden_from_next_command(guarded: Any, root: Path) -> None:
    first = guarded.call("codex", "shell", {"command": "cat open.txt"})
    assert first.output["returncode"] == 0
    (root / "new.key").write_text(f"{SECRET}\n")
    second = guarded.call("codex", "shell", {"command": "cat new.key 2>&1"})
    assert "hunter2" not in second.output["stdout"]
    (root / "tmp").write_text(f"{SECRET} again\n")
    (root / "tmp").rename(root / ".env")  # as an editor saves
    third = guarded.call("codex", "shell", {"command": "cat .env 2>&1"})
    assert "hunter2" not in third.output["stdout"]
    terminal = guarded.call("codex", "exec_command", {"session_id": "s", "cmd": "cat .env new.key; echo done"})
    assert "hunter2" not in terminal.output["output"]


def test_sandbox_off_warns_that_commands_can_read_protected_files(root: Path) -> None:
    grow(root)
    with Workspace(str(root), approve="auto", protect=RULES, sandbox="off") as workspace:
        result = workspace.call("codex", "shell", {"command": "true"})
        assert result.warnings == ["commands can read protected files: the sandbox is off"]


@needs_bubblewrap
def test_too_many_protected_files_to_cover_stop_commands(root: Path) -> None:
    for number in range(12):
        (root / f"{number}.key").write_text("x")
    with Workspace(str(root), approve="auto", protect=["*.key"], limits={"masked_files": 10}) as workspace:
        result = workspace.call("codex", "shell", {"command": "true"})
        assert result.error is not None
        assert result.error.code == "sandbox_unavailable"
        assert "12 protected files are too many to cover" in result.error.message


@needs_bubblewrap
def test_change_of_protected_file_during_command_is_not_recorded(root: Path) -> None:
    grow(root)
    with Workspace(str(root), approve="auto", protect=RULES) as workspace:
        workspace.call("codex", "shell", {"command": "true"})
        started = workspace.call(
            "codex", "exec_command", {"session_id": "s", "cmd": "stty -echo; echo up; cat; echo x > made.txt"}
        )
        assert started.success
        (root / ".env").write_text(f"{SECRET} and more\n")
        ended = workspace.call("codex", "write_stdin", {"session_id": "s", "chars": "\x04"})
        assert ended.success
        done = workspace.call("codex", "shell", {"command": "true"})
        affected = [*ended.files_affected, *done.files_affected]
        assert ".env" not in affected
        assert "made.txt" in affected
    kept = Path(os.environ["HANDRAIL_STATE_DIR"])
    assert not any(b"hunter2" in path.read_bytes() for path in kept.rglob("*") if path.is_file())
