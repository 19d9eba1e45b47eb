"""Checks what a refused command says if the sandbox cannot cover every protected file."""

import os
from pathlib import Path
from typing import Any

import pytest
from attacks.protected import SECRET
from support.ordinary_user import as_ordinary_user
from support.sandboxes import has_bubblewrap

from handrail import Workspace
from handrail.kernel.sandbox import find_bwrap


@pytest.fixture(autouse=True)
def _bubblewrap(tmp_path: Path) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")


def _refusal(workspace: Workspace, told: list[str]) -> tuple[str, str, str]:
    """Return what a command answers: message and suggestion for the model, hint for the user."""
    error = workspace.call("codex", "shell", {"command": "true"}).error
    assert error is not None
    assert error.code == "sandbox_unavailable"
    (hint,) = told
    assert not any("bubblewrap" in text or "allow_reduced" in text for text in (error.message, error.suggestion, hint))
    return error.message, error.suggestion, hint


def _in_unreadable_directory(root: str) -> tuple[str, str, str] | None:
    """Return the refusal; None if this user has no bubblewrap, as where it is in a private directory of root."""
    if not find_bwrap.candidates(root):
        return None
    top, told = Path(root), list[str]()
    (top / ".env").write_text(f"{SECRET}\n")
    (top / "d").mkdir()
    with Workspace(root, approve="auto", protect=[".env"], tell=told.append) as workspace:
        workspace._services.masks()
        (top / ".env").rename(top / "d/x")
        (top / "d").chmod(0)
        return _refusal(workspace, told)


def test_refusal_for_unreadable_directory_says_to_make_it_readable() -> None:
    refusal = as_ordinary_user(_in_unreadable_directory)
    if refusal is None:
        pytest.skip("an ordinary user has no bubblewrap here")
    message, suggestion, hint = refusal
    why = "protected files may be in d, which cannot be read"
    assert message == f"Cannot run commands: the sandbox cannot cover every protected file ({why})"
    assert suggestion == "Continue without commands, or ask the user to make the directory readable"
    assert "Make the directory readable for your user (chmod u+rwx), or narrow `protect`" in hint


def _dig(root: Path, name: str) -> None:
    """Move a file of the root to a path that is too long for one system call."""
    top = at = os.open(root, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=at)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
        if at != top:
            os.close(at)
        at = below
    os.rename(name, "x", src_dir_fd=top, dst_dir_fd=at)
    os.close(at)
    os.close(top)


def test_refusal_for_too_deep_directory_says_to_move_it(root: Path) -> None:
    told: list[str] = []
    (root / ".env").write_text(f"{SECRET}\n")
    with Workspace(str(root), approve="auto", protect=[".env"], tell=told.append) as workspace:
        workspace._services.masks()
        _dig(root, ".env")
        message, suggestion, hint = _refusal(workspace, told)
    assert "which lies too deep to be covered" in message
    assert suggestion.endswith("ask the user to move the directory to a shorter path, or to delete it")
    assert "Move the directory to a shorter path or delete it, or narrow `protect`" in hint


def test_refusal_for_too_many_files_says_to_narrow_rules(root: Path) -> None:
    told: list[str] = []
    for name in ("a.key", "b.key"):
        (root / name).write_text(f"{SECRET}\n")
    settings: Any = {"protect": ["*.key"], "limits": {"masked_files": 1}}
    with Workspace(str(root), approve="auto", tell=told.append, **settings) as workspace:
        message, suggestion, hint = _refusal(workspace, told)
    assert "(2 protected files are too many to cover)" in message
    assert suggestion.endswith("ask the user to move the protected files into one directory")
    assert "Narrow `protect` in the configuration" in hint


def _with_unreadable_part(root: str) -> list[str]:
    top = Path(root)
    (top / "vault/deep").mkdir(parents=True)
    (top / "vault/deep/x").write_text(f"{SECRET}\n")
    with Workspace(root, approve="auto", protect=["vault/"]) as workspace:
        workspace._services.masks()
        (top / "vault/deep").chmod(0)
        return [os.path.relpath(path, root) for path in workspace._services.masks()]


def test_unreadable_part_of_protected_directory_stops_no_command() -> None:
    assert as_ordinary_user(_with_unreadable_part) == ["vault"]
