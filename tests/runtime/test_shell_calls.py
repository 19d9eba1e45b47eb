"""Tests calls that run commands in the shell that remembers: questions, rules, the journal, and ends."""

import threading
from pathlib import Path
from typing import Any

import pytest
from support.running_dialect import router_of
from support.sandboxes import begun, cancelled_when_begun, none_left, sleeping

from handrail import Question, ToolRouter, Verdict, Workspace
from handrail.kernel.journal.journal import JournalEntry
from handrail.model.limits import Limits
from handrail.policy.rules import from_text
from handrail.tools.tool import ToolResult

pytestmark = pytest.mark.sandbox


@pytest.fixture
def router(workspace: Workspace) -> ToolRouter:
    return router_of(workspace)


def run(router: ToolRouter, command: str, **more: Any) -> ToolResult:
    return router.call("shell", {"command": command, **more})


def output(result: ToolResult) -> Any:
    return result.output


def code(result: ToolResult) -> str:
    return result.error.code if result.error else ""


def message(result: ToolResult) -> str:
    return result.error.message if result.error else ""


def test_shell_call_keeps_state_and_reports_it(router: ToolRouter) -> None:
    assert run(router, "mkdir inner; cd inner; word=kept").output == {"output": "", "code": 0, "ended": ""}
    assert run(router, "echo $word; basename $PWD; false").output == {"output": "kept\ninner\n", "code": 1, "ended": ""}


def test_shell_call_question_shows_directory_and_change(root: Path) -> None:
    asked: list[Question] = []

    def allow(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.allow()

    with Workspace(str(root)) as workspace:
        router = router_of(workspace, allow)
        for command in ("mkdir -p a/b; cd a/b", "ls", "PWD=/somewhere; ls() { true; }", "ls", "cd /", "ls"):
            assert run(router, command).success
    assert [each.directory for each in asked] == ["", "a/b", "a/b", "a/b", "a/b", "/"]
    assert [bool(each.shell) for each in asked] == [False, False, False, True, True, True]


def test_rule_with_words_covers_plain_shell_but_not_changed_one(root: Path) -> None:
    with Workspace(str(root), approve="ask") as workspace:
        for words in ('["ls"]', '["umask", "077"]'):
            workspace._rules.add(from_text("shell", words, "a test", Limits()), "project")
        router = router_of(workspace)
        for command in ("ls", "ls", "umask 077"):
            assert run(router, command).success
        assert code(run(router, "ls")) == "approval_denied"


def test_shell_call_changes_are_recorded_and_undone(workspace: Workspace, root: Path, router: ToolRouter) -> None:
    (root / "file").write_text("old\n")
    run(router, "cd /tmp; true")
    result = run(router, f"echo new > {root}/file")
    assert result.files_affected == ["file"]
    assert workspace.history().undo().done
    assert (root / "file").read_text() == "old\n"


def test_background_changes_of_shell_are_recorded_at_next_call(root: Path, router: ToolRouter) -> None:
    run(router, "mkfifo go; (read line < go; echo made > later; echo done > go) & true")
    with open(root / "go", "w") as go:
        go.write("on\n")
    with open(root / "go") as done:
        assert done.read() == "done\n"
    run(router, "true")
    entries = [each for each in router._session.services.journal.backwards() if isinstance(each, JournalEntry)]
    found = [each for each in entries if any(file.path == "later" for file in each.files)]
    assert [each.origin.about.startswith("(running on)") for each in found] == [True]


def test_timeout_ends_shell_until_restart(router: ToolRouter) -> None:
    late = run(router, "echo so far; sleep 100", seconds=0.5)
    assert late.output == {"output": "so far\n", "code": None, "ended": "timeout"}
    again = run(router, "echo again")
    assert code(again) == "shell_ended"
    assert "took too long" in message(again)
    assert router.call("restart").success
    assert output(run(router, "echo again"))["output"] == "again\n"


def test_exit_ends_shell_and_says_its_code(router: ToolRouter) -> None:
    assert run(router, "exit 3").output == {"output": "", "code": 3, "ended": "exited"}
    assert "exit code 3" in message(run(router, "true"))


def test_cancelled_call_leaves_nothing_running(router: ToolRouter) -> None:
    marker = "71.25"
    result = router.call("shell", {"command": f"sleep {marker}"}, cancel=cancelled_when_begun(marker))
    assert output(result)["ended"] == "cancelled"
    assert none_left(lambda: sleeping(marker))


def test_two_calls_use_shell_one_after_the_other(router: ToolRouter) -> None:
    results: list[ToolResult] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(run(router, f"x=$((x+{n})); echo $x"))) for n in (1, 1, 1, 1)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(output(each)["output"] for each in results) == ["1\n", "2\n", "3\n", "4\n"]


def test_new_protected_file_ends_shell_before_command(root: Path) -> None:
    (root / ".handrailignore").write_text("secret\n")
    with Workspace(str(root), approve="auto", limits={"protect_seconds": 0}) as workspace:
        router = router_of(workspace)
        assert run(router, "true").success
        (root / "secret").write_text("key")
        result = run(router, "cat secret")
    assert code(result) == "shell_ended"


def test_closed_session_ends_shell(root: Path) -> None:
    marker = "72.25"
    with Workspace(str(root), approve="auto") as workspace:
        run(router_of(workspace), f"sleep {marker} & true")
        assert begun(marker)
    assert none_left(lambda: sleeping(marker))
