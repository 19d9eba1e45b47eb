"""Tests `handrail try` and `--layered` on the command line."""

import json
from pathlib import Path

import pytest
from support.command_line import Done, in_process
from support.layers import needs_overlays

from handrail import Workspace

pytestmark = [needs_overlays, pytest.mark.sandbox]


def test_try_shows_changes_and_keeps_them_if_approved(root: Path) -> None:
    (root / "a.txt").write_text("old\n")
    done = in_process(
        "try", "--root", str(root), "--approve", "auto", "--", "sh", "-c", "echo new >a.txt; echo said; exit 5"
    )
    assert (done.returncode, done.stdout, "kept" in done.stderr) == (5, "said\n", True), done.stderr
    assert "-old\n+new" in done.stderr
    assert "1 change(s) kept" in done.stderr
    assert (root / "a.txt").read_text() == "new\n"


def test_try_without_answer_keeps_nothing(root: Path) -> None:
    done = in_process("try", "--root", str(root), "--", "sh", "-c", "echo new > made")
    assert (done.returncode, "+new" in done.stderr) == (3, True), done.stderr
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


def layer(root: Path, *words: str) -> Done:
    return in_process("layer", words[0], "--root", str(root), *words[1:])


def test_layer_changes_are_listed_applied_and_discarded(root: Path) -> None:
    (root / "a").write_text("old\n")
    write = ["call", "--root", str(root), "--layered", "--approve", "auto", "file.write", "path=a"]
    assert layer(root, "list").stdout == "No layer lies over this workspace.\n"
    assert layer(root, "changes").stdout == "Nothing changed.\n"
    in_process(*write, "content=new")
    assert layer(root, "changes").stdout == "changed  a\n"
    assert "-old\n+new" in layer(root, "changes", "--diff").stdout
    [change] = json.loads(layer(root, "changes", "--json").stdout)["changes"]
    assert (change["path"], change["kind"]) == ("a", "changed")
    asked = layer(root, "apply")
    assert (asked.returncode, "1 change(s) not kept" in asked.stderr) == (3, True)
    assert layer(root, "apply", "--approve", "auto").returncode == 0
    assert (root / "a").read_text() == "new"
    in_process(*write, "content=newer")
    assert layer(root, "discard").returncode == 0
    assert layer(root, "changes").stdout == "Nothing changed.\n"
    [listed] = json.loads(layer(root, "list", "--json").stdout)["layers"]
    assert (listed["name"], listed["in_use"]) == ("default", False)


def test_layer_that_is_unknown_or_open_is_refused(root: Path) -> None:
    with Workspace(root, layered="mine"):
        assert "in use" in layer(root, "list").stdout
        assert "open already" in layer(root, "changes", "mine").stderr
    assert "unknown layer mien; did you mean mine?" in layer(root, "changes", "mien").stderr


def test_try_large_file_names_it_and_keeps_nothing(root: Path) -> None:
    done = in_process("try", "--root", str(root), "--approve", "auto", "--", "truncate", "-s", "80M", "large")
    assert (done.returncode, "'large' has 83886080 bytes" in done.stderr) == (1, True)
    assert not (root / "large").exists()
