"""`handrail history`, `show`, `undo`, `redo`, `restore` and `replay`, as a user uses them."""

import json
import os
import re
from pathlib import Path

import pytest
from support.command_line import in_process as handrail

from handrail import Workspace
from handrail.kernel.journal.journal import HistoryEntry, JournalEntry, Origin
from handrail.runtime.entry_facts import approver_of, facts

MOMENT = re.compile(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?")


def run(root: Path, *arguments: str, code: int = 0) -> str:
    done = handrail(*arguments, "--root", str(root))
    assert done.returncode == code, (done.stdout, done.stderr)
    return MOMENT.sub("TIME", done.stdout or done.stderr)


@pytest.fixture
def done(root: Path) -> Path:
    with Workspace(str(root), approve="auto", sandbox="off") as workspace:
        for path, content in (("a.txt", "one\ntwo\n"), ("a.txt", "one\n2\n")):
            assert workspace.call("file", "file.write", {"path": path, "content": content}).success
        assert workspace.call("codex", "shell", {"command": "mkdir d; mv a.txt d/b.txt"}).success
    return root


def test_history_lists_calls_files_lines_and_undone(done: Path) -> None:
    assert run(done, "undo", "--approve", "auto") == ("Undid 3: 3 changes\n  a.txt\n  d/b.txt\n  d\n")
    assert run(done, "history").split("\n")[:4] == [
        "4  TIME  undo 3  a.txt, d/b.txt  2 files  +2 -2",
        "3  TIME  shell  mkdir d; mv a.txt d/b.txt  2 files  +2 -2  (undone)",
        "2  TIME  file.write  a.txt  1 file  +1 -1",
        "1  TIME  file.write  a.txt  1 file  +2 -0",
    ]
    assert len(run(done, "history", "-n", "1").split("\n")) == 3


def test_history_json_has_caller_and_approver(done: Path) -> None:
    found = json.loads(handrail("history", "--json", "--root", str(done)).stdout)
    assert [each["n"] for each in found["entries"]] == [3, 2, 1]
    second = found["entries"][1]
    assert second.pop("time") > 0
    session = second.pop("session")
    assert second == {
        "n": 2, "kind": "commit", "call": 2, "call_id": None, "dialect": "file", "tool": "file.write",
        "by": "policy auto", "undone": False, "undoable": True,
        "files": [{"path": "a.txt", "kind": "file", "change": "changed", "added": 1, "removed": 1}],
    }  # fmt: skip
    assert (
        len(json.loads(handrail("history", "--json", "--session", session, "--root", str(done)).stdout)["entries"]) == 3
    )
    assert json.loads(handrail("history", "--json", "--session", "x", "--root", str(done)).stdout) == {"entries": []}


def test_history_entry_with_old_word_for_user_names_the_user() -> None:
    """Entries of earlier versions have `person` where newer ones have `user`."""
    old = JournalEntry(1, 0.0, Origin(tool="file.write", by="person"), ())
    assert facts(HistoryEntry(old, undone=False))["by"] == "user"
    assert [approver_of(Origin(by=by)) for by in ("user", "policy auto", "")] == ["user", "policy auto", ""]


def test_history_empty_says_so(root: Path) -> None:
    assert run(root, "history") == "No changes are recorded yet.\n"
    assert "cannot open the workspace" in run(root / "nowhere", "history", code=2)


def test_history_damaged_entry_is_named_and_rest_listed(done: Path) -> None:
    with Workspace(str(done)) as workspace:
        path = Path(workspace._services.state.path, "journal.jsonl")
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"a.txt", b"b.txt")
    path.write_bytes(b"\n".join(lines))
    at = len(lines[0]) + 1
    listed = run(done, "history").split("\n")
    assert listed[1] == (f"!  cannot read {len(lines[1])} bytes of the journal from byte {at}: they are damaged")
    assert [line[0] for line in listed[:3]] == ["3", "!", "1"]
    assert json.loads(handrail("history", "--json", "--root", str(done)).stdout)["damage"] == [
        {"at": at, "size": len(lines[1])}
    ]
    assert "entry 2 not found in the history" in run(done, "show", "2", code=2)
    assert run(done, "undo", "3", "--approve", "auto").startswith("Undid 3")


def test_show_prints_diff(done: Path) -> None:
    head, _, diff = run(done, "show", "2").partition("\n\n")
    assert re.sub(r"session [\w-]+", "session S", head) == (
        "2  TIME  +1 -1\ncommit by file file.write (session S, call 2)\napproved by policy auto"
    )
    assert diff == "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert "new directory d\n" in run(done, "show", "3")
    assert json.loads(handrail("show", "2", "--json", "--root", str(done)).stdout)["diff"] == diff


def test_show_undone_state_matches_history(done: Path) -> None:
    for step in ("undo", "redo"):
        run(done, step, "--approve", "auto")
    shown = json.loads(handrail("show", "3", "--json", "--root", str(done)).stdout)
    listed = json.loads(handrail("history", "--json", "--root", str(done)).stdout)["entries"]
    assert [each["undone"] for each in (shown, listed[2])] == [False, False]
    assert [(each["n"], each["undoable"]) for each in listed[:3]] == [(5, True), (4, False), (3, True)]


