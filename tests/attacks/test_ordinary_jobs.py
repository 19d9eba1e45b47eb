"""Does the ordinary jobs that docs/sandbox.md lists in a strict sandbox: a guard that breaks them is no guard."""

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.documents import HOME
from support.sandboxes import PYTHON, has_bubblewrap

from handrail import Workspace

JOBS: dict[str, str] = tomllib.loads(Path(__file__).with_name("ordinary_jobs.toml").read_text())
NEEDS = {"npm install": "npm", "npm test": "npm", "cargo build": "cargo", "gcc": "gcc", "make": "make"}


@pytest.fixture
def workspace(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")
    who = "git config user.name a && git config user.email a@b"
    made = f"git init -q && {who} && echo a > a.txt && git add . && git commit -qm a"
    script = f"{made} && {PYTHON} -m venv --without-pip .venv"
    subprocess.run(["bash", "-ec", script], cwd=root, check=True, capture_output=True)
    with zipfile.ZipFile(root / "one-1-py3-none-any.whl", "w") as wheel:
        about = "one-1.dist-info"
        wheel.writestr("one.py", "")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: one\nVersion: 1\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "one.py,,\n")
    monkeypatch.setenv("PATH", f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}")
    with Workspace(str(root), approve="auto") as opened:
        yield opened


@pytest.mark.parametrize("name", JOBS)
def test_ordinary_job_succeeds_in_strict_sandbox(workspace: Workspace, name: str) -> None:
    if name in NEEDS and shutil.which(NEEDS[name]) is None:
        pytest.skip(f"there is no {NEEDS[name]} here")
    done: Any = workspace.call(
        "codex", "shell", {"command": f"export PYTHON={PYTHON}\n{JOBS[name]}", "timeout_ms": 300_000}
    )
    assert done.success, done
    assert done.output["returncode"] == 0, done.output
    assert done.metadata["sandbox"] == "strict"


def test_sandbox_page_lists_ordinary_jobs() -> None:
    text = (HOME / "docs/sandbox.md").read_text()
    listed = text.partition("### Ordinary jobs\n")[2].partition("\n### ")[0]
    assert [line[2:] for line in listed.splitlines() if line.startswith("- ")] == list(JOBS)
