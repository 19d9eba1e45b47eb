"""Runs calls in parallel: no edit is lost, one create wins, and each reader sees a whole file."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults.crowd import as_processes, as_threads
from support.fault_injection import faults
from support.writer import commit

from handrail import Question, Workspace
from handrail.model.faults import AlreadyExists, Conflict, PathFault
from handrail.model.files import Put

Crowd = Callable[..., list[Any]]
CROWDS = pytest.mark.parametrize("crowd", [as_threads, as_processes])


def patch(workspace: Workspace, find: str, replace: str) -> str:
    edit = {"path": "file", "patches": [{"find": find, "replace": replace}]}
    error = workspace.call("file", "file.patch", edit).error
    return error.code if error else "ok"


def read_and_patch(workspace: Workspace, find: str, replace: str) -> str:
    """Patch as an agent does: read the file again if another process changed it."""
    while (answer := patch(workspace, find, replace)) == "stale_file":
        assert workspace.call("file", "file.read", {"path": "file"}).success
    return answer


def _edit_own_line(workspace: Workspace, number: int) -> list[str]:
    return [read_and_patch(workspace, f"<{number}:{turn}>", f"<{number}:{turn + 1}>") for turn in range(5)]


@CROWDS
def test_eight_parallel_edits_of_different_lines_all_land(root: Path, crowd: Crowd) -> None:
    (root / "file").write_text("".join(f"<{number}:0>\n" for number in range(8)))
    answers = crowd(str(root), _edit_own_line, 8)
    assert answers == [["ok"] * 5] * 8
    assert (root / "file").read_text() == "".join(f"<{number}:5>\n" for number in range(8))
    assert os.listdir(root) == ["file"]


def _replace_the_whole(workspace: Workspace, number: int) -> str:
    return patch(workspace, "END", f"{number:02}\nEND")


@CROWDS
def test_parallel_replaces_lose_no_edit(root: Path, crowd: Crowd) -> None:
    (root / "file").write_text("END")
    assert crowd(str(root), _replace_the_whole, 24, durability="none") == ["ok"] * 24
    assert sorted((root / "file").read_text().split()) == [*[f"{number:02}" for number in range(24)], "END"]


def _count_up(workspace: Workspace, number: int) -> int:
    """Count up in versions of the same size and time: only the inode and its times tell them apart."""
    done = 0
    while done < 25:
        output = workspace.call("file", "file.read", {"path": "file"}).output
        assert isinstance(output, dict)
        now = int(output["content"].split("\t")[1])
        done += patch(workspace, f"{now:06}", f"{now + 1:06}") == "ok"
    return done


@CROWDS
def test_counter_with_many_writers_loses_no_increment(root: Path, crowd: Crowd) -> None:
    (root / "file").write_text("000000\n")
    assert crowd(str(root), _count_up, 4, durability="none") == [25] * 4
    assert (root / "file").read_text() == "000100\n"


def _create(workspace: Workspace, number: int) -> str:
    changes: Any = [Put("new/file", b"%d" % number)]
    while True:
        try:
            commit(workspace._services.writer, changes)
        except Conflict:
            continue  # the router repeats the tool in this case
        except AlreadyExists:
            return "exists"
        return "won"


@CROWDS
def test_parallel_creates_have_one_winner(root: Path, crowd: Crowd) -> None:
    answers = crowd(str(root), _create, 16)
    assert sorted(answers) == ["exists"] * 15 + ["won"]
    assert (root / "new" / "file").read_text() == str(answers.index("won"))
    assert os.listdir(root / "new") == ["file"]


def _write(workspace: Workspace, number: int) -> str:
    error = workspace.call("file", "file.write", {"path": "new/file", "content": str(number) * 1000}).error
    return error.code if error else "ok"


@CROWDS
def test_parallel_writes_to_new_file_all_succeed_and_one_stays(root: Path, crowd: Crowd) -> None:
    assert crowd(str(root), _write, 16) == ["ok"] * 16
    assert (root / "new" / "file").read_text() in [str(number) * 1000 for number in range(16)]


def _write_or_read(workspace: Workspace, number: int) -> set[str]:
    seen = set()
    for turn in range(60):
        if number == 0:
            letter = "ab"[turn % 2]
            assert workspace.call("file", "file.write", {"path": "file", "content": letter * 300_000}).success
        else:
            data = workspace._services.reader.read("file").data.decode()
            seen.add(f"{data[0]}{len(data)}" if len(set(data)) == 1 else "torn")
    return seen


@CROWDS
def test_readers_never_see_torn_file(root: Path, crowd: Crowd) -> None:
    (root / "file").write_text("a" * 300_000)
    seen = set().union(*crowd(str(root), _write_or_read, 3, durability="none"))
    assert seen <= {"a300000", "b300000"}


def interrupted(root: Path, action: Callable[[], object]) -> Workspace:
    """Open a workspace that runs `action` before it answers its first question."""
    todo = [action]

    def answer(_: Question) -> bool:
        if todo:
            todo.pop()()
        return True

    return Workspace(str(root), approve="ask", approver=answer)


def test_outside_edit_between_read_and_write_is_kept(root: Path) -> None:
    (root / "file").write_text("one two\n")
    with interrupted(root, lambda: (root / "file").write_text("ONE two\n")) as workspace:
        assert patch(workspace, "two", "2") == "ok"
    assert (root / "file").read_text() == "ONE 2\n"


def test_outside_edit_of_same_words_makes_patch_fail(root: Path) -> None:
    (root / "file").write_text("one two\n")
    with interrupted(root, lambda: (root / "file").write_text("one 2 \n")) as workspace:
        assert patch(workspace, "two", "2") == "find_not_found"
    assert (root / "file").read_text() == "one 2 \n"


def test_file_deleted_during_edit_is_not_restored(root: Path) -> None:
    (root / "file").write_text("one\n")
    with interrupted(root, (root / "file").unlink) as workspace:
        assert patch(workspace, "one", "1") == "file_not_found"
    assert os.listdir(root) == []


def test_file_that_appears_during_create_is_not_overwritten(root: Path) -> None:
    with Workspace(str(root)) as workspace:
        targets = workspace._services.writer.targets([Put("file", b"ours")])
        (root / "file").write_text("theirs")
        with pytest.raises(Conflict):
            commit(workspace._services.writer, [Put("file", b"ours")], targets)
        with pytest.raises(AlreadyExists):
            workspace._services.writer.targets([Put("file", b"ours")])
    assert (root / "file").read_text() == "theirs"


def test_parent_directory_removed_before_write_is_created_again(root: Path) -> None:
    (root / "sub").mkdir()
    with interrupted(root, (root / "sub").rmdir) as workspace:
        assert workspace.call("file", "file.write", {"path": "sub/file", "content": "x"}).success
    assert (root / "sub" / "file").read_text() == "x"


def test_target_that_changes_after_approval_is_asked_about_again(root: Path) -> None:
    """What was approved is what is written: a link turned to another file is a new question."""
    for name in ("one", "two"):
        (root / name).write_text("old")
    (root / "link").symlink_to("one")
    asked = []

    def turn(question: Question) -> bool:
        asked.append(question.targets)
        if len(asked) == 1:
            (root / "link").unlink()
            (root / "link").symlink_to("two")
        return True

    with Workspace(str(root), approve="ask", approver=turn) as workspace:
        assert workspace.call("file", "file.write", {"path": "link", "content": "new"}).files_affected == ["two"]
    assert asked == [("one",), ("two",)]
    assert (root / "one").read_text() == "old"


@pytest.mark.parametrize("fails", [False, True])
def test_directory_renamed_during_write_keeps_whole_file(root: Path, *, fails: bool) -> None:
    """At every step: the file is the old one or the new one, in the directory's new place."""
    for at in range(1, 100):
        top = root / str(at)
        (top / "sub").mkdir(parents=True)
        (top / "sub" / "file").write_text("old")

        def move(name: str, real: Callable[..., Any], args: Any, options: Any, top: Path = top) -> Any:
            (top / "sub").rename(top / "moved")
            if fails:
                raise OSError(errno.EIO, "EIO")
            return real(*args, **options)

        with Workspace(str(root), approve="auto") as workspace, faults(at, move) as faulty:
            path = f"{at}/sub/file"
            base = workspace._services.reader.read(path)
            answer = _commit(workspace, Put(path, b"new", base))
        if not faulty.reached:
            return
        assert (top / "moved" / "file").read_text() == ("new" if answer else "old")
        assert os.listdir(top / "moved") == ["file"]


