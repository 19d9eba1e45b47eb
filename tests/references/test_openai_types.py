"""Tests exports, items and scripted sessions against the package `openai`."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail import ToolRouter, Workspace

responses = pytest.importorskip("openai.types.responses")
input_items = pytest.importorskip("openai.types.responses.response_input_item_param")
pydantic = pytest.importorskip("pydantic")


def shell_item(number: int, *commands: str, **action: Any) -> Any:
    """Return a `shell_call` as the SDK gives it to its caller."""
    return responses.ResponseFunctionShellToolCall.model_validate(
        {
            "type": "shell_call",
            "id": f"sh_{number}",
            "call_id": f"call_{number}",
            "status": "completed",
            "environment": {"type": "local"},
            "action": {"commands": [*commands], "timeout_ms": None, "max_output_length": None, **action},
        }
    )


def patch_item(number: int, kind: str, path: str, diff: str | None = None) -> Any:
    """Return an `apply_patch_call` as the SDK gives it to its caller."""
    operation = {"type": kind, "path": path} | ({} if diff is None else {"diff": diff})
    return responses.ResponseApplyPatchToolCall.model_validate(
        {
            "type": "apply_patch_call",
            "id": f"ap_{number}",
            "call_id": f"call_{number}",
            "status": "completed",
            "operation": operation,
        }
    )


def answered(router: ToolRouter, item: Any) -> dict[str, Any]:
    """Return the output item after the SDK's own type has accepted it whole."""
    answer = router.call_openai_item(item)
    adapter = pydantic.TypeAdapter(responses.ResponseInputItemParam)
    assert {*adapter.validate_python(answer)} == {*answer}
    assert answer.get("call_id", answer.get("id")) == item.call_id
    return answer


def test_exported_tools_are_accepted_by_openai_types(root: Path) -> None:
    adapter = pydantic.TypeAdapter(responses.ToolParam)
    with Workspace(str(root)) as workspace:
        assert workspace.tools("openai").openai_responses() == [{"type": "shell"}, {"type": "apply_patch"}]
        for dialect in ("openai", "codex-2026", "bash"):
            for tool in workspace.tools(dialect).openai_responses(custom=True):
                assert {*adapter.validate_python(tool)} == {*tool}


def test_session_of_openai_ends_with_expected_tree(root: Path) -> None:
    script: list[tuple[Any, str]] = [
        (shell_item(0, "ls"), '"exit_code": 0'),
        (patch_item(1, "create_file", "src/app.py", "+def f():\n+    return 1"), "Created src/app.py"),
        (patch_item(2, "create_file", "src/old.py", "+x = 1"), "Created src/old.py"),
        (shell_item(3, "cat src/app.py", "wc -l < src/app.py"), "return 1"),
        (patch_item(4, "update_file", "src/app.py", "@@ def f():\n-    return 1\n+    return 2"), "completed"),
        (patch_item(5, "update_file", "src/app.py", "@@\n-nowhere\n+x"), "failed"),
        (patch_item(6, "update_file", "src/app.py", " def f():\n+    # two\n     return 2"), "completed"),
        (patch_item(7, "delete_file", "src/old.py"), "Deleted src/old.py"),
        (patch_item(8, "delete_file", "../x"), "outside the workspace"),
        (shell_item(9, "echo one > out.txt", "exit 3", "cat out.txt"), '"exit_code": 3'),
        (shell_item(10, "sleep 60", timeout_ms=500), "timeout"),
        (shell_item(11, "echo long", max_output_length=2), '"max_output_length": 2'),
        (shell_item(12, "cat nothing"), "No such file"),
        (patch_item(13, "update_file", "out.txt", "-one\n+two"), "Updated out.txt"),
        (shell_item(14, "cat out.txt src/app.py"), "# two"),
    ]
    with Workspace(str(root), approve="auto") as workspace:
        router = workspace.tools("openai")
        for item, expected in script:
            assert expected in json.dumps(answered(router, item)), (item, expected)
    assert tree(root) == {"src/app.py": "def f():\n    # two\n    return 2\n", "out.txt": "two\n"}


def test_local_shell_item_runs_with_directory_and_variables(root: Path) -> None:
    (root / "src").mkdir()
    action = {"type": "exec", "command": ["sh", "-c", "echo $X; pwd"], "env": {"X": "a b"}}
    item = responses.response_output_item.LocalShellCall.model_validate(
        {
            "type": "local_shell_call",
            "id": "l",
            "call_id": "c",
            "status": "completed",
            "action": {**action, "working_directory": f"{root}/src"},
        }
    )
    with Workspace(str(root), approve="auto") as workspace:
        output = json.loads(answered(workspace.tools("openai"), item)["output"])
        refused = item.model_copy(update={"action": item.action.model_copy(update={"user": "root"})})
        assert "another user" in answered(workspace.tools("openai"), refused)["output"]
    assert output["stdout"] == f"a b\n{root}/src\n"


