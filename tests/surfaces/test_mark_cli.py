"""Tests marks at the command line: set, listed, and taken back to."""

import json
from pathlib import Path

from support.command_line import Done, in_process


def run(root: Path, *words: str) -> Done:
    return in_process(words[0], *words[1:], "--root", str(root))


def write(root: Path, name: str) -> None:
    assert run(root, "call", "file.write", f"path={name}", "content=x", "--approve", "auto").returncode == 0


def test_undo_to_mark_at_the_command_line(root: Path) -> None:
    write(root, "a.txt")
    assert run(root, "mark", "before lunch").stdout == "Set the mark before lunch as entry 2\n"
    write(root, "b.txt")
    write(root, "c.txt")
    done = run(root, "undo", "--to", "before lunch", "--approve", "auto", "--dry-run")
    assert "Would undo 4, 3: 2 changes" in done.stdout
    done = run(root, "undo", "--to", "before lunch", "--approve", "auto")
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "Undid 4, 3: 2 changes")
    assert [path.name for path in root.iterdir()] == ["a.txt"]


def test_history_lists_marks(root: Path) -> None:
    write(root, "a.txt")
    assert run(root, "mark", "turn 1").returncode == 0
    line = run(root, "history").stdout.splitlines()[0]
    assert line.endswith("  mark  turn 1")
    first = json.loads(run(root, "history", "--json").stdout)["entries"][0]
    assert (first["kind"], first["mark"], first["undoable"], first["files"]) == ("mark", "turn 1", False, [])


def test_mark_as_json_names_its_entry(root: Path) -> None:
    assert json.loads(run(root, "mark", " x ", "--json").stdout) == {"mark": "x", "entry": 1}


def test_mark_with_a_wrong_name_is_an_error(root: Path) -> None:
    done = run(root, "mark", "a\nb")
    assert (done.returncode, "needs a name" in done.stderr) == (1, True)


def test_undo_to_unknown_mark_is_an_error(root: Path) -> None:
    assert run(root, "mark", "turn 12").returncode == 0
    done = run(root, "undo", "--to", "turn 1")
    assert (done.returncode, "did you mean turn 12" in done.stderr) == (1, True)


def test_undo_to_mark_excludes_other_choices(root: Path) -> None:
    assert run(root, "undo", "1", "--to", "x").returncode == 2
    assert run(root, "undo", "--since", "1", "--to", "x").returncode == 2
