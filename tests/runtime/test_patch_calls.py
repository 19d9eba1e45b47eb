"""Tests patches as whole calls, through the boundary, the approval and the writer."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.trap_arena import Arena, build
from support.tree import snapshot

from handrail import Workspace
from handrail.dialects import load
from handrail.model import faults
from handrail.model.approval import Question
from handrail.ops.text.change_preview import change_diff
from handrail.tools.messages import ToolError, render
from handrail.tools.tool import ToolResult

GOLDENS = Path(__file__).parent.parent / "goldens" / "patch"
FOLDERS = [folder for form in ("freeform", "unified") for folder in sorted((GOLDENS / form).iterdir())]
TWO_FILES = (
    "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n"
    "--- a/d/b.txt\n+++ b/d/b.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
    "--- /dev/null\n+++ b/new/c.txt\n@@ -0,0 +1 @@\n+c\n"
)


def envelope(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])


def patch(workspace: Workspace, text: str, tool: str = "apply_patch_json") -> ToolResult:
    return workspace.call("codex", tool, {"patch": text})


@pytest.fixture
def two_files(root: Path) -> Path:
    (root / "d").mkdir()
    (root / "a.txt").write_text("one\n")
    (root / "d" / "b.txt").write_text("one\ntwo\n")
    return root


# ── the goldens ──


@pytest.mark.parametrize("golden", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_patch_golden_holds_through_router(root: Path, golden: Path) -> None:
    assert_golden_holds(golden, root, "apply_patch_json")


@pytest.mark.parametrize("golden", ["freeform/001-add-file", "unified/001-seed-example"])
def test_patch_golden_of_each_form_holds_in_freeform_tool(root: Path, golden: str) -> None:
    assert_golden_holds(GOLDENS / golden, root, "apply_patch_freeform")


def assert_golden_holds(golden: Path, root: Path, tool: str) -> None:
    answer = json.loads((golden / "answer.json").read_bytes())
    text = (golden / "patch.txt").read_bytes().decode(errors="surrogateescape")
    if not text.isprintable() and any("\ud800" <= char <= "\udfff" for char in text):
        pytest.skip("a patch that is not Unicode text cannot be a parameter")
    copy_tree(golden / "input", root, answer.get("executable_before", []))
    before = snapshot(root)
    with Workspace(str(root), approve="auto", durability="none") as workspace:
        result = patch(workspace, text, tool)
    if "fault" in answer:
        assert result.error == worded(answer, tool)
        assert snapshot(root) == before
        return
    assert result.success, result.output
    files = {name: what for name, what in snapshot(root).items() if what[0] == "file"}
    assert {name: what[2] for name, what in files.items()} == contents(golden / "expected")
    executable = sorted(name for name, what in files.items() if what[1] & 0o111)
    assert executable == sorted(answer.get("executable_after", []))


def worded(answer: dict[str, Any], tool: str) -> ToolError:
    """Return the error that the dialect gives for the fault of a golden."""
    kind = getattr(faults, answer["fault"])
    fault = kind(**{name: answer["facts"][name] for name in kind.fact_names})
    return render(load("codex").tables, tool, fault, {})


def contents(top: Path) -> dict[str, bytes]:
    return {name: what[2] for name, what in snapshot(top).items() if what[0] == "file"} if top.exists() else {}


def copy_tree(source: Path, root: Path, executable: list[str]) -> None:
    if source.exists():
        shutil.copytree(source, root, dirs_exist_ok=True)
    for name, what in snapshot(root).items():
        if what[0] == "file":
            (root / name).chmod(0o755 if name in executable else 0o644)


# ── one question, all or nothing ──


class Asked:
    """Runs `meanwhile`, then gives a fixed answer; keeps the questions."""

    def __init__(self, answer: bool = True, meanwhile: Callable[[int], None] = lambda _: None) -> None:
        self.answer, self.meanwhile = answer, meanwhile
        self.questions: list[Question] = []

    def __call__(self, question: Question) -> bool:
        self.questions.append(question)
        self.meanwhile(len(self.questions))
        return self.answer


def test_patch_of_three_files_asks_once_with_whole_diff(two_files: Path) -> None:
    asked = Asked()
    with Workspace(str(two_files), approver=asked) as workspace:
        result = patch(workspace, TWO_FILES)
    assert result.success
    (question,) = asked.questions
    assert question.targets == ("a.txt", "d/b.txt", "new/c.txt")
    assert "".join(map(change_diff, question.changes)) == (
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n"
        "diff --git a/d/b.txt b/d/b.txt\n--- a/d/b.txt\n+++ b/d/b.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"
        "diff --git a/new/c.txt b/new/c.txt\nnew file mode 100644\n--- /dev/null\n+++ b/new/c.txt\n@@ -0,0 +1 @@\n+c\n"
    )


def test_patch_denied_leaves_tree_unchanged(two_files: Path) -> None:
    before = snapshot(two_files, precise=True)
    with Workspace(str(two_files), approver=Asked(answer=False)) as workspace:
        result = patch(workspace, TWO_FILES)
    assert result.error is not None
    assert (result.error.code, result.files_affected) == ("approval_denied", [])
    assert snapshot(two_files, precise=True) == before


def test_patch_that_does_not_fit_asks_nothing(two_files: Path) -> None:
    asked = Asked()
    with Workspace(str(two_files), approver=asked) as workspace:
        assert not patch(workspace, TWO_FILES + "--- a/no\n+++ b/no\n@@ -1 +1 @@\n-x\n+y\n").success
    assert asked.questions == []


def test_patch_second_file_unwritable_leaves_first_unchanged(two_files: Path) -> None:
    """Replace the directory of the second file by a file during the question."""

    def meanwhile(_: int) -> None:
        shutil.rmtree(two_files / "d", ignore_errors=True)
        (two_files / "d").write_text("a file now")

    with Workspace(str(two_files), approver=Asked(meanwhile=meanwhile)) as workspace:
        result = patch(workspace, TWO_FILES)
    assert result.error is not None
    assert result.error.code == "not_a_directory"
    assert sorted(snapshot(two_files)) == ["a.txt", "d"]
    assert (two_files / "a.txt").read_text() == "one\n"


def test_patch_concurrent_edit_is_kept_and_asked_again(two_files: Path) -> None:
    def meanwhile(count: int) -> None:
        if count == 1:
            (two_files / "d" / "b.txt").write_text("one\ntwo\nthree\n")

    asked = Asked(meanwhile=meanwhile)
    with Workspace(str(two_files), approver=asked) as workspace:
        assert patch(workspace, TWO_FILES).success
    assert len(asked.questions) == 2
    assert (two_files / "d" / "b.txt").read_text() == "1\ntwo\nthree\n"
    assert (two_files / "a.txt").read_text() == "1\n"


def test_patch_file_created_during_question_is_not_overwritten(two_files: Path) -> None:
    def meanwhile(_: int) -> None:
        (two_files / "new").mkdir(exist_ok=True)
        (two_files / "new" / "c.txt").write_text("somebody else's")

    with Workspace(str(two_files), approver=Asked(meanwhile=meanwhile)) as workspace:
        result = patch(workspace, TWO_FILES)
    assert result.error is not None
    assert result.error.code == "file_exists"
    assert (two_files / "new" / "c.txt").read_text() == "somebody else's"
    assert (two_files / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("name", ["d", "new"])
def test_patch_directory_replaced_by_outside_link_is_refused(two_files: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("one\ntwo\n")

    def meanwhile(count: int) -> None:
        if count == 1:
            shutil.rmtree(two_files / name, ignore_errors=True)
            (two_files / name).symlink_to(outside)

    before = snapshot(outside, precise=True)
    with Workspace(str(two_files), approver=Asked(meanwhile=meanwhile)) as workspace:
        result = patch(workspace, TWO_FILES)
    assert result.error is not None
    assert result.error.code == "path_outside_workspace"
    assert snapshot(outside, precise=True) == before
    assert (two_files / "a.txt").read_text() == "one\n"


def test_patch_without_net_change_asks_nothing(two_files: Path) -> None:
    text = envelope("*** Update File: a.txt", "@@", "-one", "+1", "*** Update File: a.txt", "@@", "-1", "+one")
    asked = Asked()
    with Workspace(str(two_files), approver=asked) as workspace:
        result = patch(workspace, text)
    assert (result.success, result.files_affected, asked.questions) == (True, [], [])


def test_patch_moved_file_keeps_permissions(two_files: Path) -> None:
    (two_files / "a.txt").chmod(0o600)
    with Workspace(str(two_files), approve="auto") as workspace:
        assert patch(workspace, envelope("*** Update File: a.txt", "*** Move to: d/a.txt")).success
    assert (two_files / "d" / "a.txt").stat().st_mode & 0o777 == 0o600


def test_patch_deletes_file_too_large_to_read(two_files: Path) -> None:
    os.truncate(two_files / "a.txt", 1 << 40)
    with Workspace(str(two_files), approve="auto") as workspace:
        assert not patch(workspace, envelope("*** Update File: a.txt", "@@", "-x", "+y")).success
        assert patch(workspace, envelope("*** Delete File: a.txt")).success
    assert not (two_files / "a.txt").exists()


def test_patch_dangling_link_deleted_but_not_written_through(two_files: Path) -> None:
    (two_files / "link").symlink_to("nowhere")
    with Workspace(str(two_files), approve="auto") as workspace:
        added = patch(workspace, envelope("*** Add File: link", "+x"))
        assert added.error is not None
        assert added.error.code == "dangling_link"
        assert patch(workspace, envelope("*** Delete File: link")).success
    assert not (two_files / "link").is_symlink()
    assert not (two_files / "nowhere").exists()


def test_patch_error_clips_long_hunk(two_files: Path) -> None:
    text = envelope("*** Update File: a.txt", "@@", *(f"-{'x' * 5000} {n}" for n in range(500)))
    with Workspace(str(two_files), approve="auto") as workspace:
        result = patch(workspace, text)
    assert result.error is not None
    lines = result.error.message.split("\n")
    assert len(lines) == 21
    assert max(map(len, lines)) <= 201
    assert "… 481 lines not shown …" in lines


# ── attacks ──


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return build(tmp_path)


def attacks() -> Iterator[tuple[str, str]]:
    ways = [
        "../outside/secret.txt", "../outside/new.txt", "sub/../../outside/secret.txt", "{outside}/secret.txt",
        "//{outside}/secret.txt", "{root}/../outside/secret.txt", "{root}-evil/secret.txt",
        "missing/../../outside/new.txt", "/proc/self/root{outside}/secret.txt", "out_abs", "out_rel",
        "out_dir/secret.txt", "out_dir/new.txt", "chain", "sub/up/secret.txt", "dangling_out", "dangling_out_abs",
        "dangling_out_dir/new.txt", "proc_cwd/x", "proc_environ", "proc_root{outside}/secret.txt", "dev_zero",
        "fifo", "socket", "loop_a", "C:\\x", "\\\\server\\share\\x",
    ]  # fmt: skip
    for way in ways:
        octal = "".join(f"\\{byte:03o}" for byte in way.encode()) if "{" not in way else ""
        for name in (way, f'"{octal}"') if octal else (way,):
            yield f"add {name}", envelope(f"*** Add File: {name}", "+evil")
            yield f"update {name}", envelope(f"*** Update File: {name}", "@@", "+evil", "*** End of File")
            yield f"move to {name}", envelope("*** Update File: inside.txt", f"*** Move to: {name}")
            yield f"move from {name}", envelope(f"*** Update File: {name}", "*** Move to: stolen.txt")
            prefixed = f'"b/{octal}"' if name.startswith('"') else f"b/{name}"
            yield f"create {name}", f"--- /dev/null\n+++ {prefixed}\n@@ -0,0 +1 @@\n+evil\n"
            head = "diff --git a/inside.txt b/x\nsimilarity index 100%\n"
            yield f"rename to {name}", f"{head}rename from inside.txt\nrename to {name}\n"
            yield f"copy to {name}", f"{head}copy from inside.txt\ncopy to {name}\n"
            yield f"copy from {name}", f"{head}copy from {name}\ncopy to stolen.txt\n"


ATTACKS = dict(attacks())


def test_patch_never_leaves_workspace(arena: Arena) -> None:
    """Try every attack with a harmless section before it, which must not be applied either."""
    before = snapshot(arena.root)
    harmless = {
        "*** Begin": "*** Update File: sub/file.txt\n@@\n-one\n+1\n",
        "--- /dev/": "--- a/sub/file.txt\n+++ b/sub/file.txt\n@@ -1 +1 @@\n-one\n+1\n",
        "diff --gi": "--- a/sub/file.txt\n+++ b/sub/file.txt\n@@ -1 +1 @@\n-one\n+1\n",
    }
    with Workspace(str(arena.root), approve="auto", durability="none") as workspace:
        for name, text in ATTACKS.items():
            first = harmless[text[:9]]
            whole = text.replace("Patch\n", f"Patch\n{first}", 1) if text.startswith("***") else first + text
            result = patch(workspace, arena.fill(whole))
            assert not result.success, name
            assert result.error is not None
            assert result.error.code != "internal_error", name
            assert snapshot(arena.root) == before, name
    arena.check()


@pytest.mark.parametrize("name", ["out_abs", "out_dir", "dangling_out", "loop_a", "proc_root", "dev_zero"])
def test_patch_delete_outside_link_removes_only_link(arena: Arena, name: str) -> None:
    with Workspace(str(arena.root), approve="auto", durability="none") as workspace:
        assert patch(workspace, envelope(f"*** Delete File: {name}")).success
    assert not (arena.root / name).is_symlink()
    arena.check()


@pytest.mark.parametrize("name", ["../outside/secret.txt", "out_dir/secret.txt", "sub/up/secret.txt", "fifo", "sub"])
def test_patch_delete_of_outside_or_special_file_is_refused(arena: Arena, name: str) -> None:
    before = snapshot(arena.root)
    with Workspace(str(arena.root), approve="auto", durability="none") as workspace:
        assert not patch(workspace, envelope(f"*** Delete File: {name}")).success
    assert snapshot(arena.root) == before
    arena.check()


def test_patch_through_link_made_by_command_is_refused(arena: Arena) -> None:
    with Workspace(str(arena.root), approve="auto") as workspace:
        workspace.call("codex", "shell", {"command": "ln -s ../outside made && ln -s ../outside/new.txt made.txt"})
        for name in ("made/new.txt", "made.txt"):
            result = patch(workspace, envelope(f"*** Add File: {name}", "+x"))
            assert result.error is not None
            assert result.error.code == "path_outside_workspace"
    arena.check()


def test_patch_making_link_and_writing_through_it_is_refused(arena: Arena) -> None:
    text = (
        "diff --git a/made b/made\nnew file mode 120000\n--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+../outside\n"
        "\\ No newline at end of file\n--- /dev/null\n+++ b/made/new.txt\n@@ -0,0 +1 @@\n+x\n"
    )
    with Workspace(str(arena.root), approve="auto") as workspace:
        result = patch(workspace, text)
    assert result.error is not None
    assert result.error.code == "unsupported_mode"
    assert not (arena.root / "made").exists()
    arena.check()


def test_patch_hard_link_to_outside_file_is_replaced(arena: Arena) -> None:
    with Workspace(str(arena.root), approve="auto") as workspace:
        assert patch(workspace, envelope("*** Update File: twin.txt", "@@", "-one", "+1")).success
    assert (arena.root / "twin.txt").read_text() == "1\ntwo\n"
    assert (arena.outside / "twin.txt").read_text() == "one\ntwo\n"


SAID = {
    "past the end": (
        "--- a/a.txt\n+++ b/a.txt\n@@ -9,0 +10 @@\n+x\n",
        "Hunk 1 for 'a.txt' does not fit: its line number is after the end of the file, which has 2 lines",
    ),
    "before the hunk above": (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1 @@\n-one\n-two\n+2\n@@ -1,0 +2 @@\n+x\n",
        "Hunk 2 for 'a.txt' does not fit: its line number is before the end of the previous hunk",
    ),
    "set-id": (
        "diff --git a/a.txt b/a.txt\nold mode 100755\nnew mode 104755\n",
        "'a.txt' would get mode 104755: a patch cannot create files with set-id or sticky bits",
    ),
    "a link": (
        "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+x\n",
        "'l' would get mode 120000: a patch cannot create links and submodules",
    ),
    "only binary": (
        "Binary files a/f and b/f differ\n",
        "'f' is patched as a binary file, which is not supported",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_patch_refusal_message_states_reason(workspace: Workspace, root: Path, case: str) -> None:
    (root / "a.txt").write_text("one\ntwo\n")
    text, said = SAID[case]
    result = patch(workspace, text)
    assert result.error is not None
    assert result.error.message == said
    assert snapshot(root).keys() == {"a.txt"}
