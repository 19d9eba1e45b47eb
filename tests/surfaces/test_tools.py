"""Tests `handrail tools`: which tools it lists, and in which formats."""

import json
from pathlib import Path

import pytest
from support.command_line import in_process as handrail
from support.command_line import usage_error

READ = {
    "name": "file.read",
    "description": "Read file contents with optional pagination for large files.",
    "parameters": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Path of the file, relative to the workspace root."},
            "offset": {"type": "integer", "minimum": 1, "description": "Start line, 1-indexed.", "default": 1},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": "Maximum number of lines to return; all when left out.",
            },
        },
        "required": ["path"],
    },
}
WRITE = {
    "name": "file.write",
    "description": "Create or overwrite a file. Creates parent directories if needed.",
    "parameters": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Path of the file, relative to the workspace root."},
            "content": {"type": "string", "description": "Full file contents."},
        },
        "required": ["path", "content"],
    },
}
RISKS = {
    "file.read": ("read_only", ["ReadFiles"], False),
    "file.write": ("dangerous", ["WriteFiles", "CreateFiles"], True),
    "file.patch": ("dangerous", ["ReadFiles", "WriteFiles"], True),
    "file.delete": ("dangerous", ["DeleteFiles"], True),
    "file.list": ("read_only", ["ReadFiles"], False),
}


def test_tools_format_functions_prints_function_objects() -> None:
    done = handrail("tools", "--dialect", "file", "--format", "functions")
    functions = {function["name"]: function for function in json.loads(done.stdout)}
    assert functions["file.read"] == READ
    assert functions["file.write"] == WRITE
    assert all(list(function) == ["name", "description", "parameters"] for function in functions.values())
    assert all(list(each["parameters"]) == ["type", "properties", "required"] for each in functions.values())
    assert done.stderr == ""


def test_tools_json_has_risk_permissions_and_approval() -> None:
    done = handrail("tools", "--dialect", "file", "--json")
    tools = {tool["name"]: tool for tool in json.loads(done.stdout)}
    told = {
        name: (tool["risk_level"], tool["required_permissions"], tool["requires_approval"])
        for name, tool in tools.items()
        if name in RISKS
    }
    assert told == RISKS
    assert tools["file.write"]["input_schema"] == {**WRITE["parameters"], "additionalProperties": False}  # type: ignore[dict-item]
    assert json.loads(handrail("tools", "--dialect", "file", "--format", "json").stdout) == list(tools.values())


def test_tools_text_has_name_risk_and_parameters() -> None:
    done = handrail("tools", "--dialect", "file")
    assert (
        "file.read  (file, read_only)\n"
        "  Read file contents with optional pagination for large files.\n"
        "    path: Path of the file, relative to the workspace root.\n"
        "    offset: Start line, 1-indexed. [default: 1]\n"
        "    limit: Maximum number of lines to return; all when left out. [default: null]\n"
        "\n"
    ) in done.stdout


@pytest.mark.parametrize("how", ["flag", "variable", "project", "user"])
def test_tools_read_only_lists_no_writing_tools(how: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flags = []
    if how == "flag":
        flags = ["--read-only"]
    elif how == "variable":
        monkeypatch.setenv("HANDRAIL_READ_ONLY", "1")
    elif how == "project":
        (root / ".handrail.toml").write_text("read_only = true\n")
    else:
        home = root.parent / "config"
        home.mkdir()
        (home / "config.toml").write_text("read_only = true\n")
        monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(home))
    tools = json.loads(handrail("tools", "--dialect", "file", "--root", str(root), "--json", *flags).stdout)
    assert {tool["risk_level"] for tool in tools} == {"read_only"}
    assert {"file.read", "file.list"} <= {tool["name"] for tool in tools}


def test_tools_without_dialect_lists_every_dialect() -> None:
    from handrail.dialects import NAMES

    tools = json.loads(handrail("tools", "--json").stdout)
    assert list(dict.fromkeys(tool["dialect"] for tool in tools)) == list(NAMES)


def test_tools_bad_option_or_root_is_usage_error(root: Path) -> None:
    assert usage_error(handrail("tools", "--format", "xml")).startswith("Invalid value for '--format'")
    assert (
        usage_error(handrail("tools", "--root", f"{root}/no"))
        == f"cannot open the workspace {root}/no: directory not found"
    )
