"""Plants files that git itself would trust: an index, a `.git` file, records of unfinished work."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import has_bubblewrap

from handrail import Workspace

INDEX = """
import hashlib, struct, subprocess
def blob(text):
    argv = ["git", "hash-object", "-w", "--stdin"]
    return bytes.fromhex(subprocess.run(argv, input=text, capture_output=True, check=True).stdout.decode().strip())
def write(entries):
    data = struct.pack(">4sII", b"DIRC", 2, len(entries))
    for name, mode, oid, length in sorted(entries):
        entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + oid
        entry += struct.pack(">H", length or len(name)) + name
        data += entry + b"\\0" * (8 - len(entry) % 8)
    open(".git/index", "wb").write(data + hashlib.sha1(data).digest())
"""
REBASE = (
    "git commit -q --allow-empty -m third; "
    "GIT_SEQUENCE_EDITOR=\"sed -i '1i break'\" git rebase -q -i -x 'touch ../mark' --keep-empty HEAD~2"
)
NEST = "git init -q dep && git -C dep commit -q --allow-empty -m x && git -C dep config core.fsmonitor 'touch ../mark'"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")
    made = tmp_path / "ws"
    made.mkdir()
    (tmp_path / "outside").write_text("the user's")
    user(made, "git init -q; echo one > a.txt; git add a.txt; git commit -qm one; git commit -q --allow-empty -m two")
    return made


def user(where: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script as the user would, outside the sandbox."""
    who = {f"GIT_{role}_{part}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    environment = {**os.environ, **who, "HOME": str(where.parent), "GIT_EDITOR": "true"}
    return subprocess.run(
        ["bash", "-c", script], cwd=where, env=environment, capture_output=True, text=True, check=False
    )


def commands(root: Path, *texts: str) -> list[Any]:
    who = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.c GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.c; "
    with Workspace(str(root), approve="auto") as workspace:
        found = [workspace.call("codex", "shell", {"command": who + text, "timeout_ms": 60_000}) for text in texts]
    assert all(each.success for each in found), found
    return found


def python(script: str) -> str:
    return f"cat > /tmp/plant.py <<'END'\n{INDEX}{script}\nEND\npython3 /tmp/plant.py"


@pytest.mark.parametrize("name", ["../outside", ".git/hooks/post-checkout", "a/../../outside", "/outside"])
@pytest.mark.parametrize("use", ["git checkout .", "git rm -rqf .", "git commit -qam x"])
def test_git_with_planted_index_touches_nothing_outside(repository: Path, name: str, use: str) -> None:
    entry = f'(b"{name}", 0o100755, blob(b"#!/bin/sh\\ntouch ../mark\\n"), 0)'
    told = commands(repository, python(f'write([{entry}, (b"a.txt", 0o100644, blob(b"one\\n"), 0)])'))
    user(repository, use)
    assert (repository.parent / "outside").read_text() == "the user's"
    assert not (repository.parent / "mark").exists()
    assert not (repository / ".git/hooks/post-checkout").exists()
    assert any(".git/index" in each for each in told[0].warnings)


@pytest.mark.parametrize(
    "entry", ['(b"dep", 0o160001, h, 0)', '(b"dep", 0o160000, h, 0xFFF)', '(b"./dep", 0o160000, h, 0)']
)
def test_git_with_malformed_submodule_entry_runs_no_program(repository: Path, entry: str) -> None:
    head = (
        'h = bytes.fromhex(subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True).stdout.decode().strip())'
    )
    plant = python(f'{head}\nwrite([{entry}, (b"a.txt", 0o100644, blob(b"one\\n"), 0)])')
    commands(repository, f"{NEST}; echo dep/ > .gitignore; {plant}")
    user(repository, "git status")
    assert not (repository.parent / "mark").exists()


def test_git_with_planted_merge_record_reads_no_file_outside(repository: Path) -> None:
    name = "1" * 40
    plant = f"mkdir -p .git/rr-cache/{name}; echo p > .git/rr-cache/{name}/preimage; "
    commands(repository, plant + f"printf '{name}\\t../outside\\0' > .git/MERGE_RR")
    user(repository, "git commit --allow-empty -m x")
    assert not (repository / f".git/rr-cache/{name}/postimage").exists()


@pytest.mark.parametrize("later", [["true"], ["true", "true"]])
def test_unfinished_rebase_is_set_aside_after_each_command(repository: Path, later: list[str]) -> None:
    commands(repository, REBASE, *later)
    user(repository, "git rebase --continue")
    assert not (repository.parent / "mark").exists()


def test_rebase_directory_that_cannot_be_listed_is_set_aside(repository: Path) -> None:
    commands(repository, f"{REBASE}; chmod 311 .git/rebase-merge")
    user(repository, "git rebase --continue")
    assert not (repository.parent / "mark").exists()


def test_root_turned_into_bare_repository_is_warned_about(tmp_path: Path) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")
    root = tmp_path / "plain"
    root.mkdir()
    plant = (
        "git init -q --bare /tmp/x; cp -r /tmp/x/* .; rm -rf hooks; git config -f config core.fsmonitor 'touch mark'"
    )
    assert any("settings that can name programs" in each for each in commands(root, plant)[0].warnings)


def test_new_hook_in_repository_with_aliases_is_warned_about(repository: Path) -> None:
    user(repository, "git init -q clone; git -C clone config alias.st status")
    plant = "printf '#!/bin/sh\\n' > clone/.git/hooks/pre-commit; chmod +x clone/.git/hooks/pre-commit"
    assert any("clone" in each for each in commands(repository, plant)[0].warnings)


@pytest.mark.parametrize("leads", ["../lnk/../.git/modules/sub", " ../.git/modules/sub"])
def test_git_file_that_seems_to_lead_to_modules_is_warned_about(repository: Path, leads: str) -> None:
    plant = f"mkdir -p evil/x new .git/x 2>/dev/null; ln -s evil/x lnk; printf 'gitdir: {leads}\\n' > new/.git"
    assert any("new" in each for each in commands(repository, plant)[0].warnings)