def _commit(workspace: Workspace, change: Put) -> bool:
    try:
        commit(workspace._services.writer, [change])
    except PathFault:
        return False
    return True


def test_file_replaced_by_directory_during_commit_is_a_conflict(root: Path) -> None:
    """Moving it aside instead of linking it must not move the directory of another process."""
    for at in range(1, 100):
        top = root / str(at)
        (top / "theirs").mkdir(parents=True)
        (top / "theirs" / "precious").write_text("precious")
        (top / "file").write_text("old")

        def exchange(name: str, real: Callable[..., Any], args: Any, options: Any, top: Path = top) -> Any:
            (top / "file").rename(top / "aside")
            (top / "theirs").rename(top / "file")
            return real(*args, **options)

        with Workspace(str(root), approve="auto") as workspace, faults(at, exchange) as faulty:
            done = _commit(workspace, Put(f"{at}/file", b"new", workspace._services.reader.read(f"{at}/file")))
        if not faulty.reached:
            return
        if done:  # the exchange came after the commit
            continue
        assert (top / "file" / "precious").read_text() == "precious"
        assert sorted(os.listdir(top)) == ["aside", "file"]


def test_concurrent_save_survives_commit(root: Path) -> None:
    """Editors save by renaming a new file over the old one; whichever of our steps that comes before, it stays."""
    for at in range(1, 100):
        (root / "file").write_text("old")

        def save(_: str, real: Callable[..., Any], args: Any, options: Any) -> Any:
            (root / "theirs").write_text("theirs")
            (root / "theirs").rename(root / "file")
            return real(*args, **options)

        with Workspace(str(root), approve="auto") as workspace, faults(at, save) as faulty:
            done = _commit(workspace, Put("file", b"new", workspace._services.reader.read("file")))
        exchanges = [number for number, name in enumerate(faulty.calls, 1) if name == "exchange_names"]
        if not faulty.reached:
            return
        assert (root / "file").read_text() == "theirs", at
        assert done == bool(exchanges and at > exchanges[0]), at
        assert os.listdir(root) == ["file"]


