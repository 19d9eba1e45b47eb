"""Tests hooks through the library: what they are told, what they decide and what they change."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.hooks import HookWriter, answers, own, table

from handrail import Question, Verdict, Workspace
from handrail.workspace import default_session


@pytest.fixture
def root(root: Path) -> Path:
    (root / "a.txt").write_text("one\n")
    return root


def test_hook_input_has_the_fields_of_the_contract(root: Path, hook: HookWriter, tmp_path: Path) -> None:
    seen = tmp_path / "seen.json"
    command = hook(f"cat > {seen}; pwd >> {seen}.cwd")
    with Workspace(root, approve="auto", hooks=table("PreToolUse", command)) as workspace:
        result = workspace.tools("file").call("file.read", {"path": "a.txt"}, call_id="call-7")
        assert result.success
        session = workspace.session().id.rpartition("-")[0]
    given = json.loads(seen.read_text())
    assert list(given) == [
        "session_id",
        "transcript_path",
        "cwd",
        "permission_mode",
        "hook_event_name",
        "tool_name",
        "tool_input",
        "tool_use_id",
    ]
    assert given["cwd"] == workspace.root
    assert given["session_id"].startswith(session[:8])
    assert Path(given["transcript_path"]).name == f"{given['session_id']}.jsonl"
    assert (given["permission_mode"], given["hook_event_name"]) == ("bypassPermissions", "PreToolUse")
    assert (given["tool_name"], given["tool_input"], given["tool_use_id"]) == ("file.read", {"path": "a.txt"}, "call-7")
    assert Path(f"{seen}.cwd").read_text().strip() == workspace.root


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({"approve": "ask"}, "default"),
        ({"approve": "edit"}, "acceptEdits"),
        ({"approve": "auto"}, "bypassPermissions"),
        ({"approve": "host"}, "bypassPermissions"),
        ({"approve": "never"}, "dontAsk"),
        ({"read_only": True}, "plan"),
    ],
)
def test_policy_is_named_in_the_words_of_the_contract(
    root: Path, hook: HookWriter, tmp_path: Path, settings: dict[str, Any], mode: str
) -> None:
    hooks = table("PreToolUse", hook(f"cat > {tmp_path}/seen"))
    with Workspace(root, hooks=hooks, **settings) as workspace:
        assert workspace.tools("file").call("file.read", {"path": "a.txt"}).success
    assert json.loads((tmp_path / "seen").read_text())["permission_mode"] == mode


@pytest.mark.parametrize(
    ("matcher", "runs"),
    [
        ("", True),
        ("*", True),
        ("file.read", True),
        ("file.file.read", True),
        ("Bash|file.read", True),
        ("file.re", False),
        ("^file\\.(read|write)$", True),
        ("file.(patch|write)", False),
        ("Read", False),
    ],
)
def test_matcher_names_tools_as_the_contract_does(root: Path, hook: HookWriter, matcher: str, runs: bool) -> None:
    hooks = table("PreToolUse", hook("echo no >&2; exit 2"), matcher=matcher)
    with Workspace(root, approve="auto", hooks=hooks) as workspace:
        assert workspace.tools("file").call("file.read", {"path": "a.txt"}).success is not runs


def test_pattern_chooses_calls_by_their_input(root: Path, hook: HookWriter) -> None:
    hooks = table("PreToolUse", hook("exit 2"), pattern=r"a\.txt")
    (root / "b.txt").write_text("two\n")
    with Workspace(root, approve="auto", hooks=hooks) as workspace:
        tools = workspace.tools("file")
        assert not tools.call("file.read", {"path": "a.txt"}).success
        assert tools.call("file.read", {"path": "b.txt"}).success


def test_exit_code_two_refuses_with_its_error_text(root: Path, hook: HookWriter) -> None:
    hooks = table("PreToolUse", hook("echo 'not on Fridays' >&2; exit 2"))
    with Workspace(root, approve="auto", hooks=hooks) as workspace:
        result = workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"})
    assert result.error is not None
    assert result.error.code == "approval_denied"
    assert "a hook of the user refused it: not on Fridays" in result.error.message
    assert not (root / "b.txt").exists()


def test_deny_in_json_refuses_with_its_reason(root: Path, hook: HookWriter) -> None:
    body = own(hookEventName="PreToolUse", permissionDecision="deny", permissionDecisionReason="no")
    with Workspace(root, approve="auto", hooks=table("PreToolUse", hook(body))) as workspace:
        result = workspace.tools("file").call("file.read", {"path": "a.txt"})
    assert result.error is not None
    assert "refused it: no" in result.error.message


def test_allow_approves_without_a_question(root: Path, hook: HookWriter) -> None:
    hooks = table("PreToolUse", hook(own(permissionDecision="allow")))
    with Workspace(root, hooks=hooks) as workspace:
        assert workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"}).success
        assert workspace.history().entries()[0].entry.origin.by == "hook"


def test_ask_asks_although_the_policy_approves(root: Path, hook: HookWriter) -> None:
    asked: list[Question] = []

    def approver(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.allow()

    hooks = table("PreToolUse", hook(own(permissionDecision="ask", permissionDecisionReason="looks\x1b[2Jodd")))
    with Workspace(root, approve="auto", approver=approver, hooks=hooks) as workspace:
        assert workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"}).success
    assert [question.doubt for question in asked] == ["a hook asks for the user's approval: looks\\x1b[2Jodd"]


def test_updated_input_is_what_the_user_is_asked_about(root: Path, hook: HookWriter) -> None:
    asked: list[Question] = []

    def approver(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.allow()

    body = own(updatedInput={"path": "c.txt", "content": "changed\n"})
    with Workspace(root, approver=approver, hooks=table("PreToolUse", hook(body))) as workspace:
        assert workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"}).success
    assert (root / "c.txt").read_text() == "changed\n"
    assert not (root / "b.txt").exists()
    assert asked[0].params == {"path": "c.txt", "content": "changed\n"}


def test_updated_input_is_checked_against_the_schema(root: Path, hook: HookWriter) -> None:
    body = own(permissionDecision="allow", updatedInput={"file": "c.txt"})
    with Workspace(root, approve="auto", hooks=table("PreToolUse", hook(body))) as workspace:
        result = workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"})
    assert result.error is not None
    assert result.error.code != "internal_error"
    assert not list(root.glob("[bc].txt"))


def test_context_reaches_the_model_as_a_hint(root: Path, hook: HookWriter) -> None:
    hooks = table("PreToolUse", hook(own(additionalContext="the build is broken")), matcher="file.read")
    hooks |= table("PostToolUse", hook(own(additionalContext="line 1 is odd"), "post"), matcher="file.read")
    with Workspace(root, hooks=hooks) as workspace:
        result = workspace.tools("file").call("file.read", {"path": "a.txt"})
    assert "Warning: the build is broken\nWarning: line 1 is odd" in result.text


def test_second_hook_sees_the_input_of_the_first(root: Path, hook: HookWriter, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    first, second = hook(own(updatedInput={"path": "a.txt"}), "first"), hook(f"cat > {seen}", "second")
    hooks = {"PreToolUse": [{"hooks": [{"command": first}, {"command": second}]}]}
    with Workspace(root, hooks=hooks) as workspace:
        assert workspace.tools("file").call("file.read", {"path": "missing.txt"}).success
    assert json.loads(seen.read_text())["tool_input"] == {"path": "a.txt"}


def test_allow_counts_only_for_the_input_that_it_saw(root: Path, hook: HookWriter) -> None:
    asked: list[Question] = []
    first = hook(own(permissionDecision="allow"), "first")
    second = hook(own(updatedInput={"path": "c.txt", "content": "y"}), "second")
    third = {"pattern": "c.txt", "hooks": [{"command": hook(own(additionalContext="c"), "third")}]}
    hooks = {"PreToolUse": [{"hooks": [{"command": first}, {"command": second}]}, third]}

    def approver(question: Question) -> Verdict:
        asked.append(question)
        return Verdict.allow()

    with Workspace(root, approver=approver, hooks=hooks) as workspace:
        result = workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"})
    assert result.warnings == ["c"]
    assert [question.params["path"] for question in asked] == ["c.txt"]


def test_post_hook_gets_the_response_and_may_replace_it(root: Path, hook: HookWriter, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    body = f"cat > {seen}\n" + own(hookEventName="PostToolUse", updatedToolOutput="hidden")
    with Workspace(root, approve="auto", hooks=table("PostToolUse", hook(body))) as workspace:
        result = workspace.tools("claude-code").call("Read", {"file_path": str(root / "a.txt")})
    assert result.output == "hidden"
    given = json.loads(seen.read_text())
    assert "one" in given["tool_response"]
    assert given["duration_ms"] > 0


def test_post_output_of_another_form_is_a_warning(root: Path, hook: HookWriter) -> None:
    hooks = table("PostToolUse", hook(own(updatedToolOutput="text")))
    with Workspace(root, hooks=hooks) as workspace:
        result = workspace.tools("file").call("file.read", {"path": "a.txt"})
    assert isinstance(result.output, dict)
    assert any("another form" in each for each in result.warnings)


def test_post_block_and_exit_two_tell_the_model(root: Path, hook: HookWriter) -> None:
    first, second = answers({"decision": "block", "reason": "tests fail"}), "echo worse >&2; exit 2"
    hooks = {"PostToolUse": [{"hooks": [{"command": hook(first, "one")}, {"command": hook(second, "two")}]}]}
    with Workspace(root, hooks=hooks) as workspace:
        result = workspace.tools("file").call("file.read", {"path": "a.txt"})
    assert result.success
    assert result.warnings == ["tests fail", "worse"]


def test_failure_hook_gets_the_error(root: Path, hook: HookWriter, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    body = f"cat > {seen}\n" + own(additionalContext="look in src/")
    with Workspace(root, hooks=table("PostToolUseFailure", hook(body))) as workspace:
        result = workspace.tools("file").call("file.read", {"path": "missing.txt"})
    given = json.loads(seen.read_text())
    assert given["hook_event_name"] == "PostToolUseFailure"
    assert "missing.txt" in given["error"]
    assert given["is_interrupt"] is False
    assert "look in src/" in result.warnings


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("exit 1", "exit code 1"),
        ("kill -9 $$", "it was killed"),
        ("echo '{\"hookSpecificOutput\": '", "not valid JSON"),
        ("echo fine", "not a JSON object"),
        (answers({"hookSpecificOutput": {"permissionDecision": "maybe"}}), "must be one of"),
        (answers({"hookSpecificOutput": {"updatedInput": "text"}}), "must be an object"),
        (answers({"hookSpecificOutput": {"permissionDecision": ["allow"]}}), "must be one of"),
        ("sleep 600", "longer than 0.2 seconds"),
    ],
)
@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
def test_broken_hook_refuses_what_it_must_judge(root: Path, hook: HookWriter, body: str, why: str, event: str) -> None:
    told: list[str] = []
    hooks = {event: [{"hooks": [{"command": hook(body), "timeout": 0.2 if "sleep" in body else 60}]}]}
    if event == "PermissionRequest" and "must be" in why:
        hooks[event][0]["hooks"][0]["command"] = hook(own(decision={"behavior": "perhaps"}))
        why = "must be one of"
    with Workspace(root, approver=lambda _: True, tell=told.append, hooks=hooks) as workspace:
        result = workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"})
    assert result.error is not None
    assert why in result.error.message
    assert not (root / "b.txt").exists()
    assert any("Repair or remove the hook" in line for line in told)


def test_broken_post_hook_is_a_warning(root: Path, hook: HookWriter) -> None:
    command, told = hook("echo no such tool >&2; echo more >&2; exit 3"), list[str]()
    with Workspace(root, hooks=table("PostToolUse", command), tell=told.append) as workspace:
        result = workspace.tools("file").call("file.read", {"path": "a.txt"})
    assert result.success
    assert result.warnings == ["a hook of the user failed after the call: it ended with exit code 3"]
    (line,) = told
    assert f"`{command}` (PostToolUse)" in line
    assert line.endswith(": it ended with exit code 3: no such tool")


def test_permission_hook_answers_instead_of_the_user(root: Path, hook: HookWriter) -> None:
    command = hook(own(hookEventName="PermissionRequest", decision={"behavior": "allow"}))
    with Workspace(root, hooks=table("PermissionRequest", command)) as workspace:
        assert workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"}).success


def test_permission_hook_denies_with_its_message(root: Path, hook: HookWriter) -> None:
    command = hook(own(decision={"behavior": "deny", "message": "ask me later"}))
    with Workspace(root, approver=lambda _: True, hooks=table("PermissionRequest", command)) as workspace:
        result = workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"})
    assert result.error is not None
    assert "ask me later" in result.error.message


def test_permission_hook_is_not_asked_what_a_policy_decides(root: Path, hook: HookWriter) -> None:
    with Workspace(root, approve="auto", hooks=table("PermissionRequest", hook("exit 2"))) as workspace:
        assert workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"}).success


def test_permission_hook_changes_the_input_once(root: Path, hook: HookWriter) -> None:
    command = hook(own(decision={"behavior": "allow", "updatedInput": {"path": "c.txt", "content": "y"}}))
    with Workspace(root, hooks=table("PermissionRequest", command)) as workspace:
        assert workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"}).success
    assert (root / "c.txt").read_text() == "y"
    assert not (root / "b.txt").exists()


def test_permission_hook_that_changes_again_is_broken(root: Path, hook: HookWriter) -> None:
    answer = own(decision={"behavior": "allow", "updatedInput": {"path": "NUMBER", "content": "x"}})
    body = answer.replace("'END'", "END").replace("NUMBER", "$RANDOM$RANDOM")
    with Workspace(root, hooks=table("PermissionRequest", hook(body))) as workspace:
        result = workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"})
    assert result.error is not None
    assert "cannot change" in result.error.message
    assert [path.name for path in root.iterdir()] == ["a.txt"]


def test_system_message_is_told_to_the_user(root: Path, hook: HookWriter) -> None:
    told: list[str] = []
    command = hook(answers({"systemMessage": "a new\x1b[1m day"}))
    with Workspace(root, tell=told.append, hooks=table("PreToolUse", command)) as workspace:
        assert workspace.tools("file").call("file.read", {"path": "a.txt"}).success
    assert told == ["hook: a new\\x1b[1m day"]


def test_session_log_has_what_hooks_decided(root: Path, hook: HookWriter) -> None:
    command = hook(own(permissionDecision="allow", updatedInput={"path": "c.txt", "content": "y"}))
    with Workspace(root, hooks=table("PreToolUse", command)) as workspace:
        assert workspace.tools("file").call("file.write", {"path": "b.txt", "content": "x"}).success
        path = default_session(workspace).services.state.session_log(default_session(workspace).id)
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    (line,) = (each for each in lines if each["event"] == "hook")
    assert (line["hook"], line["decision"], line["input"]["path"]) == ("PreToolUse", "allow", "c.txt")


def test_parallel_calls_run_their_hooks(root: Path, hook: HookWriter) -> None:
    hooks = table("PreToolUse", hook(own(additionalContext="seen")))
    with Workspace(root, hooks=hooks) as workspace, ThreadPoolExecutor(8) as pool:
        tools = workspace.tools("file")
        results = list(pool.map(lambda _: tools.call("file.read", {"path": "a.txt"}), range(16)))
    assert [result.warnings for result in results] == [["seen"]] * 16
