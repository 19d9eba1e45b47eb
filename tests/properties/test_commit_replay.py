"""Replays generated commits through every editing tool: the tree is the commit's, or the tool refused the call.

`HANDRAIL_LONG=500 pytest tests/properties/test_commit_replay.py` replays that many commits with each tool.
"""

import os
from pathlib import Path

import pytest
from support.commit_replay import EDITORS, Commit, Editor, Files, Made, commits, envelope, origin, plant

from handrail import Workspace
from handrail.dialects import NAMES, load
from handrail.model.effects import Effect

COMMITS = int(os.environ.get("HANDRAIL_LONG", "0")) or 40
LENGTH = 10
"""The commits in one history."""
MOST_REFUSED = {
    "codex.apply_patch_freeform": 0.15,
    "codex-2026.apply_patch": 0.15,
    "codex.apply_patch_json with swaps": 0.15,
    "openai.apply_patch": 0.15,
}
"""The share of commits that a tool may refuse; others may refuse none. The envelope has no line numbers, so that
hunks between repeated blocks are ambiguous, and it cannot write a file whose last line does not end. A unified diff
cannot rename a file over one that stays, as in git."""
NOT_REPLAYED = {"append_file", "create_directory", "NotebookEdit", "memory"}


@pytest.mark.parametrize("name", EDITORS)
def test_replayed_commit_gives_its_tree_or_is_refused(name: str, tmp_path: Path) -> None:
    editor, refused, made = EDITORS[name], 0, 0
    for seed in range(-(-COMMITS // LENGTH)):
        for commit in commits(seed, LENGTH):
            wanted = expressible(editor, commit)
            place = tmp_path / str(made)
            made += 1
            if not replayed(editor, wanted, place):
                refused += 1
    assert refused <= MOST_REFUSED.get(name, 0) * made, f"{refused} of {made} commits were refused"


def test_replayed_commits_hold_every_kind_of_rename() -> None:
    made = [commit for seed in range(COMMITS // LENGTH) for commit in commits(seed, LENGTH)]
    assert any(new not in commit.before for commit in made for new in commit.moves)
    assert any(new in commit.before and new not in commit.moves.values() for commit in made for new in commit.moves)
    assert any(commit.moves.get(old) == new for commit in made for new, old in commit.moves.items())
    assert sum("*** Move to: " in envelope(commit) for commit in made) > len(made) / 10


def test_every_editing_tool_is_replayed(tmp_path: Path) -> None:
    for dialect in NAMES:
        writing = Effect.CREATE | Effect.WRITE | Effect.DELETE
        tools = {tool.name for tool in load(dialect).tools.values() if tool.effects & writing} - NOT_REPLAYED
        named = {
            tool
            for name, editor in EDITORS.items()
            if editor.dialect == dialect
            for tool in tools_of(editor, tmp_path / name)
        }
        assert tools <= named, dialect


def tools_of(editor: Editor, place: Path) -> set[str]:
    """Return the tools that an editor uses, from the calls that it makes for one commit of each kind."""
    calls: list[Made] = []
    if editor.patch:
        calls.append(editor.patch(Commit({"a": (b"x\n", 0o644)}, {}), place))
    if editor.edit:
        calls += editor.edit("a", "x\n", "y\n")
    for way in (editor.write, editor.overwrite):
        if way:
            calls.append(way("a", "x"))
    if editor.delete:
        calls.append(editor.delete("a"))
    return {tool for tool, _ in calls}


def expressible(editor: Editor, commit: Commit) -> Commit:
    """Return the part of a commit that a tool can make: without deletions, modes or unfinished new files."""
    if editor.modes:
        return commit
    before, after, moves = commit if editor.moves else commit._replace(moves={})
    result: Files = {}
    for name in before.keys() | after.keys():
        old, new = origin(Commit(before, after, moves), name), after.get(name)
        if new is None:
            if old and not (editor.delete or editor.patch):
                result[name] = old
        elif old is None:
            data = new[0]
            result[name] = data if not editor.patch or data.endswith(b"\n") else data + b"\n", 0o644
        else:
            kept = not editor.replaces and not editable(editor, old[0].decode(), new[0].decode())
            result[name] = old[0] if kept else new[0], old[1]
    return Commit(before, result, moves)


def replayed(editor: Editor, commit: Commit, place: Path) -> bool:
    """Replay a commit in a new workspace. Return False if a call was refused, which then must have changed nothing."""
    root = place / "root"
    root.mkdir(parents=True)
    plant(root, commit.before)
    with Workspace(str(root), approve="auto", journal="off", durability="none", log_level="off") as workspace:
        for calls in made_by(editor, commit, place):
            state = tree(root)
            for tool, params in calls:
                result = workspace.call(editor.dialect, tool, absolute(editor, params, root))
                if not result.success:
                    assert len(calls) > 1 or tree(root) == state, "a refused call changed something"
                    return False
    assert tree(root) == commit.after, "the call succeeded with a wrong tree"
    return True


def made_by(editor: Editor, commit: Commit, place: Path) -> list[list[Made]]:
    """Return the calls that make a commit, in steps."""
    if editor.patch:
        return [[editor.patch(commit, place / "git")]] if commit.before != commit.after else []
    steps: list[list[Made]] = []
    for name in sorted(commit.before.keys() | commit.after.keys()):
        old, new = (files[name][0].decode() if name in files else None for files in (commit.before, commit.after))
        if new is None:
            assert editor.delete
            steps.append([editor.delete(name)])
        elif old is None:
            assert editor.write
            steps.append([editor.write(name, new)])
        elif old != new:
            steps.append(changes(editor, name, old, new))
    return steps


def changes(editor: Editor, name: str, old: str, new: str) -> list[Made]:
    """Return the calls that change one file: edits if the tool can make them, otherwise the whole file."""
    looks = [editor.read(name)] if editor.read else []
    if editor.edit and editable(editor, old, new):
        return [*looks, *editor.edit(name, old, new)]
    way = editor.overwrite or editor.write
    assert way
    return [*looks, way(name, new)]


def editable(editor: Editor, old: str, new: str) -> bool:
    """Return whether edits can make a change: none turns LF into CRLF or back, fills an empty file or empties one."""
    converts = "\n" in old and "\n" in new and ("\r\n" in old) != ("\r\n" in new)
    ended = editor.ends_last_line or old.endswith("\n") == new.endswith("\n")
    return bool(old and new and ended and not converts)


def absolute(editor: Editor, params: dict[str, object], root: Path) -> dict[str, object]:
    if not editor.absolute:
        return params
    return {key: f"{root}/{value}" if key in ("file_path", "path") else value for key, value in params.items()}


def tree(root: Path) -> Files:
    found = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mode & 0o777) for path in found}
