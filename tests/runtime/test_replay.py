"""Tests that a replay of a session log on a copy of its first tree gives the same answers."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from handrail import Question, Verdict, Workspace
from handrail.replay import ReplayOutcome, read_log, replay


@pytest.fixture
def start(tmp_path: Path, root: Path) -> Path:
    (root / "a.txt").write_text("one\ntwo\n")
    (root / "sub").mkdir()
    (root / "sub" / "b.txt").write_text("b\n")
    (root / "link").symlink_to("a.txt")
    copy = tmp_path / "start"
    shutil.copytree(root, copy, symlinks=True)
    return copy


def session(root: Path, log: Path, calls: list[tuple[str, str, Any]], **flags: Any) -> None:
    settings = {"approve": "auto", "sandbox": "off", "log_level": "debug"} | flags
    with Workspace(str(root), log=str(log), **settings) as workspace:
        for dialect, tool, params in calls:
            workspace.call(dialect, tool, params)


def yes(_: Question) -> Verdict:
    return Verdict(True, "test")


def again(log: Path, start: Path, approver: Any = yes) -> list[ReplayOutcome]:
    return list(replay(read_log(log.read_text()), str(start), approver, sandbox="off"))


def calls(root: Path) -> list[tuple[str, str, Any]]:
    return [
        ("file", "file.list", {}),
        ("file", "file.patch", {"path": "a.txt", "patches": [{"find": "two", "replace": "2"}]}),
        ("gemini", "read_file", {"absolute_path": f"{root}/a.txt"}),
        ("gemini", "run_shell_command", {"command": "cat a.txt; echo more >> sub/b.txt; echo $PWD"}),
        ("gemini", "glob", {"pattern": "**/*.txt"}),
        ("context", "grep", {"pattern": "two|2"}),
        ("copilot", "run_in_terminal", {"command": "date > now; ls"}),
        ("copilot", "terminal_last_command", {}),
        ("codex", "read_file", {"path": "missing"}),
        ("file", "file.delete", {"path": "sub/b.txt"}),
        ("file", "no.such.tool", {"x": 1}),
        ("file", "file.read", {"path": 7}),
    ]


def test_replay_same_start_gives_same_answers(root: Path, start: Path, tmp_path: Path) -> None:
    made = calls(root)
    session(root, tmp_path / "log", made)
    outcomes = again(tmp_path / "log", start)
    assert [(each.call.tool, each.what, each.differences) for each in outcomes] == [
        (tool, "same", ()) for _, tool, _ in made
    ]
    assert (start / "a.txt").read_text() == "one\n2\n"
    assert not (start / "sub" / "b.txt").exists()


def test_replay_changed_file_lists_difference(root: Path, start: Path, tmp_path: Path) -> None:
    session(root, tmp_path / "log", [("file", "file.read", {"path": "a.txt"})])
    (start / "a.txt").write_text("one\nother\n")
    (outcome,) = again(tmp_path / "log", start)
    assert outcome.what == "differs"
    assert outcome.differences == (("output.content", "     1\tone\n     2\ttwo", "     1\tone\n     2\tother"),)


def test_replay_shortened_log_skips_or_does_not_compare(root: Path, start: Path, tmp_path: Path) -> None:
    log, limits = tmp_path / "log", {"log_debug_chars": 400}
    made = [
        ("file", "file.write", {"path": "new", "content": "x" * 1000}),
        ("file", "file.read", {"path": "a.txt"}),
        ("file", "file.search", {"pattern": "password = hunter22hunter22"}),
    ]
    session(root, log, made, limits=limits)
    assert [each.what for each in again(log, start)] == ["skipped", "same", "skipped"]
    (root / "long").write_text("x" * 1000)
    session(root, tmp_path / "log2", [("file", "file.read", {"path": "long"})], limits=limits)
    shutil.copy(root / "long", start / "long")
    assert [each.what for each in again(tmp_path / "log2", start)] == ["shortened"]
    session(root, tmp_path / "log3", [("file", "file.read", {"path": "long"})], log_level="info")
    assert [each.what for each in again(tmp_path / "log3", start)] == ["unknown"]


def test_replay_denied_call_stays_denied_and_commands_need_approval(root: Path, start: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    session(root, log, [("file", "file.delete", {"path": "a.txt"})], approve="never")
    session(root, log, [("file", "file.delete", {"path": "sub/b.txt"})])
    session(root, log, [("codex", "shell", {"command": "touch ran"})])
    assert [each.what for each in again(log, start, None)] == ["same", "same", "differs"]
    assert (start / "a.txt").exists()
    assert not (start / "sub" / "b.txt").exists()
    assert not (start / "ran").exists()


def test_read_log_malformed_lines_are_counted(root: Path, start: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    session(root, log, [("file", "file.list", {})])
    bug = {"event": "bug", "session": "s", "call": 1}
    lost = {"event": "response", "session": "s", "call": 99, "result": {}}
    log.write_text(log.read_text() + f"not json\n[]\n{json.dumps(bug)}\n{json.dumps(lost)}\n\n")
    found = read_log(log.read_text())
    assert (len(found.calls), found.unread) == (1, 3)