def test_refused_shell_item_says_why_and_not_how_to_allow(root: Path) -> None:
    with Workspace(str(root), approve="never") as workspace:
        answer = answered(workspace.tools("openai"), shell_item(0, "touch a", "touch b"))
    (output,) = answer["output"]
    assert "not approved" in output["stderr"]
    assert "approve=" not in output["stderr"]
    assert tree(root) == {}


def test_item_that_is_no_call_is_refused(root: Path) -> None:
    with Workspace(str(root)) as workspace, pytest.raises(ValueError, match="is not a tool call"):
        workspace.tools("openai").call_openai_item({"type": "message"})


def function(number: int, name: str, **arguments: Any) -> Any:
    """Return a `function_call` as the SDK gives it to its caller."""
    given = json.dumps(arguments)
    return responses.ResponseFunctionToolCall(
        type="function_call", call_id=f"call_{number}", name=name, arguments=given
    )


def custom(number: int, name: str, text: str) -> Any:
    """Return a `custom_tool_call` as the SDK gives it to its caller."""
    return responses.ResponseCustomToolCall(type="custom_tool_call", call_id=f"call_{number}", name=name, input=text)


def test_session_of_codex_2026_ends_with_expected_tree(root: Path) -> None:
    def patch(*lines: str) -> str:
        return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])

    script: list[tuple[Any, str]] = [
        (function(0, "exec_command", cmd="ls -a"), "exit_code"),
        (custom(1, "apply_patch", patch("*** Add File: a.py", "+A = 1", "+B = 1")), "a.py"),
        (custom(2, "apply_patch", patch("*** Add File: b.py", "+import a")), "b.py"),
        (function(3, "exec_command", cmd="cat a.py"), "B = 1"),
        (custom(4, "apply_patch", patch("*** Update File: a.py", "@@", "-A = 1", "+A = 2")), "a.py"),
        (custom(5, "apply_patch", patch("*** Update File: a.py", "@@", "-nowhere", "+x")), "not in the file"),
        (
            custom(6, "apply_patch", patch("*** Update File: b.py", "*** Move to: c.py", "@@", "-import a", "+1")),
            "c.py",
        ),
        (function(7, "exec_command", cmd="exit 4"), "4"),
        (function(8, "exec_command", cmd="cat", tty=True, yield_time_ms=300), "session_id"),
        (function(9, "write_stdin", session_id=0, chars="hello\n", yield_time_ms=5000), "hello"),
        (function(10, "write_stdin", session_id=0, chars="\u0004", yield_time_ms=30000), "exit_code"),
        (function(11, "exec_command", cmd="mkdir d && echo x > d/e.txt"), "exit_code"),
        (function(12, "exec_command", cmd="pwd", workdir="d"), "/d"),
        (function(13, "exec_command", cmd="true", workdir="../.."), "outside"),
        (custom(14, "apply_patch", patch("*** Delete File: d/e.txt")), "e.txt"),
    ]
    with Workspace(str(root), approve="auto") as workspace:
        router = workspace.tools("codex-2026")
        session = 0
        for item, expected in script:
            item.arguments = getattr(item, "arguments", "").replace('"session_id": 0', f'"session_id": {session}')
            answer = answered(router, item)["output"]
            assert expected in answer, (item, answer)
            session = json.loads(answer).get("session_id", session) if "session_id" in answer else session
    assert tree(root) == {"a.py": "A = 2\nB = 1\n", "c.py": "1\n"}


def test_session_of_bash_ends_with_expected_tree(root: Path) -> None:
    commands = [
        ("ls", '"returncode'),
        ("mkdir src", "0"),
        ("printf 'A = 1\\n' > src/a.py", "0"),
        ("cat src/a.py", "A = 1"),
        ("sed -i s/1/2/ src/a.py", "0"),
        ("cat src/a.py", "A = 2"),
        ("cat nothing", "No such file"),
        ("exit 7", "7"),
        ("cd src", "0"),
        ("pwd", root.name),
        ("grep -n A -r .", "src/a.py:1:A = 2"),
        ("cp src/a.py b.py", "0"),
        ("seq 100000 | tail -n 1", "100000"),
        ("rm b.py", "0"),
        ("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "COMPLETE_TASK"),
    ]
    assert len(commands) == 15
    with Workspace(str(root), approve="auto") as workspace:
        router = workspace.tools("bash")
        for number, (command, expected) in enumerate(commands):
            assert expected in answered(router, function(number, "bash", command=command))["output"], command
    assert tree(root) == {"src/a.py": "A = 2\n"}


def tree(root: Path) -> dict[str, str]:
    return {str(each.relative_to(root)): each.read_text() for each in root.rglob("*") if each.is_file()}
