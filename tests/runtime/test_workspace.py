"""Tests the library: a workspace, its policies and its approver."""

import os
import resource
import threading
from pathlib import Path
from typing import Any

import pytest
from support.throwaway_dialect import router_of

import handrail
from handrail import FsBoundary, Keep, Question, ToolRouter, Verdict, Workspace
from handrail.dialects import NAMES, load
from handrail.errors import RuleError, WorkspaceError
from handrail.model.effects import Effect, permissions, risk_level
from handrail.model.faults import NotFound

WRITE = {"path": "a.txt", "content": "new\n"}


class Witness:
    """Gives a fixed answer and keeps the questions."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, list[Question]()

    def __call__(self, question: Question) -> Any:
        self.asked.append(question)
        return self.answer


def test_handrail_exports_public_names() -> None:
    names = [
        "ClientSession",
        "ExecResult",
        "FsBoundary",
        "History",
        "Keep",
        "Question",
        "SessionLog",
        "Settings",
        "Snapshot",
        "ToolResult",
    ]
    names += ["ToolRouter", "Verdict", "Workspace", "dialect_for"]
    assert [name for name in sorted(handrail.__all__) if not name.endswith("Error")] == names
    assert all(getattr(handrail, name) for name in handrail.__all__)
    assert ToolRouter.__module__ == "handrail.tools.router"
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = handrail.Nonsense


def test_workspace_context_manager_closes_handle(root: Path) -> None:
    with Workspace(str(root)) as workspace:
        assert workspace.root == str(root)
        assert workspace.call("file", "file.list").success
        fd = workspace._services.boundary.fd
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_workspace_makes_one_router_per_dialect(workspace: Workspace) -> None:
    router = workspace.tools("file")
    assert router is workspace.tools("file")
    assert list(router.tools) == list(load("file").tools)


def test_workspace_missing_root_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError):
        Workspace(str(tmp_path / "no"))
    with pytest.raises(NotFound):
        FsBoundary(tmp_path / "no")


def test_workspace_sessions_have_separate_logs(workspace: Workspace) -> None:
    first, second = workspace.session(), workspace.session()
    first.tools("file").call("file.list")
    assert first.log.path != second.log.path
    assert Path(first.log.path or "").read_text().count("\n") == 1
    assert Path(second.log.path or "").read_text() == ""
    first.close()
    second.close()


@pytest.mark.parametrize("answer", [True, Verdict(True, "a program")])
def test_approver_yes_allows_call(root: Path, answer: Any) -> None:
    witness = Witness(answer)
    with Workspace(str(root), approver=witness) as workspace:
        assert workspace.call("file", "file.write", WRITE).success
    (question,) = witness.asked
    assert (root / "a.txt").read_text() == "new\n"
    assert (question.dialect, question.tool, question.params) == ("file", "file.write", WRITE)
    assert (question.risk, question.targets) == ("safe_write", ("a.txt",))
    assert question.bodies == {"content"}
    (change,) = question.changes
    assert (change.path, getattr(change, "data", None)) == ("a.txt", b"new\n")


@pytest.mark.parametrize(
    ("answer", "message", "suggestion"),
    [
        (False, "file.write was not approved: the approver said no", "Ask what to do instead"),
        (Verdict(False, "boss", reason="not today", remedy="wait"), "file.write was not approved: not today", "wait"),
    ],
)
def test_approver_no_denies_call(root: Path, answer: Any, message: str, suggestion: str) -> None:
    with Workspace(str(root), approver=lambda question: answer) as workspace:
        error = workspace.call("file", "file.write", WRITE).error
    assert error is not None
    assert (error.code, error.message, error.suggestion) == ("approval_denied", message, suggestion)
    assert not list(root.iterdir())


def test_approver_always_makes_rule_for_exact_call(root: Path) -> None:
    witness = Witness(Verdict(True, "user", always=True))
    with Workspace(str(root), approver=witness) as workspace:
        for content in ("1", "2", "1", "2"):
            assert workspace.call("file", "file.write", {"path": "a", "content": content}).success
    with Workspace(str(root), approver=witness) as workspace:
        assert workspace.call("file", "file.write", {"path": "a", "content": "1"}).success
    assert [question.params["content"] for question in witness.asked] == ["1", "2"]


def test_approver_unstorable_rule_is_warning(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", "/proc/no/config")
    with Workspace(str(root), approver=lambda _: Verdict(True, "user", always=True, keep=Keep("user"))) as workspace:
        result = workspace.call("file", "file.write", WRITE)
    assert result.success
    (warning,) = result.warnings
    assert warning.startswith("approved this time only: cannot store the rule: ")


@pytest.mark.parametrize(("policy", "happens"), [("auto", True), ("host", True), ("never", False), ("ask", False)])
def test_policy_without_approver_allows_only_auto_and_host(root: Path, policy: Any, happens: bool) -> None:
    with Workspace(str(root), approve=policy) as workspace:
        assert workspace.call("file", "file.write", WRITE).success is happens
    assert (root / "a.txt").exists() is happens


@pytest.mark.parametrize("policy", ["auto", "host", "never"])
def test_policy_other_than_ask_asks_nothing(root: Path, policy: Any) -> None:
    def ask(_: Question) -> bool:
        raise AssertionError("asked")

    with Workspace(str(root), approve=policy, approver=ask) as workspace:
        error = workspace.call("file", "file.write", WRITE).error
        assert error is None or error.code == "approval_denied"


def test_read_only_workspace_hides_and_denies_writing_tools(root: Path) -> None:
    with Workspace(str(root), approve="auto", read_only=True) as workspace:
        assert set(workspace.tools("file").tools) >= {"file.read", "file.list"}
        assert all(not tool.requires_approval for tool in workspace.tools("file").tools.values())
        router = router_of(workspace)
        router.tools = dict(router.dialect.tools)  # also a tool that is offered by mistake
        error = router.call("note", {"text": "x"}).error
    assert error is not None
    assert error.message == "note was not approved: the workspace is open for reading only"
    assert not list(root.iterdir())


@pytest.mark.parametrize(("dialect", "tool"), [("file", "file.write"), ("copilot", "run_in_terminal")])
def test_read_only_workspace_hidden_tool_names_reason(root: Path, dialect: str, tool: str) -> None:
    with Workspace(str(root), approve="auto", read_only=True) as workspace:
        error = workspace.call(dialect, tool, {"path": "a", "content": "x"}).error
        mistyped = workspace.call(dialect, f"{tool}x", {}).error
    assert error is not None
    assert error.code == "approval_denied"
    assert error.message == f"{tool} was not approved: the workspace is open for reading only"
    assert mistyped is not None
    assert mistyped.code == "unknown_tool"


def test_read_only_workspace_offers_only_reading_tools(root: Path) -> None:
    with Workspace(str(root), read_only=True) as workspace:
        for name in NAMES:
            assert {tool.risk for tool in workspace.tools(name).tools.values()} <= {"read_only"}


def test_workspace_malformed_rule_file_is_an_error(root: Path) -> None:
    config = Path(os.environ["HANDRAIL_CONFIG_DIR"])
    config.mkdir(parents=True)
    (config / "approvals.toml").write_text("[[")
    with pytest.raises(RuleError, match="cannot read"):
        Workspace(str(root))


def test_workspace_parallel_edits_of_one_file_all_apply(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("".join(f"line {n}\n" for n in range(8)))

    def edit(number: int) -> None:
        patch = {"find": f"line {number}\n", "replace": f"LINE {number}\n"}
        assert workspace.call("file", "file.patch", {"path": "a.txt", "patches": [patch]}).success

    threads = [threading.Thread(target=edit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (root / "a.txt").read_text() == "".join(f"LINE {n}\n" for n in range(8))


def test_write_over_system_size_limit_keeps_old_contents(workspace: Workspace, root: Path) -> None:
    (root / "a.txt").write_text("old\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        result = workspace.call("file", "file.write", {"path": "a.txt", "content": "x" * 200_000})
        made = workspace.call("file", "file.write", {"path": "new/b.txt", "content": "x" * 200_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    for each, path in ((result, "a.txt"), (made, "new/b.txt")):
        assert each.error is not None
        assert each.error.code == "write_failed"
        assert each.error.message == f"Cannot write '{path}': File too large"
    assert [path.name for path in root.rglob("*")] == ["a.txt"]
    assert (root / "a.txt").read_text() == "old\n"


def test_workspace_page_and_edit_limits_hold(root: Path) -> None:
    (root / "big.txt").write_text("0123456789\n" * 10)
    (root / "line.txt").write_text("0123456789" * 10)
    with Workspace(str(root), approve="auto", limits={"page_bytes": 25, "edit_bytes": 50}) as workspace:
        page = workspace.call("file", "file.read", {"path": "big.txt"})
        assert page.output == {
            "content": "     1\t0123456789\n     2\t0123456789\n     3\t012",
            "total_lines": 10,
            "truncated": True,
        }
        assert workspace.call("file", "file.read", {"path": "line.txt"}).output == {
            "content": "     1\t0123456789012345678901234",
            "total_lines": 1,
            "truncated": True,
        }
        edit = {"path": "big.txt", "patches": [{"find": "x", "replace": "y"}]}
        error = workspace.call("file", "file.patch", edit).error
        assert error is not None
        assert error.message == "'big.txt' has 110 bytes, more than the limit of 50"
        assert workspace.call("file", "file.delete", {"path": "big.txt"}).success


def test_file_moment_beyond_calendar_is_clamped(workspace: Workspace, root: Path) -> None:
    from handrail.dialects.file import _moment

    assert _moment(2**62) == "2116-02-20T23:53:38.427388Z"
    assert _moment(2**70) == "9999-12-31T23:59:59Z"
    assert _moment(-(2**70)) == "0001-01-01T00:00:00Z"


def test_effects_determine_risk_and_permissions() -> None:
    assert risk_level(Effect.READ) == "read_only"
    assert risk_level(Effect.CREATE) == risk_level(Effect.READ | Effect.CREATE) == "safe_write"
    for effect in (Effect.WRITE, Effect.DELETE, Effect.RUN, Effect.FETCH, Effect.CREATE | Effect.WRITE):
        assert risk_level(effect) == "dangerous"
    assert permissions(~Effect(0)) == [
        "ReadFiles",
        "WriteFiles",
        "CreateFiles",
        "DeleteFiles",
        "RunCommands",
        "FetchUrls",
    ]


def test_question_risk_overwrite_exceeds_create(root: Path) -> None:
    witness = Witness(True)
    with Workspace(str(root), approver=witness) as workspace:
        workspace.call("file", "file.write", WRITE)
        workspace.call("file", "file.write", {**WRITE, "content": "newer\n"})
        workspace.call("file", "file.delete", {"path": "a.txt"})
    assert [question.risk for question in witness.asked] == ["safe_write", "dangerous", "dangerous"]
