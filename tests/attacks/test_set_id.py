"""Checks that a program loses its set-id bits and capabilities when its content changes, by any user and any tool."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.ordinary_user import as_ordinary_user
from support.writer import commit

from handrail import Workspace
from handrail.model.files import Change, Node, Put, Restore

AFTER_A_WRITE = [(0o4755, 0o755), (0o2755, 0o755), (0o6711, 0o711), (0o4644, 0o644), (0o2644, 0o2644), (0o755, 0o755)]
"""Pairs: the mode before, and the mode that the kernel leaves after an ordinary user writes to the file."""
CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")


def program(root: str, mode: int, content: str = "old\n") -> str:
    path = f"{root}/tool"
    Path(path).write_text(content)
    os.chmod(path, mode)
    if stat.S_IMODE(os.stat(path).st_mode) != mode:
        pytest.skip("the file system does not support this mode")
    return path


def mode_of(root: str) -> int:
    return stat.S_IMODE(os.stat(f"{root}/tool").st_mode)


def call(workspace: Workspace, dialect: str, tool: str, params: dict[str, Any]) -> None:
    result = workspace.call(dialect, tool, params)
    assert result.success, result


def by_writing(workspace: Workspace) -> None:
    call(workspace, "file", "file.write", {"path": "tool", "content": "new\n"})


def by_patching(workspace: Workspace) -> None:
    call(workspace, "file", "file.patch", {"path": "tool", "patches": [{"find": "old", "replace": "new"}]})


def by_a_diff(workspace: Workspace) -> None:
    diff = "--- a/tool\n+++ b/tool\n@@ -1 +1 @@\n-old\n+new\n"
    call(workspace, "codex", "apply_patch_json", {"patch": diff})


def by_an_envelope(workspace: Workspace) -> None:
    patch = "*** Begin Patch\n*** Update File: tool\n@@\n-old\n+new\n*** End Patch\n"
    call(workspace, "codex", "apply_patch_json", {"patch": patch})


WAYS = [by_writing, by_patching, by_a_diff, by_an_envelope]


def modes_after(root: str, way: Callable[[Workspace], None]) -> list[tuple[int, int]]:
    found = []
    for before, _ in AFTER_A_WRITE:
        path = program(root, before)
        with Workspace(root, approve="auto") as workspace:
            way(workspace)
        assert Path(path).read_text() == "new\n"
        found.append((before, mode_of(root)))
    return found


def undone_and_redone(root: str) -> list[int]:
    """Return the modes after an edit, its undo, its redo, and the undo of a deletion."""
    program(root, 0o6755)
    with Workspace(root, approve="auto") as workspace:
        by_writing(workspace)
        found = [mode_of(root)]
        for step in (workspace.history().undo, workspace.history().redo):
            step()
            found.append(mode_of(root))
    program(root, 0o6755)
    with Workspace(root, approve="auto") as workspace:
        call(workspace, "file", "file.delete", {"path": "tool"})
        workspace.history().undo()
    return [*found, mode_of(root)]


def kernel_drops(root: str) -> list[tuple[int, int]]:
    found = []
    for before, _ in AFTER_A_WRITE:
        with open(program(root, before), "r+") as file:
            file.write("new\n")
        found.append((before, mode_of(root)))
    return found


def test_mode_table_matches_kernel() -> None:
    assert as_ordinary_user(kernel_drops) == AFTER_A_WRITE


@pytest.mark.parametrize("way", WAYS)
def test_set_id_bits_are_dropped_when_content_changes(root: Path, way: Callable[[Workspace], None]) -> None:
    assert modes_after(str(root), way) == AFTER_A_WRITE


def every_way(root: str) -> list[list[tuple[int, int]]]:
    return [modes_after(root, way) for way in WAYS]


def test_set_id_bits_are_dropped_for_ordinary_user_too() -> None:
    assert as_ordinary_user(every_way) == [AFTER_A_WRITE] * len(WAYS)


def test_undo_and_redo_do_not_restore_set_id_bits(root: Path) -> None:
    assert undone_and_redone(str(root)) == [0o755] * 4


def test_undo_by_ordinary_user_does_not_restore_set_id_bits() -> None:
    assert as_ordinary_user(undone_and_redone) == [0o755] * 4


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o6755])
def test_set_id_bits_stay_when_content_stays(workspace: Workspace, root: Path, mode: int) -> None:
    program(str(root), mode)
    base = workspace._services.reader.read("tool")
    commit(workspace._services.writer, [Put("tool", base.data, base, mode=mode & ~0o005)], ["tool"])
    assert mode_of(str(root)) == mode & ~0o005


@pytest.mark.parametrize(("before", "wanted"), [(0o755, 0o6755), (0o2644, 0o2755)])
@pytest.mark.parametrize("kind", [Put, Restore])
def test_changes_never_add_set_id_bits(
    workspace: Workspace, root: Path, kind: type[Put | Restore], before: int, wanted: int
) -> None:
    """Add no bit by a new mode, nor by making a file executable whose set-group-id bit had no effect before."""
    program(str(root), before)
    reader = workspace._services.reader
    change: Change = Restore("tool", reader.node("tool"), Node("file", b"old\n", wanted))
    if kind is Put:
        change = Put("tool", b"old\n", reader.read("tool"), mode=wanted)
    commit(workspace._services.writer, [change], ["tool"])
    assert mode_of(str(root)) == 0o755


def test_restored_directory_contains_no_set_id_file(workspace: Workspace, root: Path) -> None:
    program(str(root), 0o755)
    tree = Node("directory", b"", 0o755, inside=(("inner", Node("file", b"x", 0o6755)),))
    restore: list[Change] = [Restore("tool", workspace._services.reader.node("tool"), tree)]
    commit(workspace._services.writer, restore, ["tool"])
    assert stat.S_IMODE((root / "tool/inner").stat().st_mode) == 0o755


def test_question_shows_removal_of_set_id_bit(root: Path) -> None:
    program(str(root), 0o4755)
    shown: list[str] = []

    def ask(question: Any) -> bool:
        from handrail.ops.text.change_preview import change_diff

        shown.extend(change_diff(change) for change in question.changes)
        return True

    with Workspace(str(root), approver=ask) as workspace:
        by_writing(workspace)
    assert "old mode 104755\nnew mode 100755\n" in shown[0]


def test_file_capabilities_are_dropped_when_content_changes(root: Path, workspace: Workspace) -> None:
    path = program(str(root), 0o755)
    try:
        os.setxattr(path, "security.capability", CAPABILITY)
    except OSError as error:
        pytest.skip(f"no file capabilities here: {error}")
    base = workspace._services.reader.read("tool")
    commit(workspace._services.writer, [Put("tool", base.data, base, mode=0o750)], ["tool"])
    assert os.listxattr(path) == ["security.capability"]
    by_writing(workspace)
    assert os.listxattr(path) == []
