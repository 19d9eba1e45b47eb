"""Tests the guard of git directories beyond the matrix: when it scans, which files belong to the user, its warnings."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import handrail
from support.sandboxes import await_word, has_bubblewrap

from handrail import Workspace

GIT = "git -c user.name=a -c user.email=a@b"
GROW = f"""
git init -q -b main . && git config user.name a && git config user.email a@b
{GIT} commit -q --allow-empty -m first && {GIT} commit -q --allow-empty -m second
echo text > a.txt && git add a.txt && {GIT} commit -qm third
"""
ARMED = "printf '[core]\\nfsmonitor = touch /nothing\\n' >> {config}"


@pytest.fixture(scope="module", autouse=True)
def bubblewrap(tmp_path_factory: pytest.TempPathFactory) -> None:
    if not has_bubblewrap(tmp_path_factory.mktemp("probe") / "ws"):
        pytest.skip("there is no bubblewrap here")


@pytest.fixture
def repository(root: Path) -> Path:
    user(root, GROW)
    return root


@pytest.fixture
def opened(repository: Path) -> Iterator[Workspace]:
    with Workspace(str(repository), approve="auto") as workspace:
        yield workspace


def user(root: Path, text: str) -> str:
    """Run a script outside the sandbox and return its output."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}
    return subprocess.check_output(["/bin/bash", "-ec", text], cwd=root, env=environment, text=True)


def shell(workspace: Workspace, command: str) -> Any:
    result = workspace.call("codex", "shell", {"command": command, "timeout_ms": 60_000})
    assert result.success, result
    return result


def notes_of(workspace: Workspace) -> list[str]:
    return [entry.entry.note for entry in workspace.history().entries()]


# ── which files are set aside, and when ──


def test_git_plant_of_background_process_is_set_aside_at_session_end(repository: Path) -> None:
    for name in ("go", "done"):
        os.mkfifo(repository / name)
    with Workspace(str(repository), approve="auto") as workspace:
        plant = "(cat go; ln -sf /nothing .git/logs/HEAD; echo x > .git/unknown; echo > done) &"
        assert workspace.call("gemini", "run_shell_command", {"command": plant}).success
        (repository / "go").write_text("x")
        await_word(repository / "done")
        assert (repository / ".git/logs/HEAD").is_symlink()
    assert not (repository / ".git/logs/HEAD").is_symlink()
    assert not (repository / ".git/unknown").exists()
    with Workspace(str(repository)) as later:
        assert "git: .git/logs/HEAD set aside (link)" in notes_of(later)[0]


def test_git_link_is_set_aside_while_another_process_runs(opened: Workspace, repository: Path) -> None:
    assert opened.call("gemini", "run_shell_command", {"command": "sleep 1000 &"}).success
    said = shell(opened, "ln -sf /nothing .git/logs/HEAD").warnings
    assert ".git/logs/HEAD was moved to .git/handrail-aside/HEAD" in said[0]
    assert not (repository / ".git/logs/HEAD").is_symlink()


def test_running_rebase_is_left_alone(opened: Workspace, repository: Path) -> None:
    given = {"session_id": "t", "cmd": "git rebase -x 'echo waiting; read line' HEAD~1"}
    started: Any = opened.call("codex", "exec_command", given)
    assert "waiting" in started.output["output"]
    assert shell(opened, "true").warnings == []
    assert (repository / ".git/rebase-merge").is_dir()
    ended: Any = opened.call("codex", "write_stdin", {"session_id": "t", "chars": "\n"})
    assert "Successfully rebased" in ended.output["output"]
    assert not (repository / ".git/rebase-merge").exists()


