"""Tests which tool or parameter a wrong name is taken for."""

import pytest

from handrail.dialects import load
from handrail.ops.text.similar_names import nearest_name

# Tools that models know from elsewhere, and the tool of each dialect that does the same.
MEANT = {
    "gemini": {
        "bash": "run_shell_command",
        "shell": "run_shell_command",
        "run_in_terminal": "run_shell_command",
        "grep": "search_file_content",
        "grep_search": "search_file_content",
        "file.read": "read_file",
        "view": "read_file",
        "edit_file": "replace",
        "str_replace": "replace",
        "create_file": "write_file",
        "list_dir": "list_directory",
        "ls": "list_directory",
        "redd_file": "read_file",
    },
    "context": {
        "file.read": "read_file",
        "write_file": "create_file",
        "str_replace": "replace_in_file",
        "file.delete": "delete_file",
        "list_dir": "list_directory",
        "grep_files": "grep",
        "rm": "delete_file",
    },
    "copilot": {
        "bash": "run_in_terminal",
        "shell": "run_in_terminal",
        "grep": "grep_search",
        "glob": "file_search",
        "list_directory": "list_dir",
        "replace": "replace_string_in_file",
        "write_file": "create_file",
        "web_fetch": "fetch_webpage",
        "file.read": "read_file",
    },
    "file": {
        "read_file": "file.read",
        "write_file": "file.write",
        "create_file": "file.write",
        "apply_patch": "file.patch",
        "edit_file": "file.patch",
        "replace": "file.patch",
        "delete_file": "file.delete",
        "ls": "file.list",
        "grep": "file.search",
    },
    "codex": {
        "bash": "shell",
        "file.read": "read_file",
        "ls": "list_dir",
        "list_directory": "list_dir",
        "grep": "grep_files",
        "file.patch": "apply_patch_json",
        "apply_patch": "apply_patch_freeform",
        "edit_file": "apply_patch_freeform",
        "write_file": "apply_patch_freeform",
        "run_shell_command": "shell",
    },
}


@pytest.mark.parametrize(
    ("dialect", "wrong", "meant"), [(d, wrong, meant) for d, names in MEANT.items() for wrong, meant in names.items()]
)
def test_nearest_name_finds_tool_of_same_meaning(dialect: str, wrong: str, meant: str) -> None:
    known = {name: tool.description for name, tool in load(dialect).tools.items()}
    found = nearest_name(wrong, known)
    patches = ("apply_patch_json", "apply_patch_freeform")
    assert found == meant or (meant in patches and found in patches)


@pytest.mark.parametrize("wrong", ["", "teleport", "5", "é"])
def test_nearest_name_unlike_all_is_none(wrong: str) -> None:
    assert nearest_name(wrong, {"read_file": "Read a file.", "shell": "Run a command."}) is None


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("file_path", "path"), ("contents", "content"), ("old_str", "old_string"), ("startLine", "start_line")],
)
def test_nearest_name_finds_parameter_of_same_meaning(wrong: str, meant: str) -> None:
    known = dict.fromkeys(("path", "content", "old_string", "new_string", "start_line"), "")
    assert nearest_name(wrong, known) == meant
