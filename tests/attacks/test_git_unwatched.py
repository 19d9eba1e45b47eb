"""Attacks the search for repositories: skipped directories, and terminals between two calls."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import await_word, has_bubblewrap

from handrail import Workspace
from handrail.kernel.journal.skipped_directories import SkippedDirectories

ARMED = "git init -q {0} && git -C {0} config core.fsmonitor evil"
NAMED = "the git repository in {}, which the command created or changed"


@pytest.fixture(autouse=True)
def bubblewrap(tmp_path: Path) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")


@pytest.fixture
def opened(root: Path) -> Iterator[Workspace]:
    with Workspace(str(root), approve="auto") as workspace:
        yield workspace


def user(root: Path, script: str) -> None:
    """Run a script outside the sandbox."""
    subprocess.run(["bash", "-ec", script], cwd=root, check=True, capture_output=True)


def shell(workspace: Workspace, command: str) -> Any:
    result = workspace.call("codex", "shell", {"command": command, "timeout_ms": 60_000})
    assert result.success, result
    return result


# ── directories that the scan skips ──

SKIPPED = {
    "node_modules": ("", "node_modules/a/b"),
    "build": ("", "build"),
    ".venv": ("", ".venv/src/x"),
    "ignored": ("echo out/ > .gitignore", "out/x"),
    "a name of Handrail": ("", ".handrail-x/y"),
    "marked as a placeholder": (
        'python3 -c \'import os; os.mkdir(".x"); os.setxattr(".x", "user.handrail.placeholder", b"1")\'',
        ".x/y",
    ),
    "a directory that cannot be listed": ("", "closed"),
}


@pytest.mark.parametrize("name", SKIPPED)
@pytest.mark.parametrize("before", ["true", "mkdir -p {0}"])
def test_risky_repository_in_skipped_directory_is_named(opened: Workspace, name: str, before: str) -> None:
    first, place = SKIPPED[name]
    shell(opened, f"{first or 'true'}; {before.format(place)}")
    closing = "; chmod 311 closed" if place == "closed" else ""
    said = shell(opened, ARMED.format(place) + closing).warnings
    assert NAMED.format(place) in " ".join(said), said
    assert shell(opened, "true").warnings == []


def test_repository_moved_into_skipped_directory_is_named(opened: Workspace) -> None:
    shell(opened, f"mkdir -p node_modules/a; git init -q node_modules/a/b; {ARMED.format('/tmp/evil/b')}")
    assert (
        NAMED.format("node_modules/a/b")
        in shell(opened, "rm -rf node_modules/a; mv /tmp/evil node_modules/a").warnings[0]
    )


def test_repository_of_user_in_skipped_directory_is_not_named(root: Path) -> None:
    user(root, f"mkdir build && {ARMED.format('build/x')}")
    with Workspace(str(root), approve="auto") as workspace:
        assert shell(workspace, "touch build/y").warnings == []
        assert NAMED.format("build/x") in shell(workspace, "git -C build/x config core.pager evil").warnings[0]


def test_directories_beyond_limit_are_named_as_not_searched(root: Path) -> None:
    with Workspace(str(root), approve="auto", limits={"skipped_directories": 10}) as workspace:
        shell(workspace, "mkdir build")
        said = shell(workspace, f"mkdir -p build/{{1..20}}/x; {ARMED.format('build/20/x/y')}").warnings
    assert "build/" in said[0]
    assert "is too large to search" in said[0]


@pytest.mark.parametrize("watched", [True, False])
def test_skipped_directories_look_finds_new_gone_and_replaced_trees(root: Path, watched: bool) -> None:
    user(root, "mkdir -p m/a/b m/c/.git")
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    found = SkippedDirectories(fd, 100, 200)
    try:
        if not watched:
            found.close()
        found.search(["m"])
        assert found.repositories == ["m/c"]
        user(root, "mkdir -p m/a/b/n/.git && rm -r m/c")
        found.search(["m"])
        assert found.repositories == ["m/a/b/n"]
        user(root, "mv m/a old && mkdir -p m/a/b && touch m/a/b/HEAD")
        found.search(["m"])
        assert found.repositories == ["m/a/b"]
        found.search([])
        assert found.repositories == []
    finally:
        found.close()
        os.close(fd)


# ── processes that go on between two calls ──


def between_calls(root: Path, workspace: Workspace, command: str) -> None:
    """Start a terminal that runs a command only when no call runs."""
    for name in ("go", "done"):
        os.mkfifo(root / name)
    text = f"cat go > /dev/null; {command}; echo > done"
    started: Any = workspace.call("codex", "exec_command", {"session_id": "t", "cmd": text})
    assert started.success, started
    (root / "go").write_text("x")
    await_word(root / "done")


@pytest.mark.parametrize("after", ["", "; cat never"])
def test_repository_made_by_terminal_between_calls_is_named(root: Path, opened: Workspace, after: str) -> None:
    os.mkfifo(root / "never")
    between_calls(root, opened, f"{ARMED.format('n')}; echo > done{after}")
    assert NAMED.format("n") in " ".join(shell(opened, "true").warnings)


def test_repository_made_by_terminal_after_last_call_is_in_history(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        between_calls(root, workspace, ARMED.format("n"))
    with Workspace(str(root)) as later:
        assert "git: the repository in n has" in next(iter(later.history().entries())).entry.note


def test_repository_made_by_user_between_calls_is_not_named(root: Path, opened: Workspace) -> None:
    assert shell(opened, "true").warnings == []
    user(root, ARMED.format("n"))
    assert shell(opened, "touch n/x").warnings == []


# ── the placeholders of guarded names ──


@pytest.mark.parametrize("command", ["git stash -qu && git stash pop -q", "git clean -qfd", "git clean -qffd"])
def test_git_leaves_placeholders_alone_and_succeeds(root: Path, command: str) -> None:
    user(
        root,
        "git init -q && git config user.name a && git config user.email a@b && touch a; git add . && git commit -qm a",
    )
    with Workspace(str(root), approve="auto") as workspace:
        ran = shell(workspace, f"mkdir new && touch new/x && {command} && git status --porcelain")
        assert ran.output["returncode"] == 0, ran
        assert ("?? new/\n" in ran.output["stdout"]) == ("stash" in command)
        for name in (".claude", ".codex", ".mcp.json"):
            assert shell(workspace, f"mkdir -p x && mv x/ {name} || rmdir {name} || touch {name}/y").output[
                "returncode"
            ]
    assert not (root / ".claude").exists()
