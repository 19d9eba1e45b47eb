"""Tests calls that no policy and no rule approves: commands that may be denied, and guarded paths."""

from pathlib import Path
from typing import Any

import pytest
from policy.test_policy import YES, ScriptedUser

from handrail import ToolResult, Workspace
from handrail.model.approval import Keep, Verdict
from handrail.policy.rules import Rule, exact_pattern

NO_RM = Rule("run_in_terminal", argv=("rm", "..."), deny=True)
HIDDEN = [
    "rm a #" + "x" * 9000,
    "$'rm' a",
    "X=rm; $X a",
    "r\\\nm a",
    "r$()m a",
    "/bin/r? a",
    "env -S 'rm a'",
    "watch rm a",
    "parallel rm ::: a",
    "echo 'rm a' | sh",
    "'rm a",
]
PLAIN = ["rm a", "/bin/rm a", "true; rm a", "timeout 5 rm a", "sh -c 'rm a'", "echo $(rm a)", "rm $x"]


def run(workspace: Any, command: str) -> ToolResult:
    result: ToolResult = workspace.call("copilot", "run_in_terminal", {"command": command})
    return result


@pytest.mark.parametrize("approve", ["auto", "host", "ask"])
@pytest.mark.parametrize("command", HIDDEN)
def test_policy_never_approves_command_that_may_run_denied_program(root: Path, approve: Any, command: str) -> None:
    (root / "a").write_text("")
    with Workspace(str(root), approve=approve) as workspace:
        session = workspace._default._rules.session
        exact = exact_pattern(f'{{"command":"{command}"}}')
        session.rules = [NO_RM, Rule("run_in_terminal", r"(?s:.*)"), Rule("run_in_terminal", exact)]
        result = run(workspace, command)
    assert result.error is not None
    assert result.error.code == "approval_denied"
    assert result.error.message == (
        "run_in_terminal was not approved: no approver can be asked, and the command may run what session rule 1"
        " forbids: its text does not show every program that it runs"
    )
    assert result.error.suggestion == "Write it as plain commands, or ask the user: only they can allow it"
    assert (root / "a").exists()


@pytest.mark.parametrize("command", PLAIN)
def test_deny_rule_plain_command_denied_without_question(root: Path, command: str) -> None:
    asked_user = ScriptedUser(YES)
    with Workspace(str(root), approve="auto", approver=asked_user) as workspace:
        workspace._rules.add(NO_RM)
        result = run(workspace, command)
    assert result.error is not None
    assert "forbids it" in result.error.message
    assert asked_user.questions == []


def test_deny_rule_unclear_command_asks_every_time(root: Path) -> None:
    asked_user = ScriptedUser(Verdict(True, "user", always=True, keep=Keep("session")), YES)
    with Workspace(str(root), approve="auto", approver=asked_user) as workspace:
        workspace._rules.add(NO_RM)
        first, second, plain = run(workspace, "X=echo; $X a"), run(workspace, "X=echo; $X a"), run(workspace, "echo b")
    assert first.success
    assert second.success
    assert plain.success
    assert len(asked_user.questions) == 2
    why = "the command may run what user rule 1 forbids: its text does not show every program that it runs"
    said = f"this call needs approval every time: {why}"
    assert first.warnings == [f"approved this time only: cannot store the rule: {said}"]


@pytest.mark.parametrize(
    ("command", "denied"),
    [
        ("git push", True),
        ("git -C . push", True),
        ("git --no-pager -C . push --force", True),
        ("git $x push", True),
        ("git log push", False),
        ("git -C . log push", False),
    ],
)
def test_deny_rule_options_do_not_hide_denied_words(root: Path, command: str, denied: bool) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        workspace._rules.add(Rule("run_in_terminal", argv=("git", "push", "..."), deny=True))
        result = run(workspace, command)
    assert bool(result.error and "forbids it" in result.error.message) is denied


@pytest.mark.parametrize(
    "idle",
    [
        NO_RM._replace(tool="shell"),
        NO_RM._replace(enabled=False),
        Rule("run_in_terminal", r".*rm .*", deny=True),
    ],
)
def test_deny_rule_not_in_force_casts_no_doubt(root: Path, idle: Rule) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        workspace._rules.add(idle)
        assert run(workspace, "X=echo; $X a").success


def test_deny_rule_terminal_input_is_never_approved(root: Path) -> None:
    (root / "a").write_text("")
    with Workspace(str(root), approve="auto") as workspace:
        workspace._rules.add(Rule("write_stdin", argv=("rm", "..."), deny=True))
        assert workspace.call("codex", "exec_command", {"session_id": "s", "cmd": "sh"}).success
        typed = [
            workspace.call("codex", "write_stdin", {"session_id": "s", "chars": keys})
            for keys in ("rm a\n", "r", "m a\n")
        ]
    assert ["forbids" in (each.error.message if each.error else "") for each in typed] == [True, True, True]
    assert (root / "a").exists()


GUARDED = [".git/hooks/pre-commit", ".GIT/config", "hooks/pre-commit", ".handrailignore", ".handrail.toml", ".vscode/a"]


@pytest.mark.parametrize("approve", ["auto", "host"])
@pytest.mark.parametrize("path", GUARDED)
def test_policy_never_approves_guarded_path(root: Path, approve: Any, path: str) -> None:
    (root / ".git/hooks").mkdir(parents=True)
    (root / "hooks").symlink_to(".git/hooks")
    patch = f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch\n"
    calls = [
        ("copilot", "create_file", {"path": path, "content": "x"}),
        ("codex", "apply_patch_json", {"patch": patch}),
    ]
    with Workspace(str(root), approve=approve) as workspace:
        for dialect, tool, params in calls:
            result = workspace.call(dialect, tool, params)
            assert result.error is not None
            assert result.error.code == "approval_denied"
            assert "no approver can be asked, and the call reaches into ." in result.error.message
            assert result.error.suggestion == "Leave it, or ask the user: only they can allow it"
        assert not (root / path).exists()
    asked_user = ScriptedUser(YES)
    with Workspace(str(root), approve=approve, approver=asked_user) as workspace:
        assert workspace.call(*calls[0]).success
    assert (root / path).read_text() == "x"
    assert len(asked_user.questions) == 1
