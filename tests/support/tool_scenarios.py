"""Lists the scenarios of every tool by kind, from the contracts and from the declaration of the tool.

The catalogue requires at least ten scenarios for each tool: success, a path outside, missing and wrong
parameters, the tool's own errors, empty and large files, special characters, Windows and POSIX paths.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handrail import Workspace
from handrail.dialects import NAMES, load
from handrail.kernel.host.state_dir import State
from handrail.tools.tool import Tool
from support import contract_cases

FEWEST = 10
SUCCESS, OWN, PARAMETERS = "success", "the tool's own errors", "missing and wrong parameters"
OUTSIDE, SYSTEMS = "a path outside", "Windows and POSIX paths"
SIZES, SPECIAL = "empty and large", "special characters"
KINDS = (SUCCESS, OUTSIDE, PARAMETERS, OWN, SIZES, SPECIAL, SYSTEMS)
NEED_A_PATH = (OUTSIDE, SYSTEMS)

_SIZE = re.compile(
    r"\b(empty|large|long|thousand|much|nothing|beyond|limit|many|deep|most|hundred|too)\b", re.IGNORECASE
)
_BULK = re.compile(r"^(lines|fill|files) \S+ \d{3,}|^bytes \S+ $", re.MULTILINE)
_WINDOWS = re.compile(r'"(?:[A-Za-z]:\\\\|\\\\\\\\|[^"]*[a-z]\\\\[a-z])')

# A call of each tool that succeeds in the tree of `plant`; `{root}` is its absolute path.
EXAMPLES: dict[str, dict[str, dict[str, Any]]] = {
    "gemini": {
        "list_directory": {"path": "{root}/src"},
        "read_file": {"absolute_path": "{root}/a.txt"},
        "write_file": {"file_path": "{root}/new.txt", "content": "x"},
        "replace": {"file_path": "{root}/a.txt", "old_string": "one", "new_string": "1"},
        "run_shell_command": {"command": "true", "directory": "src"},
        "search_file_content": {"pattern": "one", "path": "{root}"},
        "glob": {"pattern": "*", "path": "{root}"},
    },
    "context": {
        "grep": {"pattern": "one", "path": "src"},
        "glob": {"pattern": "*", "path": "src"},
        "search": {"query": "one", "path": "src"},
        "list_directory": {"path": "src"},
        "read_file": {"path": "a.txt"},
        "create_file": {"path": "new.txt", "content": "x"},
        "update_file": {"path": "a.txt", "content": "x"},
        "append_file": {"path": "a.txt", "content": "x"},
        "replace_in_file": {"path": "a.txt", "find": "one", "replace": "1"},
        "edit_lines": {"path": "a.txt", "operation": "delete", "start_line": 1},
        "delete_file": {"path": "a.txt"},
    },
    "copilot": {
        "create_file": {"path": "new.txt", "content": "x"},
        "read_file": {"path": "a.txt"},
        "replace_string_in_file": {"path": "a.txt", "old_string": "one", "new_string": "1"},
        "list_dir": {"path": "src"},
        "file_search": {"pattern": "*", "base_path": "src"},
        "grep_search": {"pattern": "one"},
        "run_in_terminal": {"command": "true"},
        "terminal_last_command": {},
        "create_directory": {"path": "new"},
        "fetch_webpage": {"url": "http://127.0.0.1/"},
    },
    "file": {
        "file.read": {"path": "a.txt"},
        "file.write": {"path": "new.txt", "content": "x"},
        "file.patch": {"path": "a.txt", "patches": [{"find": "one", "replace": "1"}]},
        "file.delete": {"path": "a.txt"},
        "file.list": {"path": "src"},
        "file.search": {"pattern": "one", "path": "src"},
    },
    "codex": {
        "list_dir": {"path": "src"},
        "read_file": {"path": "a.txt"},
        "grep_files": {"pattern": "one", "path": "src"},
        "apply_patch_json": {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n"},
        "apply_patch_freeform": {"patch": "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch\n"},
        "shell": {"command": "true", "workdir": "src"},
        "exec_command": {"session_id": "s", "cmd": "true", "workdir": "src"},
        "write_stdin": {"session_id": "s", "chars": "x"},
    },
    "claude-code": {
        "Read": {"file_path": "{root}/a.txt"},
        "Write": {"file_path": "{root}/new.txt", "content": "x"},
        "Edit": {"file_path": "{root}/a.txt", "old_string": "one", "new_string": "1"},
        "NotebookEdit": {"notebook_path": "{root}/n.ipynb", "cell_id": "cell-0", "new_source": "1"},
        "Bash": {"command": "true"},
        "TaskStop": {"task_id": "1"},
        "Glob": {"pattern": "*", "path": "{root}/src"},
        "Grep": {"pattern": "one", "path": "{root}/src"},
        "WebFetch": {"url": "http://127.0.0.1/", "prompt": "x"},
    },
    "claude": {
        "str_replace_based_edit_tool": {"command": "view", "path": "{root}/a.txt"},
        "bash": {"command": "true"},
        "memory": {"command": "view", "path": "/memories"},
    },
    "codex-2026": {
        "exec_command": {"cmd": "true", "workdir": "src"},
        "write_stdin": {"session_id": 1, "chars": "x"},
        "apply_patch": {"input": "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch\n"},
        "view_image": {"path": "dot.png"},
        "request_permissions": {"permissions": {"file_system": {"write": ["{root}/x"]}}},
    },
    "bash": {"bash": {"command": "true"}},
    "claude-agent": {
        "bash": {"command": "true"},
        "read": {"file_path": "a.txt"},
        "write": {"file_path": "new.txt", "content": "x"},
        "edit": {"file_path": "a.txt", "old_string": "one", "new_string": "1"},
        "glob": {"pattern": "*", "path": "src"},
        "grep": {"pattern": "one", "path": "src"},
    },
    "gemini-3": {
        "list_directory": {"dir_path": "src"},
        "read_file": {"file_path": "a.txt"},
        "read_many_files": {"include": ["*.txt"]},
        "write_file": {"file_path": "new.txt", "content": "x"},
        "replace": {"file_path": "a.txt", "instruction": "Say 1.", "old_string": "one", "new_string": "1"},
        "grep_search": {"pattern": "one", "dir_path": "src"},
        "glob": {"pattern": "*", "dir_path": "src"},
        "run_shell_command": {"command": "true", "dir_path": "src"},
    },
    "openai": {
        "shell": {"commands": ["true"]},
        "apply_patch": {"type": "update_file", "path": "a.txt", "diff": "-one\n+1"},
    },
}
OTHER_EXAMPLES: dict[tuple[str, str], dict[str, Any]] = {
    ("memory", name): {"command": "rename", "old_path": "/memories/a.txt", "new_path": "/memories/moved"}
    for name in ("old_path", "new_path")
} | {("apply_patch", "move_to"): {"type": "update_file", "path": "a.txt", "diff": "", "move_to": "moved.txt"}}
"""A call of a tool with several commands that uses a parameter, by tool and parameter."""
NEEDS_MORE = {"terminal_last_command", "fetch_webpage", "write_stdin", "TaskStop", "WebFetch"}
"""Tools that need a server, or a command or session before them. The contracts and tests/kernel/ have such cases."""


READ_FIRST = {("claude-code", "Edit"): "file_path", ("claude-code", "NotebookEdit"): "notebook_path"}
"""Tools that change only files that the session has read, with the parameter that names the file."""
ELSEWHERE = {
    ("copilot", "fetch_webpage"): {SUCCESS: "contracts/test_copilot_fetch.py"},
    ("claude-code", "WebFetch"): {SUCCESS: "contracts/test_claude_code.py"},
}
"""Kinds that no contract can hold, with the tests that cover them."""


def memory_of(root: Path) -> Path:
    """Return the memory directory of a workspace as it was before any call: one file, and a link that leads out."""
    memory = Path(State.of(str(root)).path) / "memories"
    memory.mkdir(mode=0o700, exist_ok=True)
    (memory / "a.txt").write_text("one\n")
    (memory / "moved").unlink(missing_ok=True)
    if not (memory / "out").is_symlink():
        (memory / "out").symlink_to("/")
    return memory


def plant(root: Path) -> None:
    (root / "src").mkdir()
    (root / "a.txt").write_text("one\n")
    (root / "src/b.py").write_text("one\n")
    (root / "n.ipynb").write_text('{"cells": [{"cell_type": "code", "source": "one", "outputs": []}]}')
    (root / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1")


def every_tool() -> list[Tool]:
    return [tool for name in NAMES for tool in load(name).tools.values()]


def example(tool: Tool, root: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(EXAMPLES[tool.dialect][tool.name]).replace("{root}", str(root)))
    return made


def prepare(workspace: Workspace, tool: Tool, params: dict[str, Any]) -> None:
    """Read the file that a call is about to change, if the tool demands that."""
    if name := READ_FIRST.get((tool.dialect, tool.name)):
        workspace.call(tool.dialect, "Read", {"file_path": params[name]})


def example_with(tool: Tool, name: str, root: Path) -> dict[str, Any]:
    """Return a call in which the tool uses the parameter of this name."""
    return dict(OTHER_EXAMPLES.get((tool.name, name)) or example(tool, root))


def wrong_parameters(tool: Tool, root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield pairs: the parameter that the answer must name, and the call."""
    fine = example(tool, root)
    for name, declared in tool.params.fields.items():
        if declared.required:
            yield name, {key: value for key, value in fine.items() if key != name}
        for wrong in ({"x": 1}, 7.5 if declared.kind is not float else "7"):
            yield name, {**fine, name: wrong}
    if not tool.params.unknown_allowed:
        yield "no_such_parameter", {**fine, "no_such_parameter": 1}


