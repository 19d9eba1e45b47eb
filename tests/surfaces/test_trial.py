"""Tests `handrail try` and `--layered` on the command line."""

from pathlib import Path

import pytest
from support.command_line import in_process
from support.layers import needs_overlays

pytestmark = [needs_overlays, pytest.mark.sandbox]


def test_try_shows_changes_and_keeps_them_if_approved(root: Path) -> None:
    (root / "a.txt").write_text("old\n")
    done = in_process(
        "try", "--root", str(root), "--approve", "auto", "--", "sh", "-c", "echo new >a.txt; echo said; exit 5"
    )
    assert (done.returncode, done.stdout, "kept" in done.stderr) == (5, "said\n", True), done.stderr
    assert "1 change(s) kept" in done.stderr
    assert (root / "a.txt").read_text() == "new\n"


def test_try_without_answer_keeps_nothing(root: Path) -> None:
    done = in_process("try", "--root", str(root), "--", "touch", "made")
    assert done.returncode == 3
    assert "1 change(s) not kept" in done.stderr
    assert not (root / "made").exists()


def test_try_that_changes_nothing_asks_nothing(root: Path) -> None:
    done = in_process("try", "--root", str(root), "--", "true")
    assert (done.returncode, "nothing changed" in done.stderr) == (0, True)


def test_layered_call_keeps_changes_for_next_call_and_root_stays(root: Path) -> None:
    write = ["call", "--root", str(root), "--layered", "--approve", "auto", "file.write", "path=a", "content=x"]
    assert in_process(*write).returncode == 0
    assert "x" in in_process("call", "--root", str(root), "--layered", "file.read", "path=a").stdout
    assert in_process("call", "--root", str(root), "file.read", "path=a").returncode == 1
    assert not (root / "a").exists()
