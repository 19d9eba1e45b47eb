"""Checks that a file that the user moves out of a protected directory between two sessions stays protected."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from attacks.protected import SECRET, refused
from kernel.test_protected_files import statx_tells_birth

from handrail import Workspace

RULE = "vault/"


def session(root: Path, **limits: float) -> Workspace:
    return Workspace(str(root), protect=[RULE], limits=limits)


def look(workspace: Workspace) -> dict[str, Any]:
    """Let a session scan for protected files; return the names that a sandbox would cover."""
    return {os.path.relpath(path, workspace.root): found for path, found in workspace._services.masks().items()}


def remembered(workspace: Workspace) -> Path:
    return Path(workspace._services.state.path) / "protected.json"


@pytest.fixture
def vault(root: Path) -> Path:
    for name in ("a", "b", "deep/c"):
        (root / "vault" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "vault" / name).write_text(f"{SECRET}\n")
    return root / "vault"


def test_file_moved_out_of_directory_by_user_stays_protected(root: Path, vault: Path) -> None:
    with session(root) as workspace:
        look(workspace)
    (vault / "a").rename(root / "plain.txt")
    (vault / "deep").rename(root / "moved")
    (root / "moved/new").write_text(f"{SECRET}\n")
    for _ in range(2):
        with session(root) as workspace:
            for path in ("plain.txt", "moved/c", "moved/new"):
                refused(workspace, "copilot", "read_file", {"path": path}, RULE)
            found = workspace.call("copilot", "grep_search", {"pattern": "TOKEN"})
            assert found.output == "Found 0 matches for 'TOKEN':"
            assert look(workspace).keys() == {"vault", "plain.txt", "moved"}


def test_file_moved_out_of_directory_and_edited_stays_protected(root: Path, vault: Path) -> None:
    if not statx_tells_birth(vault / "a"):
        pytest.skip("the file system does not record birth times")
    with session(root) as workspace:
        look(workspace)
    (vault / "a").rename(root / "plain.txt")
    with (root / "plain.txt").open("a") as file:
        file.write(f"{SECRET} and more\n")
    with session(root) as workspace:
        refused(workspace, "copilot", "read_file", {"path": "plain.txt"}, RULE)


def test_memory_over_limit_keeps_directory_before_its_files(root: Path, vault: Path) -> None:
    numbers = {path.relative_to(root).as_posix(): path.stat().st_ino for path in (vault, *vault.rglob("*"))}
    with session(root, remembered_files=3) as workspace:
        look(workspace)
        kept = {int(number) for number in json.loads(remembered(workspace).read_text())}
    assert len(kept) == 3
    assert numbers["vault"] in kept
    assert kept <= {*numbers.values()}
    vault.rename(root / "plain")
    with session(root, remembered_files=3) as workspace:
        refused(workspace, "copilot", "read_file", {"path": "plain/deep/c"}, RULE)


def test_memory_forgets_deleted_file_of_directory(root: Path, vault: Path) -> None:
    number = str((vault / "a").stat().st_ino)
    with session(root) as workspace:
        look(workspace)
        assert number in json.loads(remembered(workspace).read_text())
    (vault / "a").unlink()
    with session(root) as workspace:
        look(workspace)
        assert number not in json.loads(remembered(workspace).read_text())


def test_memory_is_written_only_if_protected_files_changed(root: Path, vault: Path) -> None:
    with session(root) as workspace:
        look(workspace)
        before = remembered(workspace).stat()
        look(workspace)
    with session(root) as workspace:
        look(workspace)
        after = remembered(workspace).stat()
        assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_session_without_rules_remembers_nothing(root: Path, vault: Path) -> None:
    with Workspace(str(root)) as workspace:
        assert workspace.call("copilot", "read_file", {"path": "vault/a"}).success
        assert workspace._services.boundary.protected is None
        assert not remembered(workspace).exists()
