"""Tests that deny rules also stop reading tools. No other policy or rule affects reading."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.command_line import in_process as handrail

from handrail import Workspace
from handrail.model.limits import Limits
from handrail.policy.rule_store import RuleFile
from handrail.policy.rules import Rule


@pytest.fixture
def reader(root: Path) -> Iterator[Workspace]:
    """Open a workspace whose approver must never be asked."""
    (root / "secret.txt").write_text("one\n")
    (root / "open.txt").write_text("one\n")
    (root / "link.txt").symlink_to("secret.txt")

    def never(_: object) -> bool:
        raise AssertionError("no approver is asked about reading")

    with Workspace(str(root), approver=never) as workspace:
        yield workspace


def code(workspace: Workspace, dialect: str, tool: str, params: dict[str, Any]) -> str:
    result = workspace.call(dialect, tool, params)
    return result.error.code if result.error else ""


@pytest.mark.parametrize(
    ("dialect", "tool", "name", "more"),
    [
        ("file", "file.read", "path", {}),
        ("gemini", "read_file", "absolute_path", {}),
        ("context", "read_file", "path", {}),
        ("context", "replace_in_file", "path", {"find": "one", "replace": "two", "preview_only": True}),
        ("copilot", "read_file", "path", {}),
        ("codex", "read_file", "path", {}),
    ],
)
def test_deny_rule_stops_reading_tool(
    reader: Workspace, root: Path, dialect: str, tool: str, name: str, more: dict[str, Any]
) -> None:
    before = f"{root}/" if dialect == "gemini" else ""

    def codes() -> list[str]:
        return [code(reader, dialect, tool, {name: before + each, **more}) for each in ("secret.txt", "open.txt")]

    assert codes() == ["", ""]
    reader._rules.add(Rule(tool, ".*secret.*", deny=True))
    assert codes() == ["approval_denied", ""]


def test_deny_rule_is_named_and_counted(reader: Workspace) -> None:
    reader._rules.add(Rule("file.read", ".*secret.*", deny=True))
    error = reader.call("file", "file.read", {"path": "secret.txt"}).error
    assert error is not None
    assert error.message == "file.read was not approved: rule 1 of the user's rules forbids it: .*secret.*"
    assert reader._rules.tally is not None
    assert [count.times for count in reader._rules.tally.read().values()] == [1]


def test_deny_rule_checks_resolved_path(reader: Workspace) -> None:
    reader._rules.add(Rule("*", r'\{"path":"secret\.txt"\}', deny=True))
    for path in ("./secret.txt", "link.txt"):
        assert code(reader, "file", "file.read", {"path": path}) == "approval_denied"
    assert code(reader, "file", "file.read", {"path": "../secret.txt"}) == "path_outside_workspace"
    assert code(reader, "file", "file.read", {"path": "none.txt"}) == "file_not_found"


def test_deny_rule_of_every_scope_stops_reads(reader: Workspace, root: Path) -> None:
    session = reader.session()
    for scope in ("session", "project", "user"):
        assert session.tools("file").call("file.read", {"path": "open.txt"}).success
        number = session._rules.add(Rule("file.read", ".*open.*", deny=True), scope)
        assert not session.tools("file").call("file.read", {"path": "open.txt"}).success
        session._rules.file_of(scope).remove(number)
    session.close()
    (root / ".handrail.toml").write_text('[[rule]]\ntool = "*"\npattern = ".*secret.*"\ndeny = true\n')
    with Workspace(str(root)) as other:
        assert code(other, "file", "file.read", {"path": "secret.txt"}) == "approval_denied"


def test_deny_rule_change_applies_during_session(reader: Workspace) -> None:
    asked_user = RuleFile.load(str(Path(reader._rules.user.path).parent), Limits())
    assert code(reader, "file", "file.read", {"path": "open.txt"}) == ""
    asked_user.add(Rule("file.read", ".*", deny=True))
    assert code(reader, "file", "file.read", {"path": "open.txt"}) == "approval_denied"
    asked_user.enable(1, enabled=False)
    assert code(reader, "file", "file.read", {"path": "open.txt"}) == ""
    asked_user.enable(1, enabled=True)
    assert code(reader, "file", "file.read", {"path": "open.txt"}) == "approval_denied"
    Path(asked_user.path).write_text("half an edi")
    assert code(reader, "file", "file.read", {"path": "open.txt"}) == "approval_denied"


def test_deny_rule_pattern_timeout_denies(root: Path) -> None:
    with Workspace(str(root)) as workspace:
        workspace._rules.add(Rule("file.search", r'\{"pattern":"(a|aa)+$z"\}', deny=True))
        assert code(workspace, "file", "file.search", {"pattern": "a" * 200}) == "approval_denied"
        assert code(workspace, "file", "file.search", {"pattern": "b"}) == ""


@pytest.mark.parametrize("approve", ["ask", "never", "auto"])
def test_reading_is_allowed_under_every_policy(root: Path, approve: Any) -> None:
    (root / "open.txt").write_text("one\n")
    with Workspace(str(root), approve=approve, read_only=True) as workspace:
        workspace._rules.add(Rule("file.read", ".*secret.*", deny=True))
        workspace._rules.add(Rule("file.read", ".*never used.*"))
        assert code(workspace, "file", "file.read", {"path": "open.txt"}) == ""


def test_approvals_test_tells_denied_read_from_free_read(reader: Workspace, root: Path) -> None:
    reader._rules.add(Rule("file.read", ".*secret.*", deny=True))
    test = ("approvals", "test", "file.read", "--root", str(root))
    assert handrail(*test, '{"path": "secret.txt"}').stdout == "Forbidden by user rule 1: .*secret.*\n"
    unasked = "The call would need no approval\n  not user rule 1: its pattern does not match\n"
    assert handrail(*test, '{"path": "open.txt"}').stdout == unasked