def test_show_explains_missing_contents(root: Path) -> None:
    (root / "binary").write_bytes(b"\0\1")
    (root / "large").write_bytes(b"x" * 100)
    (root / "link").symlink_to("binary")
    with Workspace(str(root), approve="auto", limits={"edit_bytes": 50}) as workspace:
        for name in ("binary", "large", "link"):
            assert workspace.call("file", "file.delete", {"path": name}).success
        assert workspace.call("file", "file.write", {"path": "lost", "content": "lost"}).success
        for blob, *_ in list(workspace._services.journal.blobs.listed()):
            if workspace._services.journal.blobs.get(blob) == b"lost":
                workspace._services.journal.blobs.drop([blob])
    assert run(root, "show", "1").endswith("\n\nbinary: binary, 2 -> 0 bytes\n")
    assert run(root, "show", "2").endswith("\n\nlarge: the content was not recorded\n")
    assert run(root, "show", "3").endswith("\n\ndeleted link link -> binary\n")
    assert re.search(r"\n\nlost: blob [0-9a-f]{12} is missing\n$", run(root, "show", "4"))


def test_show_prints_real_modes(root: Path) -> None:
    with Workspace(str(root), approve="auto", sandbox="off") as workspace:
        for command in ("umask 077; echo x > f", "chmod 640 f", "chmod 751 f", "rm f"):
            assert workspace.call("codex", "shell", {"command": command}).success
    said = [run(root, "show", str(n)).partition("\n\n")[2].split("\n")[1:3] for n in range(1, 5)]
    assert said == [
        ["new file mode 100600", "--- /dev/null"],
        ["old mode 100600", "new mode 100640"],
        ["old mode 100640", "new mode 100751"],
        ["deleted file mode 100751", "--- a/f"],
    ]


def test_undo_dry_run_then_undo_redo_and_restore(done: Path) -> None:
    dry = run(done, "undo", "2", "--dry-run", code=1)
    assert "a.txt: a later change would be overwritten" in dry
    assert run(done, "undo", "--since", "2", "--dry-run").startswith("diff --git a/a.txt b/a.txt\nnew file mode 100644")
    assert os.listdir(done) == ["d"]
    assert run(done, "undo", "--since", "2", "--approve", "auto").startswith("Undid 3, 2: 3 changes\n")
    assert (done / "a.txt").read_text() == "one\ntwo\n"
    assert run(done, "redo", "--approve", "auto").startswith("Redid 4: 3 changes\n")
    assert os.listdir(done) == ["d"]
    assert run(done, "restore", "a.txt", "--at", "1", "--approve", "auto") == "Restored from 1: 1 change\n  a.txt\n"
    assert (done / "a.txt").read_text() == "one\ntwo\n"


def test_undo_without_approval_is_denied(done: Path) -> None:
    assert "undo was not approved" in run(done, "undo", code=3)
    assert os.listdir(done) == ["d"]


def test_undo_impossible_is_explained(done: Path) -> None:
    assert run(done, "undo", "9", code=1) == "Error: entry 9 not found\n"
    assert "choose one of" in run(done, "undo", "1", "--since", "1", code=2)
    assert run(done, "redo", code=1) == "Error: nothing to redo\n"
    (done / "d" / "b.txt").write_text("mine\n")
    assert "d/b.txt: a later change would be overwritten" in run(done, "undo", code=1)
    found = json.loads(handrail("undo", "--json", "--root", str(done)).stdout)
    assert (found["done"], [each["why"] for each in found["conflicts"]]) == (False, ["changed"])


def test_undo_chosen_paths_work_despite_unkept_file(root: Path) -> None:
    (root / "a b").write_text("old\n")
    (root / "big").write_text("x" * 9_000_000)
    with Workspace(str(root), approve="auto", sandbox="off") as workspace:
        assert workspace.call(
            "codex", "shell", {"command": "echo new > 'a b'; echo >> big; mkdir d; touch d/e"}
        ).success
    assert run(root, "undo", code=1) == (
        "Nothing was changed: these files cannot be restored:\n"
        "  big: its content was not recorded\n"
        "To undo the other paths only: handrail undo 1 'a b' d/e d\n"
    )
    assert run(root, "undo", "1", "a b", "d", "--approve", "auto") == "Undid part of 1: 3 changes\n  a b\n  d/e\n  d\n"
    assert run(root, "redo", "--approve", "auto").startswith("Redid 2: 3 changes")
    assert run(root, "restore", "a b", "--at", "0", "--approve", "auto") == (
        "Restored from before all entries: 1 change\n  a b\n"
    )
    assert (root / "a b").read_text() == "old\n"
    assert run(root, "undo", "1", "d", "nothing", code=1) == "Error: entry 1 did not change nothing\n"


