"""Tests what the context dialect declares about its tools, and the system prompt that describes them."""

import json
import subprocess
import sys

import pytest

from handrail.dialects import NAMES, load
from handrail.tools.system_prompt import system_prompt

TOOLS = load("context").tools


@pytest.mark.parametrize("name", ["grep", "glob", "search", "list_directory", "read_file"])
def test_context_reading_tools_need_no_approval(name: str) -> None:
    assert TOOLS[name].required_permissions == ["ReadFiles"]
    assert TOOLS[name].requires_approval is False


@pytest.mark.parametrize("name", ["replace_in_file", "edit_lines"])
def test_context_editing_tools_need_read_write_and_approval(name: str) -> None:
    assert TOOLS[name].required_permissions == ["ReadFiles", "WriteFiles"]
    assert TOOLS[name].requires_approval is True


@pytest.mark.parametrize(("name", "permission"), [("create_file", "CreateFiles"), ("delete_file", "DeleteFiles")])
def test_context_create_and_delete_have_own_permissions(name: str, permission: str) -> None:
    assert TOOLS[name].required_permissions == [permission]
    assert TOOLS[name].requires_approval is True


def test_context_categories_match_contract_order() -> None:
    grouped: dict[str, list[str]] = {name: [] for name in load("context").categories}
    for tool in TOOLS.values():
        assert tool.guide is not None
        grouped[tool.guide.category].append(tool.name)
    assert {name: sorted(tools) for name, tools in grouped.items()} == {
        "Search & Discovery": ["glob", "grep", "list_directory", "search"],
        "File Reading": ["read_file"],
        "File Writing": ["append_file", "create_file", "edit_lines", "replace_in_file", "update_file"],
        "File Management": ["delete_file"],
    }
    assert list(grouped) == ["Search & Discovery", "File Reading", "File Writing", "File Management"]


@pytest.mark.parametrize(
    ("category", "said"),
    [
        ("Search & Discovery", "Find files and text"),
        ("File Reading", "read-only"),
        ("File Writing", "needs the user's approval"),
        ("File Management", "Destructive operations"),
    ],
)
def test_context_category_description_is_in_the_prompt(category: str, said: str) -> None:
    assert said in load("context").categories[category]
    assert f"## {category}\n\n{load('context').categories[category]}\n" in system_prompt(
        load("context"), list(TOOLS.values())
    )


@pytest.mark.parametrize("name", ["grep", "glob"])
def test_search_guide_explains_terminate(name: str) -> None:
    guide = TOOLS[name].guide
    assert guide is not None
    assert guide.termination_behavior_doc == (
        "terminate=false if the results need further processing; terminate=true if they are presented to the user."
    )


@pytest.mark.parametrize("name", ["replace_in_file", "edit_lines"])
def test_edit_guide_suggests_preview_first(name: str) -> None:
    guide = TOOLS[name].guide
    assert guide is not None
    assert guide.termination_behavior_doc.startswith(
        "Use preview_only=true first; terminate=true after a successful edit"
    )
    assert "terminate=false" in guide.termination_behavior_doc


@pytest.mark.parametrize("name", list(TOOLS))
def test_guide_examples_are_valid_calls(name: str) -> None:
    guide = TOOLS[name].guide
    assert guide is not None
    TOOLS[name].params.parse(guide.example)


@pytest.mark.parametrize("name", list(TOOLS))
def test_custom_prompt_names_options_and_has_example(name: str) -> None:
    tool = TOOLS[name]
    assert tool.guide is not None
    prompt = tool.custom_prompt or ""
    _, options, example = prompt.split("\n")
    assert json.loads(example.removeprefix("Example: ")) == tool.guide.example
    important = [each for each in tool.params.fields if each not in ("terminate", "pattern", "query", "find")]
    assert [each for each in important if each in options], options
    assert ("preview_only=true" in options) == ("preview_only" in tool.params.fields)


def test_tools_json_has_names_of_seed() -> None:
    command = [sys.executable, "-P", "-m", "handrail", "tools", "--dialect", "context", "--format", "json"]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    names = ("category", "required_permissions", "requires_approval", "termination_behavior_doc", "custom_prompt")
    assert [tool["name"] for tool in listed] == list(TOOLS)
    for tool in listed:
        assert [tool[name] for name in names] == [getattr(TOOLS[tool["name"]], name) for name in names]


def test_system_prompt_describes_tool_completely() -> None:
    prompt = system_prompt(load("context"), list(TOOLS.values()))
    assert prompt.startswith(
        "# Tools\n\n## Search & Discovery\n\nFind files and text in the workspace. "
        "These tools only look: they change nothing and never ask.\n\n### grep\n"
    )
    section = prompt[prompt.index("### delete_file") :]
    assert section == (
        "### delete_file\n"
        "Delete a file.\n"
        "- Permissions: DeleteFiles\n"
        "- Approval: required\n"
        "- Parameters:\n"
        "  - `path` (required): File to delete, relative to the workspace root.\n"
        "  - `terminate` (default false): End the agent's turn after this call.\n"
        "- Use: Deletes one file, never a directory. A link is deleted, not its target.\n"
        "- Options: path is the only one; approval is always needed.\n"
        "- Termination: terminate=true when the file is gone and nothing else is to be done.\n"
        '- Example: `{"path": "old/notes.txt"}`\n'
    )
    order = [prompt.index(f"## {category}") for category in load("context").categories]
    assert order == sorted(order)


@pytest.mark.parametrize("dialect", NAMES)
def test_prompt_command_lists_all_tools_of_dialect(dialect: str) -> None:
    command = [sys.executable, "-P", "-m", "handrail", "prompt", "--dialect", dialect]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line[4:] for line in printed.split("\n") if line.startswith("### ")] == sorted(
        load(dialect).tools, key=lambda name: printed.index(f"### {name}\n")
    )
    read_only = subprocess.run([*command, "--read-only"], capture_output=True, text=True, check=True).stdout
    assert "Approval: required" not in read_only
