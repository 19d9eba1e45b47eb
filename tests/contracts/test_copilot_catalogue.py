"""Compares the declarations of the `copilot` dialect with its catalogue: purposes, parameters and risk levels."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail import Workspace
from handrail.dialects import load


class Entry(NamedTuple):
    """Holds what the catalogue says about a tool. A parameter has a type, a description and perhaps a default."""

    purpose: str
    risk: str
    parameters: dict[str, tuple[Any, ...]]
    optional: tuple[str, ...] = ()


_PATH_TO = "Relative path to the file to "
CATALOGUE = {
    "create_file": Entry(
        "Create a new file with specified content",
        "safe_write",
        {"path": ("string", f"{_PATH_TO}create"), "content": ("string", "Content to write to the file")},
    ),
    "read_file": Entry(
        "Read the contents of a file, optionally specifying line range",
        "read_only",
        {
            "path": ("string", f"{_PATH_TO}read"),
            "start_line": ("integer", "Starting line number (1-indexed, optional)"),
            "end_line": ("integer", "Ending line number (1-indexed, inclusive, optional)"),
        },
        ("start_line", "end_line"),
    ),
    "replace_string_in_file": Entry(
        "Replace a specific string in a file with new content",
        "dangerous",
        {
            "path": ("string", f"{_PATH_TO}modify"),
            "old_string": ("string", "Exact string to find and replace"),
            "new_string": ("string", "String to replace with"),
        },
    ),
    "list_dir": Entry(
        "List contents of a directory",
        "read_only",
        {"path": ("string", "Relative path to directory (default: current directory)", ".")},
        ("path",),
    ),
    "file_search": Entry(
        "Search for files matching a glob pattern",
        "read_only",
        {
            "pattern": ("string", "Glob pattern (e.g., '**/*.py', 'src/**/*.go')"),
            "base_path": ("string", "Base directory to search from (default: current directory)", "."),
        },
        ("base_path",),
    ),
    "grep_search": Entry(
        "Search file contents for text or regex pattern",
        "read_only",
        {
            "pattern": ("string", "Text or regex pattern to search for"),
            "is_regex": ("boolean", "Whether pattern is regex (default: false)", False),
            "file_pattern": ("string", "Glob pattern to limit files searched (default: all files)"),
            "max_results": ("integer", "Maximum number of results to return (default: 100)", 100),
        },
        ("is_regex", "file_pattern", "max_results"),
    ),
    "run_in_terminal": Entry(
        "Execute a shell command",
        "dangerous",
        {
            "command": ("string", "Shell command to execute"),
            "timeout_seconds": ("integer", "Timeout in seconds (default: 30)", 30),
        },
        ("timeout_seconds",),
    ),
    "terminal_last_command": Entry("Retrieve the last shell command that was executed", "read_only", {}),
    "create_directory": Entry(
        "Create a directory structure (equivalent to mkdir -p)",
        "safe_write",
        {"path": ("string", "Relative path to directory to create")},
    ),
    "fetch_webpage": Entry(
        "Fetch content from a web page",
        "dangerous",
        {
            "url": ("string", "URL to fetch (must be http or https)"),
            "timeout_seconds": ("integer", "Request timeout (default: 10)", 10),
        },
        ("timeout_seconds",),
    ),
}
ADDED = {"list_dir": {"page"}}
"""Parameters that the catalogue asks for without naming them: its listing is paginated."""


def test_copilot_has_the_ten_tools_in_order() -> None:
    assert list(load("copilot").tools) == list(CATALOGUE)


@pytest.mark.parametrize("name", CATALOGUE)
def test_copilot_purpose_and_parameters_equal_catalogue(name: str) -> None:
    tool, entry = load("copilot").tools[name], CATALOGUE[name]
    schema = tool.params.schema()
    found = {
        key: (value["type"], value["description"], *([value["default"]] if "default" in value else []))
        for key, value in schema["properties"].items()
        if key not in ADDED.get(name, set())
    }
    assert (tool.name, tool.description, found) == (name, entry.purpose, entry.parameters)
    assert schema.get("required", []) == [key for key in entry.parameters if key not in entry.optional]


@pytest.mark.parametrize("name", CATALOGUE)
def test_copilot_risk_level_and_approval_equal_catalogue(name: str) -> None:
    tool, entry = load("copilot").tools[name], CATALOGUE[name]
    assert tool.risk == entry.risk
    assert tool.requires_approval is (entry.risk != "read_only")


def test_copilot_function_form_equals_catalogue() -> None:
    assert load("copilot").tools["create_file"].function() == {
        "name": "create_file",
        "description": "Create a new file with specified content",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Relative path to the file to create"},
                "content": {"type": "string", "description": "Content to write to the file"},
            },
            "required": ["path", "content"],
        },
    }


@pytest.mark.sandbox
@pytest.mark.parametrize(("shell", "shown"), [("/bin/bash", "/bin/bash"), ("/bin/sh", "/bin/sh"), (None, "/bin/sh")])
def test_run_in_terminal_uses_default_shell_of_user(
    root: Path, monkeypatch: pytest.MonkeyPatch, shell: str | None, shown: str
) -> None:
    if shell is None:
        monkeypatch.delenv("SHELL", raising=False)
    else:
        monkeypatch.setenv("SHELL", shell)
    with Workspace(str(root), approve="auto") as workspace:
        result = workspace.call("copilot", "run_in_terminal", {"command": "echo $0"})
    assert result.output == f"Command output:\n{shown}\n"
