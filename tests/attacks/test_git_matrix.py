"""Tests git in the sandbox: ordinary work succeeds, and a program that a command plants does not run for the user.

The table is in git_matrix.toml. Each plant is also made without a sandbox and must work there: a plant that never
works proves nothing.
"""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import has_bubblewrap

from handrail import Workspace

TABLE = tomllib.loads(Path(__file__).with_name("git_matrix.toml").read_text())
WORK: dict[str, list[str]] = TABLE["work"]
PLANTS: dict[str, dict[str, str]] = TABLE["plants"]

GROW = """
git init -q -b main source && cd source && git config user.name a && git config user.email a@b
git commit -q --allow-empty -m start && cd ..
git init -q -b main ws && cd ws && git config user.name a && git config user.email a@b
echo one > a.txt; echo one > b.txt; git add . && git commit -qm first
git switch -qc side && echo aside > b.txt && git commit -qam aside && git switch -q main
mkdir -p .git/info; printf 'remote.git\\n' > .git/info/exclude; git clone -q --bare . remote.git
git -c protocol.file.allow=always submodule --quiet add -- ../source sub
git -c protocol.file.allow=always submodule --quiet add -- ../source empty
git commit -qm second && git submodule --quiet deinit -f empty
rm -rf .git/modules/empty && git config extensions.worktreeConfig true
git remote add origin ./remote.git
git clone -q remote.git ../other && cd ../other && git commit -q --allow-empty -m remote && git push -q origin main
cd ../ws
git worktree add -q wt -b in-wt
"""


class Ground:
    """Holds a workspace, a directory outside it, and the environment of the user."""

    def __init__(self, base: Path, template: Path | None = None) -> None:
        """Copy the workspace of the template, or build a new one without a template."""
        self.root, self.out, self.mark = base / "ws", base / "out", base / "mark"
        home = base / "home"
        for path in (self.out, home):
            path.mkdir(parents=True)
        (self.out / "file").write_text("")
        identity = "[user]\nname = a\nemail = a@b\n[advice]\ndetachedHead = false\n[init]\ndefaultBranch = main\n"
        (home / ".gitconfig").write_text(identity)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_EDITOR": "true",
            "GIT_TEMPLATE_DIR": "",
            "MARK": str(self.mark),
            "OUT": str(self.out),
        }
        if template is None:
            grown = self.user(GROW, base)
            assert self.user("test -f ws/sub/.git && test -f ws/wt/.git", base).returncode == 0, grown
        else:
            shutil.copytree(template / "ws", self.root, symlinks=True)
            for name in ("wt/.git", ".git/worktrees/wt/gitdir"):
                path = self.root / name
                path.write_text(path.read_text().replace(str(template), str(base)))

    def user(self, text: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """Run a script outside the sandbox."""
        return subprocess.run(
            ["/bin/bash", "-c", text],
            cwd=cwd or self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def damage(self) -> list[str]:
        """Return the names that a plant wrote outside, and `mark` if its program ran."""
        found = [name for name in sorted(os.listdir(self.out)) if name != "file"]
        if (self.out / "file").read_bytes():
            found.append("file")
        return [*found, *(["mark"] if self.mark.exists() else [])]


def shell(workspace: Workspace, command: str) -> dict[str, Any]:
    result: Any = workspace.call("codex", "shell", {"command": command, "timeout_ms": 60_000})
    assert result.success, result
    return {**result.output, "warnings": result.warnings}


@pytest.fixture(scope="module")
def bubblewrap(tmp_path_factory: pytest.TempPathFactory) -> None:
    if not has_bubblewrap(tmp_path_factory.mktemp("probe") / "ws"):
        pytest.skip("there is no bubblewrap here")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("template")
    Ground(base)
    return base


@pytest.fixture
def ground(tmp_path: Path, template: Path) -> Ground:
    return Ground(tmp_path, template)


def inside(ground: Ground, command: str) -> str:
    words = [f"export {name}='{ground.environment[name]}'" for name in ("MARK", "OUT", "GIT_EDITOR")]
    return "\n".join([*words, command])


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("name", WORK)
def test_ordinary_git_work_succeeds_in_sandbox(ground: Ground, name: str) -> None:
    with Workspace(str(ground.root), approve="auto") as workspace:
        for command in WORK[name]:
            ran = shell(workspace, inside(ground, f"set -e\n{command}"))
            assert ran["returncode"] == 0, (command, ran)
            assert ran["warnings"] == [] or " -x " in command, ran
    assert ground.user("git fsck && git status").returncode == 0
    assert not (ground.root / ".git/handrail-aside").exists()


@pytest.mark.usefixtures("bubblewrap")
def test_renamed_branch_is_told_that_its_configuration_stays(ground: Ground) -> None:
    with Workspace(str(ground.root), approve="auto") as workspace:
        ran = shell(workspace, "git branch y && git branch -m y z; git rev-parse --verify z")
    assert ran["returncode"] == 0, ran
    assert "Branch is renamed, but update of config-file failed".lower() in ran["stderr"].lower()
    assert ["git's configuration" in each for each in ran["warnings"]] == [True]


@pytest.mark.parametrize("name", PLANTS)
def test_git_plant_works_without_guard(ground: Ground, name: str) -> None:
    ground.user(PLANTS[name]["plant"])
    assert ground.damage() == []
    used = ground.user(PLANTS[name]["use"])
    assert ground.damage() != [], used


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("name", PLANTS)
def test_git_plant_from_sandbox_does_not_run_for_user(ground: Ground, name: str) -> None:
    with Workspace(str(ground.root), approve="auto") as workspace:
        shell(workspace, inside(ground, PLANTS[name]["plant"]))
        used = ground.user(PLANTS[name]["use"])
        assert ground.damage() == [], used
    used = ground.user(PLANTS[name]["use"])
    assert ground.damage() == [], used


def test_git_matrix_has_at_least_25_rows_of_each_kind() -> None:
    assert len(WORK) >= 25
    assert len(PLANTS) >= 25