def test_undo_restores_file_that_became_directory(root: Path) -> None:
    (root / "s").write_text("old\n")
    with Workspace(str(root), approve="auto", sandbox="off") as workspace:
        assert workspace.call("codex", "shell", {"command": "rm s; mkdir s; echo x > s/x"}).success
    dry = run(root, "undo", "--dry-run")
    assert dry == (
        "deleted directory s\n"
        "diff --git a/s b/s\nnew file mode 100644\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+old\n"
        "diff --git a/s/x b/s/x\ndeleted file mode 100644\n--- a/s/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "Would undo 1: 2 changes\n  s\n  s/x\n"
    )
    assert run(root, "undo", "--approve", "auto") == "Undid 1: 2 changes\n  s\n  s/x\n"
    assert (root / "s").read_text() == "old\n"


def test_undo_merged_file_is_marked(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        for content in ("a\nb\nc\nd\n", "A\nb\nc\nd\n"):
            assert workspace.call("file", "file.write", {"path": "f", "content": content}).success
    (root / "f").write_text("A\nb\nc\nD\n")
    assert run(root, "undo", "--approve", "auto") == "Undid 2: 1 change\n  f  (merged)\n"


def test_history_prune_reports_removed_entries(done: Path) -> None:
    assert run(done, "history", "--prune") == "Deleted 0 entries and 0 file contents (0.0 MB)\n"
    assert run(done, "history", "--prune", "--days", "0").startswith("Deleted 2 entries and 0 file contents")
    assert run(done, "history", "--prune", "--megabytes", "0").startswith("Deleted 0 entries")
    assert run(done, "history")[0] == "3"


def test_replay_repeats_calls_on_copy(root: Path, tmp_path: Path) -> None:
    (root / "a").write_text("a\n")
    os.mkfifo(root / "fifo")
    log = tmp_path / "log"
    with Workspace(str(root), log=str(log), log_level="debug") as workspace:
        workspace.call("file", "file.read", {"path": "a"})
        workspace.call("gemini", "read_file", {"absolute_path": f"{root}/a"})
    assert run(root, "replay", str(log)) == "2 calls: 2 same\n"
    assert "cannot open the workspace" in run(root / "nowhere", "replay", str(log), code=2)
    (root / "a").write_text("b\n")
    log.write_text(log.read_text() + "?\n")
    assert run(root, "replay", str(log), code=1) == (
        "1. file.read: output.content\n"
        '  - "     1\\ta"\n  + "     1\\tb"\n'
        '2. read_file: output\n  - "a\\n"\n  + "b\\n"\n'
        "2 calls: 2 different\ncannot read 1 lines of the log\n"
    )
    found = json.loads(handrail("replay", str(log), "--json", "--root", str(root)).stdout)
    assert [each["result"] for each in found["calls"]] == ["differs", "differs"]
    log.write_text("")
    assert "contains no calls" in run(root, "replay", str(log), code=2)
    assert (root / "a").read_text() == "b\n"


def test_history_unreadable_journal_is_an_error(done: Path) -> None:
    with Workspace(str(done)) as workspace:
        path = Path(workspace._services.journal.path)
    path.unlink()
    path.mkdir()
    said = f"Error: cannot read the journal {path}: Is a directory\n"
    for arguments in (
        ["history"], ["history", "--json"], ["history", "--prune"], ["show", "1"], ["undo"], ["undo", "2"], ["redo"],
        ["restore", "a.txt", "--at", "1"], ["restore", "a.txt", "--at", "0"],
    ):  # fmt: skip
        assert run(done, *arguments, code=1) == said
    with Workspace(str(done), approve="auto", sandbox="off") as workspace:
        for dialect, tool, params in (
            ("file", "file.write", {"path": "new", "content": "x"}),
            ("codex", "shell", {"command": "touch newer"}),
        ):
            result = workspace.call(dialect, tool, params)
            assert result.success
            assert result.warnings == ["this change was not recorded and cannot be undone: Is a directory"]


def test_replay_binary_log_or_missing_root_is_an_error(root: Path, tmp_path: Path) -> None:
    binary, log = tmp_path / "binary", tmp_path / "log"
    binary.write_bytes(b"\x7fELF\xff\0")
    assert f"{binary} is not a session log: it is not text" in run(root, "replay", str(binary), code=2)
    with Workspace(str(root), log=str(log), log_level="debug") as workspace:
        workspace.call("file", "file.list", {})
    said = f"Error: cannot open the workspace {tmp_path}/nope: directory not found"
    for arguments in (["replay", str(log)], ["history"], ["show", "1"], ["undo"], ["call", "file.list"]):
        assert said in run(tmp_path / "nope", *arguments, code=2)
    assert run(log, "replay", str(log), code=2).endswith(
        f"Error: cannot open the workspace {log}: it is not a directory\n"
    )
    assert list(tmp_path.glob("nope")) == []


@pytest.mark.parametrize("limit", ["-3", "0"])
def test_history_limit_below_one_is_a_usage_error(done: Path, limit: str) -> None:
    assert f"{limit} is not in the range x>=1" in run(done, "history", "-n", limit, code=2)
    assert run(done, "history", "-n", str(10**30)).startswith("3  TIME")
