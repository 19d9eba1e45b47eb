"""Tests approval callbacks: their answers, and callbacks that fail."""

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from handrail import Keep, Question, Verdict, Workspace

WRITE = {"path": "a.txt", "content": "new\n"}
DOCUMENTED = (Path(__file__).parent.parent.parent / "docs" / "approvals.md").read_text()


def _denied(root: Path, approver: Any) -> tuple[str, list[dict[str, Any]]]:
    """Why it was not approved, and the log of the call."""
    log = root.parent / "log.jsonl"
    with Workspace(str(root), approver=approver, log=str(log)) as workspace:
        result = workspace.call("file", "file.write", WRITE)
        assert workspace.call("file", "file.list").success
    assert result.error is not None
    assert (result.error.code, result.files_affected, [*root.iterdir()]) == ("approval_denied", [], [])
    assert result.error.suggestion == "Nothing was done; the session log has the details"
    return result.error.message, [json.loads(line) for line in log.read_text().splitlines()]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "TypeError: the approver must return a Verdict or a bool, not NoneType"),
        (1, "TypeError: the approver must return a Verdict or a bool, not int"),
        ("yes", "TypeError: the approver must return a Verdict or a bool, not str"),
        (Verdict("no", "me"), "TypeError: allowed must be a bool, not str"),  # type: ignore[arg-type]
        (Verdict(True, "me", keep=None), "TypeError: keep must be a Keep, and its rule text"),  # type: ignore[arg-type]
        (
            Verdict(True, "me", always=True, keep=Keep("world")),  # type: ignore[arg-type]
            "ValueError: the scope must be one of session, project, user, not 'world'",
        ),
        (
            Verdict(True, "me", always=True, keep=Keep(hours="8")),  # type: ignore[arg-type]
            "TypeError: hours must be a number, not str",
        ),
    ],
)
def test_callback_invalid_answer_denies_with_reason(root: Path, answer: Any, why: str) -> None:
    message, _ = _denied(root, lambda _: answer)
    assert message == f"file.write was not approved: asking failed with {why}"


def test_async_approver_without_a_verdict_refuses(root: Path) -> None:
    async def later(_: Question) -> None:
        await asyncio.sleep(0)

    assert _denied(root, later)[0].endswith("must return a Verdict or a bool, not NoneType")


def test_callback_exception_denies_and_logs_traceback(root: Path) -> None:
    def ask(_: Question) -> bool:
        raise KeyError("no\nwindow")

    message, lines = _denied(root, ask)
    assert message == r"file.write was not approved: asking failed with KeyError: 'no\nwindow'"
    (failed,) = [line for line in lines if line["level"] == "ERROR"]
    assert (failed["event"], failed["call"], failed["tool"]) == ("asking failed", 1, "file.write")
    assert "in ask\n" in failed["traceback"]
    assert failed["traceback"].endswith("KeyError: 'no\\nwindow'\n")


@pytest.mark.parametrize("answer", [True, False])
def test_call_time_excludes_approval_time(root: Path, answer: bool) -> None:
    thought = list[float]()

    def think(_: Question) -> bool:
        began = time.perf_counter()
        time.sleep(0.2)
        thought.append(time.perf_counter() - began)
        return answer

    with Workspace(str(root), approver=think) as workspace:
        router = workspace.tools("file")
        began = time.perf_counter()
        result = router.call("file.write", WRITE)
        took = time.perf_counter() - began
    assert result.success is answer
    assert 0 <= result.execution_time_ms <= (took - thought[0]) * 1000 + 0.001


def test_documented_callback_works(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (sample,) = re.findall(r"```python\n(.+?)```", DOCUMENTED, re.DOTALL)
    exec(sample.replace("/path/to/project", str(root)), {})
    assert sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file()) == ["notes/plan.md"]
    assert capsys.readouterr().out == "True\nfile.delete was not approved: nothing is deleted here\n"
    with Workspace(str(root)) as workspace:  # without an approver: the stored rule approves
        (root / "notes" / "plan.md").unlink()
        assert workspace.call("file", "file.write", {"path": "notes/plan.md", "content": "First.\n"}).success
        assert not workspace.call("file", "file.write", {"path": "notes/plan.md", "content": "Second.\n"}).success