def test_concurrent_save_survives_without_rename_exchange(root: Path) -> None:
    (root / "file").write_text("old")

    def save(name: str, real: Callable[..., Any], args: Any, options: Any) -> Any:
        if name == "link":
            (root / "theirs").write_text("theirs")
            (root / "theirs").rename(root / "file")
        return real(*args, **options)

    with Workspace(str(root), approve="auto") as workspace:
        change = Put("file", b"new", workspace._services.reader.read("file"))
        with faults(1, save, lasting=True, missing=("exchange_names",)):
            assert not _commit(workspace, change)
    assert (root / "file").read_text() == "theirs"
    assert os.listdir(root) == ["file"]


@pytest.mark.parametrize("name", ["theirs", "in"])
def test_file_added_to_directory_during_its_undo_is_kept(root: Path, name: str) -> None:
    """Whichever of our steps it comes before: it stays where it was put, and nothing is undone."""
    place = root / "place"
    for at in range(1, 100):
        with Workspace(str(root), approve="auto", sandbox="off") as workspace:
            for command in ("rm -rf place; echo file > place", "rm place; mkdir place; echo in > place/in"):
                assert workspace.call("codex", "shell", {"command": command}).success
            put = False

            def intrude(_: str, real: Callable[..., Any], args: Any, options: Any) -> Any:
                nonlocal put
                put = place.is_dir()
                if put:
                    (place / name).write_text("theirs")
                return real(*args, **options)

            with faults(at, intrude) as faulty:
                done = workspace.history().undo().done
        if not faulty.reached:
            return
        assert done is not put, at
        assert (place / name if put else place).read_text() == ("theirs" if put else "file\n"), at
        assert os.listdir(root) == ["place"], at


def _open_and_close(workspace: Workspace, number: int) -> list[bool]:
    root, answers = workspace.root, []
    for turn in range(10):
        with Workspace(root, approve="auto", durability="none") as own:
            answers.append(own.call("file", "file.write", {"path": f"{number}/{turn}", "content": "x"}).success)
    return answers


@CROWDS
def test_workspaces_opened_and_closed_in_parallel_do_not_interfere(root: Path, crowd: Crowd) -> None:
    assert crowd(str(root), _open_and_close, 6) == [[True] * 10] * 6
