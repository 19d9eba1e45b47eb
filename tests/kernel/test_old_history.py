"""Checks that a history with one file for each content, as earlier versions wrote it, is read and moved into packs.

`goldens/history_of_files` is such a history: seven entries by `file.write`, a command and `file.delete`.
"""

import os
import shutil
from pathlib import Path

import pytest

from handrail import Workspace
from handrail.kernel.host.state_dir import State
from handrail.kernel.journal.blobs import BlobLost
from handrail.kernel.journal.journal import journal_of
from handrail.kernel.journal.prune import prune
from handrail.kernel.journal.snapshot import copy_history

GOLDEN = Path(__file__).parent.parent / "goldens" / "history_of_files"
FOREVER = {"journal_days": 100_000}


@pytest.fixture
def old(root: Path) -> State:
    """Give the workspace the old history, and the files as they were then."""
    state = State.of(str(root))
    shutil.copytree(GOLDEN / "state", state.path, dirs_exist_ok=True)
    shutil.copytree(GOLDEN / "root", root, dirs_exist_ok=True)
    return state


def opened(root: Path) -> Workspace:
    return Workspace(str(root), approve="auto", sandbox="off", limits=FOREVER)


def old_files(state: State) -> list[Path]:
    return [path for path in Path(state.path, "blobs").rglob("?/*") if path.is_file()]


def undo_all(workspace: Workspace) -> dict[str, str]:
    """Undo entry after entry, and return the content of the notes after each undo."""
    seen = {}
    for entry in list(workspace.history().entries(100)):
        assert workspace.history().undo(entry.n).done, entry
        notes = Path(workspace.root, "notes.txt")
        seen[entry.tool + str(entry.n)] = notes.read_text()[:9] if notes.exists() else ""
    return seen


UNDONE = {
    "file.delete7": "version 3",
    "shell6": "version 3",
    "file.write5": "version 3",
    "file.write4": "version 2",
    "file.write3": "version 1",
    "file.write2": "version 0",
    "file.write1": "",
}


def test_old_history_is_undone_without_conversion(old: State, root: Path) -> None:
    with opened(root) as workspace:
        assert undo_all(workspace) == UNDONE
    assert os.listdir(root) == []


def test_pruning_moves_old_contents_into_one_pack(old: State, root: Path) -> None:
    journal = journal_of(old)
    assert len(old_files(old)) == 7
    assert prune(old, journal, days=100_000, most_bytes=10**9) == (0, 0, 0)
    assert old_files(old) == []
    assert len(list(Path(old.path, "blobs").iterdir())) == 2
    with opened(root) as workspace:
        assert undo_all(workspace) == UNDONE
    assert os.listdir(root) == []


def test_old_content_that_nothing_names_is_removed(old: State) -> None:
    journal = journal_of(old)
    lost = Path(old.path, "blobs", "0", "1" * 63)
    lost.parent.mkdir()
    lost.write_text("not named")
    os.utime(lost, (0, 0))
    assert prune(old, journal, days=100_000, most_bytes=10**9) == (0, 1, 9)
    assert not journal.blobs.has("0" + "1" * 63)


def test_damaged_old_content_is_never_returned(old: State) -> None:
    for path in old_files(old):
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        name = path.parent.name + path.name.removesuffix(".z")
        for convert in (False, True):
            blobs = journal_of(old).blobs
            if convert:
                blobs.tidy()
            with pytest.raises(BlobLost, match="damaged" if not convert else "missing"):
                blobs.get(name)
            shutil.copytree(GOLDEN / "state" / "blobs", Path(old.path, "blobs"), dirs_exist_ok=True)
            path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        shutil.rmtree(Path(old.path, "blobs"))
        shutil.copytree(GOLDEN / "state" / "blobs", Path(old.path, "blobs"))


# ── copies ──


def test_copied_history_and_original_go_on_independently(old: State, root: Path, tmp_path: Path) -> None:
    with opened(root) as workspace:
        assert workspace.call("file", "file.write", {"path": "new.txt", "content": "before\n"}).success
        journal = workspace._services.journal
        journal.blobs.put(b"x" * 10)  # holds the pack again
        there = tmp_path / "fork"
        shutil.copytree(root, there)
        copy = State.of(str(there))
        copy_history(old, journal, copy.path)
        for path, text in ((root, "original\n"), (there, "copy\n")):
            with opened(path) as each:
                assert each.call("file", "file.write", {"path": "new.txt", "content": text}).success
        assert prune(copy, journal_of(copy), days=0, most_bytes=0).entries == 8
        assert workspace.history().undo().done
        assert (root / "new.txt").read_text() == "before\n"
        assert workspace.history().undo(8).done
    with opened(there) as each:
        assert each.history().undo().done
    assert (there / "new.txt").read_text() == "before\n"
    assert not (root / "new.txt").exists()


def test_copied_history_shares_packs_of_no_writer(root: Path, tmp_path: Path) -> None:
    with opened(root) as workspace:
        assert workspace.call("file", "file.write", {"path": "a", "content": "a"}).success
    state = State.of(str(root))
    copy_history(state, journal_of(state), str(tmp_path))
    (pack,) = (tmp_path / "blobs").glob("*.pack")
    assert os.stat(pack).st_nlink == 2
    with opened(root) as workspace:
        assert workspace.call("file", "file.write", {"path": "a", "content": "b"}).success
    assert len(list(Path(state.path, "blobs").glob("*.pack"))) == 2
    assert pack.stat().st_size == Path(state.path, "blobs", pack.name).stat().st_size
