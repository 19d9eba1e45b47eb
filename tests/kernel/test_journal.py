"""Checks that the journal records every commit, survives damage, and stops no change unless it is required."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from support.fault_injection import failing, faults

from handrail import Workspace
from handrail.kernel.host.state_dir import State
from handrail.kernel.journal.blobs import Blobs, fingerprint
from handrail.kernel.journal.journal import (
    ChangedPath,
    Damage,
    Journal,
    JournalEntry,
    KeptNode,
    Origin,
    encode,
    journal_of,
)
from handrail.kernel.journal.prune import Pruned, prune


def entries(workspace: Workspace) -> list[JournalEntry]:
    return [each for each in workspace._services.journal.backwards() if isinstance(each, JournalEntry)][::-1]


def write(workspace: Workspace, path: str, content: str) -> None:
    assert workspace.call("file", "file.write", {"path": path, "content": content}).success


def blob(text: str) -> str:
    return fingerprint(text.encode())


def test_journal_records_origin_approval_and_changes_of_commit(workspace: Workspace, root: Path) -> None:
    (root / "old.txt").write_text("one\ntwo\n")
    os.chmod(root / "old.txt", 0o600)
    workspace.tools("file").call("file.write", {"path": "old.txt", "content": "one\n2\nthree\n"}, call_id="seven")
    write(workspace, "new/deep.txt", "x\n")
    assert workspace.call("file", "file.delete", {"path": "old.txt"}).success
    one, two, three = entries(workspace)
    session = workspace.tools("file")._session.id
    assert one.origin == Origin("commit", session, 1, "seven", "file", "file.write", "policy auto")
    before, after = KeptNode("file", blob("one\ntwo\n"), 0o600), KeptNode("file", blob("one\n2\nthree\n"), 0o600)
    assert one.files == (ChangedPath("old.txt", before, after, (2, 1)),)
    made = KeptNode("file", blob("x\n"), 0o644)
    assert two.files == (
        ChangedPath("new", None, KeptNode("directory")),
        ChangedPath("new/deep.txt", None, made, (1, 0)),
    )
    assert three.files == (ChangedPath("old.txt", after, None, (0, 3)),)
    assert [each.n for each in (one, two, three)] == [1, 2, 3]


def test_refused_or_empty_change_is_not_recorded(root: Path) -> None:
    (root / "a").write_text("a")
    with Workspace(str(root), approve="never") as workspace:
        assert not workspace.call("file", "file.write", {"path": "a", "content": "b"}).success
    with Workspace(str(root), approve="auto") as workspace:
        write(workspace, "a", "a")
        assert entries(workspace) == []


def test_deleted_link_is_recorded_with_its_target(workspace: Workspace, root: Path) -> None:
    (root / "link").symlink_to("nowhere")
    assert workspace.call("file", "file.delete", {"path": "link"}).success
    assert entries(workspace)[0].files == (ChangedPath("link", KeptNode("link", "nowhere", 0o777), None),)


def test_file_too_large_to_keep_is_recorded_without_content(root: Path) -> None:
    (root / "large").write_bytes(b"x" * 100)
    with Workspace(str(root), approve="auto", limits={"edit_bytes": 10}) as workspace:
        assert workspace.call("file", "file.delete", {"path": "large"}).success
        assert entries(workspace)[0].files == (ChangedPath("large", KeptNode("file", "", 0o644), None),)


def test_undecodable_name_is_recorded_unchanged(workspace: Workspace, root: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (root / name).write_text("x")
    assert workspace.call("file", "file.delete", {"path": '"caf\\351"'}).success
    assert entries(workspace)[0].files[0].path == name


def test_two_workspaces_number_their_entries_in_one_sequence(workspace: Workspace, root: Path) -> None:
    with Workspace(str(root), approve="auto") as other:
        for turn in range(3):
            write(workspace, "a", f"a{turn}")
            write(other, "b", f"b{turn}")
        assert [(each.n, each.files[0].path) for each in entries(workspace)] == [
            (n, "ab"[(n - 1) % 2]) for n in range(1, 7)
        ]


# ── damage ──


def filled(path: Path, count: int = 400) -> Journal:
    journal = Journal(str(path / "journal.jsonl"), Blobs(str(path / "blobs"), sync=False))
    for n in range(1, count + 1):
        files = [ChangedPath(f"file{n}", None, KeptNode("file", "0" * 40, 0o644), (1, 0))] * (n % 7)
        journal.append(encode(JournalEntry(n, float(n), Origin(session=f"s{n}"), tuple(files))))
    return journal


def numbers(journal: Journal) -> list[int]:
    return [each.n for each in journal.backwards() if isinstance(each, JournalEntry)]


def test_every_entry_is_found_by_its_number(tmp_path: Path) -> None:
    journal = filled(tmp_path, 2000)
    assert numbers(journal) == list(range(2000, 0, -1))
    for n in (1, 2, 3, 777, 1000, 1998, 1999, 2000):
        found = journal.entry(n)
        assert found is not None
        assert found.origin.session == f"s{n}"
    assert journal.entry(0) is journal.entry(2001) is None
    assert Journal(str(tmp_path / "none"), journal.blobs).entry(1) is None


@pytest.mark.parametrize("at", [0, 1, 5000, 20_000, -2, -30])
def test_flipped_bit_damages_one_entry_only(tmp_path: Path, at: int) -> None:
    journal = filled(tmp_path)
    path = tmp_path / "journal.jsonl"
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    line = data[: at % len(data)].count(b"\n") + 1
    path.write_bytes(data)
    assert numbers(journal) == [n for n in range(400, 0, -1) if n != line]
    (damage,) = [each for each in journal.backwards() if isinstance(each, Damage)]
    assert damage.at <= at % len(data) < damage.at + damage.size + 1
    assert journal.entry(line) is None
    assert all(journal.entry(n) for n in range(1, 401) if n != line)
    journal.append(journal.compose(Origin(), ()))
    assert numbers(journal)[0] == 401


def test_truncated_journal_keeps_whole_entries_and_accepts_new_ones(tmp_path: Path) -> None:
    journal = filled(tmp_path)
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    for cut in (len(whole) - 1, len(whole) - 10, len(whole) // 2, 1):
        path.write_bytes(whole[:cut])
        kept = whole[:cut].count(b"\n") + (cut == len(whole) - 1)
        assert numbers(journal) == list(range(kept, 0, -1))
        journal.append(journal.compose(Origin(), ()))
        assert numbers(journal)[0] == kept + 1
        damaged = [each for each in journal.backwards() if isinstance(each, Damage)]
        assert len(damaged) == (0 if cut in (1, len(whole) - 1) else 1)  # one byte is the start of any line


def test_line_cut_short_by_kill_is_replaced_by_whole_line(tmp_path: Path) -> None:
    journal = filled(tmp_path, 3)
    line = journal.compose(Origin(tool="last"), ())
    path = tmp_path / "journal.jsonl"
    before = path.read_bytes()
    for cut in range(len(line)):
        path.write_bytes(before + line[:cut])
        journal.ensure(line)
        journal.ensure(line)
        assert path.read_bytes() == before + line, cut


def test_journal_line_that_is_no_entry_is_damage(tmp_path: Path) -> None:
    journal = filled(tmp_path, 2)
    with open(tmp_path / "journal.jsonl", "ab") as file:
        file.write(b"\n\nnot json\n{}\n")
    assert [type(each) for each in journal.backwards()] == [Damage, Damage, JournalEntry, JournalEntry]


# ── failures ──


def test_unwritable_journal_is_a_warning_and_change_succeeds(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        os.mkdir(f"{workspace._services.state.path}/journal.jsonl")
        result = workspace.call("file", "file.write", {"path": "a", "content": "a"})
    assert result.success
    assert result.warnings == ["this change was not recorded and cannot be undone: Is a directory"]
    assert (root / "a").read_text() == "a"


def test_unwritable_blobs_are_a_warning_and_change_succeeds(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        Path(workspace._services.state.path, "blobs").write_text("in the way")
        result = workspace.call("file", "file.write", {"path": "a", "content": "a"})
        assert result.success
        assert result.warnings == ["this change was not recorded and cannot be undone: Not a directory"]
        os.unlink(f"{workspace._services.state.path}/blobs")
        assert workspace.call("file", "file.write", {"path": "a", "content": "b"}).warnings == []


def test_required_journal_that_is_unwritable_stops_changes(root: Path) -> None:
    with Workspace(str(root), approve="auto", journal="required", sandbox="off") as workspace:
        Path(workspace._services.state.path, "blobs").write_text("in the way")
        result = workspace.call("file", "file.write", {"path": "a", "content": "a"})
        assert result.error is not None
        assert result.error.message == "Cannot write 'a': cannot write the required journal: Not a directory"
        (root / "b").write_text("b")
        command = workspace.call("codex", "shell", {"command": "touch c"})
        assert command.error is not None
        assert command.error.code == "write_failed"
    assert os.listdir(root) == ["b"]


def test_required_journal_records_missing_entry_before_next_change(root: Path) -> None:
    with Workspace(str(root), approve="auto", journal="required") as workspace:
        journal = f"{workspace._services.state.path}/journal.jsonl"
        write(workspace, "a", "a")

        def away(name: str, real: Any, args: Any, options: Any) -> Any:
            os.rename(journal, f"{journal}.kept")
            os.mkdir(journal)
            return real(*args, **options)

        with faults(0, failing(errno.EIO)) as counting:
            write(workspace, "a", "b")
        # At this call the change is published, but not yet in the journal.
        done = max(n for n, name in enumerate(counting.calls, 1) if name == "exchange_names")
        with faults(done, away):
            write(workspace, "a", "c")
        assert not workspace.call("file", "file.write", {"path": "b", "content": "b"}).success
        assert os.listdir(root) == ["a"]
        os.rmdir(journal)
        os.rename(f"{journal}.kept", journal)
        write(workspace, "b", "b")
        assert [each.files[0].path for each in entries(workspace)] == ["a", "a", "a", "b"]


def test_journal_that_is_off_records_nothing(root: Path) -> None:
    with Workspace(str(root), approve="auto", journal="off", sandbox="off") as workspace:
        write(workspace, "a", "a")
        assert workspace.call("codex", "shell", {"command": "touch b"}).files_affected == []
        assert not os.path.exists(f"{workspace._services.state.path}/journal.jsonl")


# ── pruning ──


def test_prune_removes_oldest_entries_and_their_blobs(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.kernel.journal.prune._YOUNG_SECONDS", -10)
    with Workspace(str(root), approve="auto") as workspace:
        for turn in range(6):
            write(workspace, "a", f"{turn}" * 1000)
        journal, state = workspace._services.journal, workspace._services.state
        assert prune(state, journal, days=1, most_bytes=10**9) == Pruned(0, 0, 0)
        assert {each[3] for each in journal.blobs.listed()} == {True}
        size = max(each[1] for each in journal.blobs.listed())
        gone = prune(state, journal, days=1, most_bytes=3 * size)
        assert (gone.entries, gone.blobs) == (4, 3)
        assert [each.n for each in entries(workspace)] == [5, 6]
        write(workspace, "a", "more")
        assert [each.n for each in entries(workspace)] == [5, 6, 7]
        assert prune(state, journal, days=0, most_bytes=10**9).entries == 2
        assert [each.n for each in entries(workspace)] == [7]
        assert workspace.history().undo().done
    assert (root / "a").read_text() == "5" * 1000


def test_workspace_prunes_journal_once_a_day(root: Path) -> None:
    with Workspace(str(root), approve="auto", limits={"journal_days": 0}) as workspace:
        write(workspace, "a", "a")
        write(workspace, "a", "b")
        state = workspace._services.state
    assert numbers(journal_of(state)) == [2]
    with Workspace(str(root), approve="auto", limits={"journal_days": 0}) as workspace:
        write(workspace, "a", "c")
    assert numbers(journal_of(state)) == [3, 2]
    os.utime(journal_of(state).pruned, (0, 0))
    with Workspace(str(root), approve="auto", limits={"journal_days": 0}):
        pass
    assert numbers(journal_of(State(str(root)))) == [3]
