"""Tests envelopes that replace files: the question shows every line that goes, and undo brings it back."""

from pathlib import Path

import pytest
from support.tree import snapshot

from handrail import Question, Workspace
from handrail.ops.text.change_preview import change_diff

BODIES = {
    "add over": "*** Add File: b.sh\n+new\n",
    "move over": "*** Update File: a.sh\n*** Move to: b.sh\n@@\n-a\n+A\n",
    "swap": "*** Update File: a.sh\n*** Move to: b.sh\n*** Update File: b.sh\n*** Move to: a.sh\n",
    "move away and add": "*** Update File: b.sh\n*** Move to: c.sh\n*** Add File: b.sh\n+new\n",
    "delete and add": "*** Delete File: b.sh\n*** Add File: b.sh\n+new\n",
}


@pytest.mark.parametrize("case", BODIES)
def test_patch_replacing_file_shows_old_lines_and_undo_restores(case: str, root: Path) -> None:
    for name, mode in (("a.sh", 0o755), ("b.sh", 0o600)):
        (root / name).write_text(f"{name[0]}\nold {name}\n")
        (root / name).chmod(mode)
    before = snapshot(root)
    asked: list[Question] = []

    def allow(question: Question) -> bool:
        asked.append(question)
        return True

    with Workspace(str(root), approver=allow) as workspace:
        patch = f"*** Begin Patch\n{BODIES[case]}*** End Patch\n"
        assert workspace.call("codex", "apply_patch_freeform", {"patch": patch}).success
        assert snapshot(root) != before
        assert "-old b.sh\n" in "".join(change_diff(change) for change in asked[0].changes)
        assert workspace.history().undo().done
    assert snapshot(root) == before
