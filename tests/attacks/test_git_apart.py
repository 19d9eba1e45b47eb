"""Attacks git directories apart from their tree: `.git` files and links, `commondir`, sparse and split indexes."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import has_bubblewrap

from handrail import Workspace

ARM = "git config -f {config} core.fsmonitor 'touch {mark}; false'"
WHO = {f"GIT_{role}_{part}": "a@b.c" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


class Ground:
    """Holds a workspace without a repository, and a mark that a planted program makes."""

    def __init__(self, base: Path) -> None:
        self.root, self.mark = base / "ws", base / "mark"
        self.root.mkdir()

    def user(self, script: str) -> str:
        """Run a script as the user would, outside the sandbox."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.root.parent), **WHO}
        ran = subprocess.run(
            ["bash", "-ec", script], cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        return ran.stdout + ran.stderr

    def arm(self, config: str) -> str:
        return ARM.format(config=config, mark=self.mark)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")
    return Ground(tmp_path)


def warned(ground: Ground, *texts: str) -> str:
    """Run commands in the sandbox, and return their warnings."""
    who = " ".join(f"{name}={value}" for name, value in WHO.items())
    found: list[Any] = []
    with Workspace(str(ground.root), approve="auto") as workspace:
        for text in texts:
            result = workspace.call("codex", "shell", {"command": f"export {who}\n{text}", "timeout_ms": 60_000})
            assert result.success, result
            found += result.warnings
    return "\n".join(found)


GUARDED = {
    "a git file of the root": ("git init -q --separate-git-dir gd .", "gd/config", "git status"),
    "a git link of the root": ("git init -q . && mv .git gd && ln -s gd .git", "gd/config", "git status"),
    "a root that is a linked worktree": (
        "git init -q main && cd main && git commit -q --allow-empty -mx && git worktree add -q ../w && mv ../w/.git ..",
        "main/.git/config",
        "git status",
    ),
    "a submodule with its git directory in the workspace": (
        "git init -q . && git init -q --separate-git-dir gd sub && git -C sub commit -qmx --allow-empty && git add sub",
        "gd/config",
        "git status",
    ),
    "the same in a directory that the scan skips": (
        """git init -q . && mkdir build && git init -q --separate-git-dir build/gd sub
        git -C sub commit -q --allow-empty -m x && git add sub""",
        "build/gd/config",
        "git status",
    ),
}


@pytest.mark.parametrize("name", GUARDED)
def test_git_directory_apart_from_its_tree_is_guarded(ground: Ground, name: str) -> None:
    made, config, use = GUARDED[name]
    ground.user(made)
    assert (ground.root / config).is_file()
    warned(ground, f"{ground.arm(config)}; printf '[core]\\nfsmonitor = touch {ground.mark}\\n' >> {config}")
    ground.user(use)
    assert not ground.mark.exists()
    ground.user(f"{ground.arm(config)}; {use}")
    assert ground.mark.exists()  # shows that the attack works without the guard


def test_git_work_in_directory_apart_from_its_tree_succeeds(ground: Ground) -> None:
    ground.user("git init -q --separate-git-dir gd .")
    work = (
        "echo x > a && git add a && git commit -qm a && git checkout -qb b && git stash list && git gc -q && echo fine"
    )
    assert warned(ground, f"{work} > out") == ""
    assert (ground.root / "out").read_text() == "fine\n"


MADE = {
    "a bare repository in parts": (
        "git init -q --bare parts && mkdir docs && cp parts/HEAD docs && echo ../parts > docs/commondir",
        "docs",
    ),
    "a bare repository with links for its parts": (
        """git init -q --bare docs && mkdir x && mv docs/objects docs/refs x && ln -s ../x/objects ../x/refs docs
        git config -f docs/config core.pager evil""",
        "docs",
    ),
    "a git directory in parts": ("git init -q n && cp -r n/.git parts && echo ../../parts > n/.git/commondir", "n"),
}


@pytest.mark.parametrize("name", MADE)
def test_new_repository_in_parts_is_warned_about(ground: Ground, name: str) -> None:
    made, place = MADE[name]
    assert f"the git repository in {place}, which" in warned(ground, made)


CHANGED = {
    "the target of a git file": ("mkdir build && git init -q --separate-git-dir build/gd n", "build/gd/config"),
    "the target of a git link": (
        "mkdir build && git init -q n && mv n/.git build/gd && ln -s ../build/gd n/.git",
        "build/gd/config",
    ),
    "the common directory": (
        "mkdir build && git init -q n && cp -r n/.git build/gd && echo ../../build/gd > n/.git/commondir",
        "build/gd/config",
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_changed_target_of_redirection_of_user_is_warned_about(ground: Ground, name: str) -> None:
    made, config = CHANGED[name]
    ground.user(made)
    assert warned(ground, "true") == ""
    assert "the git repository in n, which" in warned(ground, "true", ground.arm(config))


def test_git_link_of_user_that_command_replaces_is_warned_about(ground: Ground) -> None:
    ground.user("git init -q n && mv n/.git a && cp -r a b && ln -s ../a n/.git")
    assert "the git repository in n, which" in warned(ground, "ln -sfn ../b n/.git")


@pytest.mark.parametrize("name", ["n/.git", "n/.git/commondir", "n/.git/worktrees/x/gitdir"])
def test_nul_in_path_of_git_file_does_not_stop_check(ground: Ground, name: str) -> None:
    ground.user("git init -q . && git commit -q --allow-empty -m x")
    link = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),n"
    start = (
        "mkdir n" if name == "n/.git" else "git init -q n; git -C n config core.pager evil; mkdir -p n/.git/worktrees/x"
    )
    warned(ground, f"{start}; printf 'gitdir: ../x\\0y\\n' > {name}; {link}")
    assert not (ground.root / "n/.git").exists()


# ── indexes that do not name every submodule ──

NEST = (
    "git init -q {0} && git -C {0} commit -q --allow-empty -m x && git -C {0} config core.fsmonitor 'touch {1}; false'"
)


SPARSE = r"""
import hashlib, struct, subprocess
def entry(name, mode, oid, flags=b""):
    head = struct.pack(">10I", 0, 0, 0, 0, 0, 0, mode, 0, 0, 0) + bytes.fromhex(oid)
    data = head + struct.pack(">H", len(name) | (0x4000 if flags else 0)) + flags + name
    return data + b"\0" * (8 - len(data) % 8)
def git(*words, text=None):
    return subprocess.run(["git", *words], input=text, capture_output=True, text=True, check=True).stdout.strip()
tree = git("mktree", "--missing", text="160000 commit " + git("-C", "b/dep", "rev-parse", "HEAD") + "\tdep\n")
data = struct.pack(">4sII", b"DIRC", 3, 2) + entry(b"a/x", 0o100644, git("rev-parse", ":a/x"))
data += entry(b"b/", 0o040000, tree, b"\x40\0") + b"sdir" + struct.pack(">I", 0)
open(".git/index", "wb").write(data + hashlib.sha1(data).digest())
"""
"""Writes an index that names `b` as a sparse directory; only the tree object names the submodule `b/dep`."""


def test_submodule_in_sparse_directory_of_index_is_set_aside(ground: Ground) -> None:
    ground.user("git init -q . && mkdir a && touch a/x && git add a && git commit -qm x")
    ground.user("git sparse-checkout set --cone --sparse-index a")
    write = f"python3 - <<'END'\n{SPARSE}\nEND"
    told = warned(ground, f"mkdir b && {NEST.format('b/dep', ground.mark)}\n{write}")
    ground.user("git status")
    assert "b/dep/.git was moved" in told
    assert not ground.mark.exists()
    ground.user(f"mv b/dep/.git.handrail-aside b/dep/.git; {write}\ngit status")
    assert ground.mark.exists()  # shows that the attack works without the check


def test_submodule_that_split_index_replaces_does_not_run(ground: Ground) -> None:
    """A replaced entry has no name: only the shared index shows that it is the submodule `dep`."""
    ground.user("git init -q . && touch dep a b c d e f && git add . && git commit -qm x")
    plant = f"""git update-index --split-index; rm dep; {NEST.format("dep", ground.mark)}
    git update-index --cacheinfo 160000,$(git -C dep rev-parse HEAD),dep"""
    warned(ground, plant)
    ground.user("git status")
    assert not ground.mark.exists()


def test_split_index_with_changed_file_is_left_alone(ground: Ground) -> None:
    ground.user("git init -q . && touch a b c d e f && git add . && git commit -qm x")
    assert warned(ground, "git update-index --split-index; echo x > a; git add a") == ""
    assert "a" in ground.user("git diff --cached --name-only")
