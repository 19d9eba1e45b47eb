"""Works in a process with thousands of open files: `select` cannot handle the numbers of new handles."""

import os
import resource
from pathlib import Path
from typing import Any

import pytest
from support.forked_processes import processes, start

from handrail import Workspace

HELD = 2000
NEEDED = HELD + 500


def _call(workspace: Workspace, dialect: str, tool: str, params: dict[str, Any]) -> Any:
    result = workspace.call(dialect, tool, params)
    assert result.error is None, result.error
    return result.output


def _work(root: str, send: Any) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(HELD)]
    with open(f"{root}/file.txt", "w", encoding="utf-8") as file:
        file.write("needle\n")
    with Workspace(root, approve="auto", protect=["*.key"]) as workspace:
        shell = [_call(workspace, "codex", "shell", {"command": f"echo {n}; echo x >&2"}) for n in range(3)]
        # The child of this command keeps the pipes open after the command has ended.
        _call(workspace, "gemini", "run_shell_command", {"command": "sleep 30 & echo begun"})
        screen = _call(workspace, "codex", "exec_command", {"session_id": "s", "cmd": "cat"})["output"]
        while "a line" not in screen:
            screen += _call(workspace, "codex", "write_stdin", {"session_id": "s", "chars": "a line\n"})["output"]
        found = {
            "stdout": [each["stdout"] for each in shell],
            "stderr": [each["stderr"] for each in shell],
            "search": _call(workspace, "copilot", "grep_search", {"pattern": "needle"}),
            "lowest": min(os.open(os.devnull, os.O_RDONLY), HELD),
        }
    for fd in held:
        os.close(fd)
    send.send(found)


def test_workspace_with_2000_open_files_runs_commands_and_searches(root: Path) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard != resource.RLIM_INFINITY and hard < NEEDED:
        pytest.skip("the system allows fewer open files")
    receive, send = processes.Pipe(duplex=False)
    child = start(_work, str(root), send)
    send.close()
    found = receive.recv()  # if the child failed, this raises EOFError and the traceback is on stderr
    child.join()
    assert found["lowest"] == HELD
    assert (found["stdout"], found["stderr"]) == (["0\n", "1\n", "2\n"], ["x\n"] * 3)
    assert "file.txt:1: needle" in found["search"]