def test_git_plant_of_killed_process_is_set_aside_by_next_command(repository: Path) -> None:
    for name in ("ready", "never"):
        os.mkfifo(repository / name)
    program = textwrap.dedent(f"""
        from handrail import Workspace
        with Workspace({str(repository)!r}, approve="auto") as workspace:
            plant = "ln -sf /nothing .git/logs/HEAD; echo x > .git/unknown; echo > ready; cat never"
            workspace.call("codex", "shell", {{"command": plant, "timeout_ms": 600_000}})
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    child = subprocess.Popen([sys.executable, "-c", program], env=environment)
    await_word(repository / "ready")
    child.kill()
    child.wait()
    assert (repository / ".git/logs/HEAD").is_symlink()
    with Workspace(str(repository), approve="auto") as workspace:
        said = " ".join(shell(workspace, "true").warnings)
    assert ".git/logs/HEAD was moved" in said
    assert ".git/unknown was moved" in said
    assert not (repository / ".git/logs/HEAD").is_symlink()
    assert sorted(path.name for path in (repository / ".git").iterdir() if path.name in ("commondir", "unknown")) == []


def test_git_files_of_user_are_left_alone(repository: Path) -> None:
    user(repository, "mv .git/logs logs && ln -s ../logs .git/logs && mkdir .git/svn && echo x > .git/svn/state")
    with Workspace(str(repository), approve="auto") as workspace:
        assert shell(workspace, f"{GIT} commit -q --allow-empty -m x").warnings == []
        assert shell(workspace, "echo y > .git/svn/state").output["returncode"] != 0
        user(repository, "mkdir .git/tool && ! git rebase -q -x false HEAD~2")
        assert shell(workspace, "true").warnings == []
    assert (repository / ".git/logs").is_symlink()
    assert (repository / ".git/tool").is_dir()
    assert "exec false" in (repository / ".git/rebase-merge/git-rebase-todo").read_text()


def test_commands_added_to_rebase_of_user_are_set_aside(repository: Path) -> None:
    user(repository, "! git rebase -q -x false HEAD~2")
    with Workspace(str(repository), approve="auto") as workspace:
        said = shell(workspace, "echo 'exec evil' >> .git/rebase-merge/git-rebase-todo").warnings
    assert ".git/rebase-merge was moved" in said[0]
    assert not (repository / ".git/rebase-merge").exists()


def test_rebase_with_commands_is_restored_for_next_session(repository: Path) -> None:
    with Workspace(str(repository), approve="auto") as workspace:
        said = shell(workspace, "git rebase -q -x 'test -f fixed' HEAD~2").warnings
        assert "it contains commands" in said[0]
        assert not (repository / ".git/rebase-merge").exists()
    with Workspace(str(repository), approve="auto") as workspace:
        assert shell(workspace, "touch fixed && git rebase --continue").output["returncode"] == 0


def test_abandoned_rebase_is_not_restored(repository: Path) -> None:
    with Workspace(str(repository), approve="auto") as workspace:
        shell(workspace, "git rebase -q -x 'test -f fixed' HEAD~2")
        user(repository, "git checkout -q main")
        assert shell(workspace, "git status").output["stdout"].startswith("On branch main")
    assert (repository / ".git/handrail-aside/rebase-merge").is_dir()


def test_git_config_stays_guarded_after_user_changes_it(opened: Workspace, repository: Path) -> None:
    assert shell(opened, "true").output["returncode"] == 0
    user(repository, "git config user.name other")
    assert shell(opened, "git config core.fsmonitor evil").output["returncode"] != 0
    assert "fsmonitor" not in (repository / ".git/config").read_text()


def test_placeholder_removed_by_user_is_created_again(opened: Workspace, repository: Path) -> None:
    assert shell(opened, "true").output["returncode"] == 0
    (repository / ".git/commondir").unlink()
    assert shell(opened, "echo ../evil > .git/commondir").output["returncode"] != 0


def test_git_guard_leaves_no_files_in_git_directory(repository: Path) -> None:
    before = sorted(path.name for path in (repository / ".git").iterdir())
    with Workspace(str(repository), approve="auto") as workspace:
        assert shell(workspace, "git status").output["returncode"] == 0
    assert sorted(path.name for path in (repository / ".git").iterdir()) == before


# ── repositories that a command makes ──

MADE = {
    "settings": ("git init -q n && " + ARMED.format(config="n/.git/config"), "n"),
    "hooks": ("git init -q n && mkdir -p n/.git/hooks && echo x > n/.git/hooks/pre-commit", "n"),
    "a git file": ("git init -q --separate-git-dir g n", "n"),
    "a git link": ("git init -q n && mv n/.git g && ln -s ../g n/.git", "n"),
    "a bare one": ("git init -q --bare docs && " + ARMED.format(config="docs/config"), "docs"),
    "an unfinished rebase": (
        "git init -q n && cd n/.git && mkdir rebase-merge && echo 'exec x' > rebase-merge/git-rebase-todo",
        "n",
    ),
}


@pytest.mark.parametrize("name", MADE)
def test_risky_new_repository_is_named_in_answer_and_history(opened: Workspace, name: str) -> None:
    command, place = MADE[name]
    said = shell(opened, command).warnings
    assert f"the git repository in {place}, which the command created or changed" in said[0], said
    assert f"git: the repository in {place} has" in notes_of(opened)[0]
    assert shell(opened, "true").warnings == []


def test_plain_new_repository_causes_no_warning(opened: Workspace) -> None:
    command = f"git clone -q . copy && git init -q n && {GIT} -C n commit -q --allow-empty -m x"
    assert shell(opened, command).warnings == []
    assert shell(opened, "git -C n config user.name x").warnings == []


def test_repository_with_risky_settings_added_later_is_named_then(opened: Workspace) -> None:
    assert shell(opened, "git init -q n").warnings == []
    assert "the git repository in n" in shell(opened, ARMED.format(config="n/.git/config")).warnings[0]
    assert "the git repository in n" in shell(opened, "git -C n config core.pager x").warnings[0]


def test_root_that_becomes_risky_repository_is_named(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        assert shell(workspace, "git init -q").warnings == []
        assert "the git repository in ." in shell(workspace, "git config core.pager x").warnings[0]


def test_nested_repository_of_user_is_named_only_after_risky_change(repository: Path) -> None:
    user(repository, "git init -q n && git -C n config core.pager x")
    with Workspace(str(repository), approve="auto") as workspace:
        assert shell(workspace, f"{GIT} -C n commit -q --allow-empty -m x").warnings == []
        assert "the git repository in n" in shell(workspace, "git -C n config core.editor x").warnings[0]


def test_git_alternates_file_is_set_aside(opened: Workspace, repository: Path) -> None:
    said = shell(opened, "mkdir -p .git/objects/info && echo /elsewhere > .git/objects/info/alternates").warnings
    assert ".git/objects/info/alternates was moved" in said[0]
    assert not (repository / ".git/objects/info/alternates").exists()


def test_submodule_in_index_that_leads_outside_is_not_followed(repository: Path, tmp_path: Path) -> None:
    """The index is the agent's to write: it must not make the sandbox show, or the guard touch, what lies outside."""
    outside = tmp_path / "outside"
    outside.mkdir()
    user(outside, "git init -q . && git config core.pager x")
    blob = user(repository, "git rev-parse HEAD").strip()
    (repository / "link").symlink_to(tmp_path)
    for name in ("xx/outside", "link/outside"):
        user(repository, f"git update-index --add --cacheinfo 160000,{blob},{name}")
    index = repository / ".git/index"
    index.write_bytes(index.read_bytes().replace(b"xx/outside", b"../outside"))
    with Workspace(str(repository), approve="auto") as workspace:
        assert "outside" not in shell(workspace, "ls ..").output["stdout"]
    assert (outside / ".git").is_dir()


def test_history_command_shows_git_warning(opened: Workspace, repository: Path) -> None:
    shell(opened, "ln -sf /nothing .git/logs/HEAD")
    told = handrail("history", "--root", str(repository))
    assert "note: git: .git/logs/HEAD set aside (link) as .git/handrail-aside/HEAD" in told.stdout
