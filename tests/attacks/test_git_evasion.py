"""Attacks the check of git directories itself: entries that stop it, hide from it, outgrow it or outlive it."""

import hashlib
import os
import signal
import struct
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from support.ordinary_user import bound_by_permissions
from support.sandboxes import await_word, has_bubblewrap

from handrail import Workspace
from handrail.kernel.git.aside import Aside, rename_submodule
from handrail.kernel.git.repositories import Known, find
from handrail.model.limits import Limits

WHO = {f"GIT_{role}_{part}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
ARMED = (
    "git init -q {0} && git -C {0} commit -qm x --allow-empty && git -C {0} config core.fsmonitor 'touch {1}; false'"
)
NEST = "git init -q n && " + ARMED + " && git -C n add x && git -C n commit -qm x && git add n"
HIDE = r"""
import hashlib, struct
data = open("n/.git/index", "rb").read()[:-20]
version, count = struct.unpack(">II", data[4:12])
at = 12
for _ in range(count):
    at += ((data.index(b"\0", at + 62) - at) // 8 + 1) * 8
odd = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100644, 0, 0, 0) + b"\x11" * 20 + struct.pack(">H", 4) + b"../q"
data = data[:4] + struct.pack(">II", version, count + 1) + odd + b"\0" * (8 - len(odd) % 8) + data[12:at]
open("n/.git/index", "wb").write(data + hashlib.sha1(data).digest())
"""
"""Adds a path outside to the index of `n`: git still reads it, but the check does not trust any of its names."""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")
    made = tmp_path / "ws"
    made.mkdir()
    user(made, "git init -q . && echo one > a.txt && git add a.txt && git commit -qm one")
    return made


def user(root: Path, script: str) -> None:
    """Run a script as the user would, outside the sandbox."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(root.parent), "GIT_EDITOR": "true", **WHO}
    subprocess.run(["bash", "-c", script], cwd=root, env=environment, capture_output=True, check=False)


def warned(root: Path, *texts: str, **settings: Any) -> str:
    """Run commands in the sandbox, and return their warnings."""
    who = " ".join(f"{name}={value}" for name, value in WHO.items())
    found: list[str] = []
    with Workspace(str(root), approve="auto", **settings) as workspace:
        for text in texts:
            result: Any = workspace.call("codex", "shell", {"command": f"export {who}\n{text}", "timeout_ms": 60_000})
            assert result.success, result
            assert result.output["returncode"] == 0, result.output
            found += result.warnings
    return "\n".join(found)


def python(script: str) -> str:
    return f"python3 - <<'END'\n{script}\nEND"


# ── submodules of submodules ──


def test_submodule_hidden_by_odd_index_of_plain_submodule_does_not_run(repository: Path) -> None:
    mark = repository.parent / "mark"
    plant = f"{NEST.format('n/x', mark)} 2> /dev/null && {python(HIDE)}"
    assert "n/.git was moved" in warned(repository, plant)
    user(repository, "git status")
    assert not mark.exists()
    user(repository, "mv n/.git.handrail-aside n/.git; git status")
    assert mark.exists()  # shows that the attack works without the check


def test_submodule_below_more_submodules_than_limit_does_not_run(repository: Path) -> None:
    mark = repository.parent / "mark"
    plain = "for m in a b c; do git init -q $m; git -C $m commit -q --allow-empty -m x; git add $m; done"
    plant = f"({plain}; {NEST.format('n/x', mark)}) 2> /dev/null"
    assert "n/.git was moved" in warned(repository, plant, limits={"guarded_repositories": 4})
    user(repository, "git status")
    assert not mark.exists()


def test_index_that_becomes_too_large_is_set_aside(repository: Path) -> None:
    plant = python("open('.git/index', 'ab').truncate(1 << 21)")
    told = warned(repository, plant, limits={"edit_bytes": 1 << 20})
    assert ".git/index was moved to .git/handrail-aside/index: it became too large" in told


def test_large_index_of_user_stays(repository: Path) -> None:
    with open(repository / ".git/index", "ab") as index:
        index.truncate(1 << 21)
    warned(repository, "true", limits={"edit_bytes": 1 << 20})
    assert (repository / ".git/index").exists()


def test_index_changed_within_one_tick_is_read_again(tmp_path: Path) -> None:
    """A process could wait for the check, and write another index with the same size and times."""
    (tmp_path / ".git").mkdir()
    index, known = tmp_path / ".git/index", Known()
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        for mode, found in ((0o100644, []), (0o160000, ["dep"])):
            entry = struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + b"\x11" * 20 + struct.pack(">H", 3) + b"dep"
            data = struct.pack(">4sII", b"DIRC", 2, 1) + entry + b"\0" * (8 - len(entry) % 8)
            index.write_bytes(data + hashlib.sha1(data).digest())
            if known:  # as if the clock had not moved on
                now = index.stat()
                mark = (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
                known[".git/index"] = known[".git/index"]._replace(mark=mark)
            assert find(fd, str(tmp_path), Limits(), known).submodules == found
    finally:
        os.close(fd)


# ── entries that are many, deep, or not to be moved ──


def test_thousands_of_links_with_one_name_do_not_stop_check(repository: Path) -> None:
    many = """
import os
for number in range(10_050):
    os.makedirs(f".git/refs/x/{number}")
    os.symlink("/nothing", f".git/refs/x/{number}/link")
os.mkdir(".git/rebase-merge")
open(".git/rebase-merge/git-rebase-todo", "w").write("exec evil")
"""
    told = warned(repository, python(many))
    assert not (repository / ".git/rebase-merge").exists()
    assert not list((repository / ".git/refs/x").glob("*/link"))
    assert "the rest in .git (" in told
    assert len(told) < 10_000


@pytest.mark.parametrize("place", [".git/refs", "node_modules"])
def test_tree_deeper_than_any_path_does_not_slow_check(repository: Path, place: str) -> None:
    """Without a limit, the check needs minutes, and memory for paths of half a megabyte."""
    deep = f"""
import os
os.makedirs({place!r}, exist_ok=True)
os.chdir({place!r})
for _ in range(4000):
    os.mkdir("x" * 250)
    os.chdir("x" * 250)
"""
    try:
        told = warned(repository, python(deep))
    finally:
        subprocess.run(["rm", "-rf", str(repository)], check=True)  # pytest cannot remove so deep a tree
    assert f"{place}/xxx" in told


def test_names_that_commands_made_read_only_are_set_aside(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "logs").mkdir(parents=True)
    (git / "logs/HEAD").symlink_to("/nothing")
    (git / "rebase-merge").mkdir()
    (tmp_path / "n/.git").mkdir(parents=True)
    for name in (".git/logs", ".git/rebase-merge", ".git", "n"):
        (tmp_path / name).chmod(0o555)

    def move() -> None:
        fd = os.open(tmp_path, os.O_RDONLY)
        aside = Aside(fd, ".git")
        assert aside.move("logs/HEAD") == ".git/handrail-aside/HEAD"
        assert aside.move("rebase-merge") == ".git/handrail-aside/rebase-merge"
        aside.close()
        assert rename_submodule(fd, "n") == "n/.git.handrail-aside"
        os.close(fd)

    bound_by_permissions(move)


def test_hooks_that_replace_link_of_user_are_set_aside(repository: Path) -> None:
    """No mount can guard a link."""
    mark = repository.parent / "mark"
    user(repository, "rm -rf .git/hooks && mkdir ../hooks && ln -s ../../hooks .git/hooks")
    assert warned(repository, "true") == ""
    assert (repository / ".git/hooks").is_symlink()
    hook = f"printf '#!/bin/sh\\ntouch {mark}\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit"
    assert ".git/hooks was moved" in warned(repository, f"rm .git/hooks && mkdir .git/hooks && {hook}")
    user(repository, "git commit --allow-empty -m x")
    assert not mark.exists()


# ── processes that end, and sessions that are killed ──


def test_rebase_planted_after_background_process_ended_is_set_aside(repository: Path) -> None:
    with Workspace(str(repository), approve="auto") as workspace:
        os.mkfifo(repository / "go")
        assert workspace.call("gemini", "run_shell_command", {"command": "(cat go; exit) &"}).success
        (repository / "go").write_text("x")
        plant = """while pgrep -x cat; do :; done
        mkdir .git/rebase-merge && echo exec x > .git/rebase-merge/git-rebase-todo"""
        assert workspace.call("codex", "shell", {"command": plant, "timeout_ms": 60_000}).success
        assert not (repository / ".git/rebase-merge").exists()


def test_repository_of_killed_session_is_named_by_next_command(repository: Path) -> None:
    user(repository, "git init -q mine && git -C mine config core.pager x")
    for name in ("ready", "never"):
        os.mkfifo(repository / name)
    program = textwrap.dedent(f"""
        from handrail import Workspace
        with Workspace({str(repository)!r}, approve="auto") as workspace:
            plant = "git init -q n; git -C n config core.fsmonitor evil; echo > ready; cat never"
            workspace.call("codex", "shell", {{"command": plant, "timeout_ms": 600_000}})
    """)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    child = subprocess.Popen([sys.executable, "-c", program], env=environment)
    await_word(repository / "ready")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    told = warned(repository, "true")
    assert "the git repository in n, which" in told
    assert "mine" not in told
    assert warned(repository, "true") == ""