OUTSIDE_PATHS = ("{root}/../x", "/etc/passwd", "{root}-evil/x", "/proc/self/environ", "{root}/out/x")
WINDOWS_PATHS = ("C:\\Windows\\x", "\\\\server\\share\\x", "c:/x", "{root}/C:\\x")
ODD_NAMES = (
    "Übung ✓",
    "two  spaces",
    "it's",
    'a "quoted" name',
    "$(id)",
    "-rf",
    "a;b",
    "x\u202ey",
    "line\nbreak",
    "%2e%2e",
)


def path_scenarios(tool: Tool, root: Path, paths: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield pairs: the path, and the call."""
    for name in sorted(tool.params.paths):
        for path in paths:
            given = path.replace("{root}", tool.params.mount or str(root))
            yield given, {**example_with(tool, name, root), name: given}


def contract_kinds() -> dict[tuple[str, str], dict[str, int]]:
    """Count the cases of each kind in the contracts, for each tool."""
    found: dict[tuple[str, str], dict[str, int]] = {}
    for case in contract_cases.read_all():
        counts = found.setdefault((case.dialect, case.tool), dict.fromkeys((*KINDS, "all"), 0))
        counts["all"] += 1
        for kind in _kinds(case):
            counts[kind] += 1
    return found


def _kinds(case: contract_cases.Case) -> set[str]:
    kinds = set()
    steps = [step for step in case.steps if step.tool == case.tool]
    for step in steps:
        codes = [block.argument for block in step.expected if block.kind == "error"]
        kinds.add(_kind_of(codes[0]) if codes else SUCCESS)
    before = "\n".join(f"{block.argument}\n{block.body}" for block in case.before)
    params = "\n".join(step.params for step in case.steps)
    if _SIZE.search(case.title) or _BULK.search(before) or len(params) > 2000:
        kinds.add(SIZES)
    if not (before + params).isascii() or re.search(r'[\'$`;]|\\"|\\u|\\\d', before + params):
        kinds.add(SPECIAL)
    if _WINDOWS.search(params):
        kinds.add(SYSTEMS)
    return kinds - {""}


def _kind_of(code: str) -> str:
    if code.startswith("path_outside"):
        return OUTSIDE
    return {"invalid_parameters": PARAMETERS, "approval_denied": ""}.get(code, OWN)
