"""Tries to hide the content of a file from the user who is asked about it, and to fill the records of changes."""

from pathlib import Path

import pytest

from handrail import Question, Workspace
from handrail.surfaces.approval_text import QuestionView, happening, whole

SCRIPT = "#!/bin/sh\nrm -rf ~\n"


@pytest.mark.parametrize("content", [f"{SCRIPT}\0", f"#\0\n{SCRIPT}", f"{SCRIPT}# \ufeff\0\n"])
@pytest.mark.parametrize("before", [None, b"\0\xff\n", b"\x89PNG\0\n", b"text\n"])
def test_question_shows_text_with_nul(root: Path, content: str, before: bytes | None) -> None:
    """A shell runs such a script, so that it must not pass as a binary file."""
    asked: list[Question] = []

    def refuse(question: Question) -> bool:
        asked.append(question)
        return False

    if before is not None:
        (root / "build.sh").write_bytes(before)
    with Workspace(str(root), approver=refuse) as workspace:
        workspace.call("file", "file.write", {"path": "build.sh", "content": content})
    for view in (QuestionView(200), whole()):
        shown = happening(asked[0], view)
        assert "+rm -rf ~" in shown
        assert any("\\x00" in line for line in shown)
        assert not any("\0" in line for line in shown)


def test_endless_call_id_does_not_fill_journal(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        for number in range(3):
            params = {"path": "a.txt", "content": str(number)}
            assert workspace.tools("file").call("file.write", params, call_id="x" * 1_000_000).success
        entries = workspace.history().entries()
    assert [each.entry.origin.call_id for each in entries] == ["x" * 200] * 3
