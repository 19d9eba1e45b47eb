"""Tests tools in the formats of the APIs, and answers in the shape of each API."""

import json
from base64 import b64encode
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NotRequired, TypedDict

import jsonschema
import pytest
from click.testing import CliRunner

from handrail import Workspace
from handrail.dialects import NAMES, load
from handrail.model.effects import Effect
from handrail.surfaces.cli.click_commands import main
from handrail.tools.exports import api_name
from handrail.tools.exports.anthropic_api import anthropic
from handrail.tools.exports.gemini_api import gemini
from handrail.tools.exports.mcp_tools import mcp
from handrail.tools.exports.openai_api import openai_chat, openai_responses, strict_schema, why_not_strict
from handrail.tools.output_schema import output_schema
from handrail.tools.schema import Params, field
from handrail.tools.tool import Tool

ALL = [tool for name in NAMES for tool in load(name).tools.values()]
READ = load("file").tools["file.read"]


def _ids(tool: Tool) -> str:
    return f"{tool.dialect}.{tool.name}"


def test_exports_match_api_formats() -> None:
    schema = READ.params.schema()
    named = {"name": "file_read", "description": READ.description}
    assert openai_chat([READ]) == [{"type": "function", "function": {**named, "parameters": schema}}]
    assert openai_responses([READ]) == [{"type": "function", **named, "parameters": schema, "strict": False}]
    assert anthropic([READ]) == [{**named, "input_schema": schema}]
    assert gemini([READ]) == {"functionDeclarations": [{**named, "name": "file.read", "parametersJsonSchema": schema}]}
    assert [READ.function()] == [READ.function()]
    assert mcp([READ])[0]["inputSchema"] == schema


def test_api_names_are_allowed_and_unique() -> None:
    for name in NAMES:
        made = [api_name(tool) for tool in load(name).tools]
        assert len({*made}) == len(made)
        assert all(
            set(each) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") for each in made
        )


def _check_strict(schema: dict[str, Any]) -> None:
    assert not {"default", "minLength", "title"} & schema.keys()
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        assert schema["required"] == [*schema["properties"]]
        for each in schema["properties"].values():
            _check_strict(each)
    for each in [schema.get("items"), *schema.get("anyOf", [])]:
        if each:
            _check_strict(each)


@pytest.mark.parametrize("tool", ALL, ids=_ids)
def test_openai_strict_form_of_every_tool_is_valid(tool: Tool) -> None:
    form = openai_chat([tool], strict=True)[0]["function"]
    assert form["strict"] is True
    _check_strict(form["parameters"])
    jsonschema.Draft202012Validator.check_schema(form["parameters"])


@pytest.mark.parametrize("tool", ALL, ids=_ids)
def test_tool_schemas_are_valid_json_schema(tool: Tool) -> None:
    jsonschema.Draft202012Validator.check_schema(tool.params.schema())
    if tool.output is not None:
        assert tool.output["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(tool.output)


class _Inner(Params):
    text: str = field("Text.")
    size: int = field("Size.", default=3)


class _Open(Params):
    anything: str = field("Anything.")

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return {"type": "object", "properties": {"anything": {"type": "object"}}, "required": ["anything"]}


class _Nested(Params):
    items: list[_Inner] = field("Items.")
    mode: Literal["a", "b"] = field("Mode.", default="a")
    name: str | None = field("Name.", default=None)


def _tool(params: type[Params]) -> Tool:
    return Tool("t", "d", params, Effect.READ, lambda _p, _c: "", "A tool.")


def test_why_not_strict_names_open_object() -> None:
    tool = _tool(_Open)
    assert why_not_strict(tool) == "anything may hold any keys"
    form = openai_responses([tool], strict=True)[0]
    assert (form["strict"], form["parameters"]) == (False, _Open.schema())
    assert why_not_strict(_tool(_Nested)) is None


def test_strict_schema_makes_nested_optionals_nullable() -> None:
    schema = strict_schema(_Nested.schema())
    assert schema["properties"]["items"]["items"]["properties"]["size"] == {
        "type": ["integer", "null"],
        "description": "Size. Default: 3.",
    }
    assert schema["properties"]["mode"]["enum"] == ["a", "b", None]
    assert schema["properties"]["mode"]["type"] == ["string", "null"]
    assert schema["required"] == ["items", "mode", "name"]


@pytest.fixture
def router(workspace: Workspace, root: Path) -> Any:
    (root / "a.txt").write_text("one\n")
    return workspace.tools("file")


OUTPUT = {"content": "     1\tone", "total_lines": 1, "truncated": False}


def test_call_openai_chat_answer_has_api_shape(router: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "file_read", "arguments": '{"path": "a.txt"}'}}
    answer = router.call_openai(call)
    assert json.loads(answer.pop("content")) == OUTPUT
    assert answer == {"role": "tool", "tool_call_id": "c1"}


def test_call_openai_and_anthropic_accept_sdk_objects(router: Any) -> None:
    asked = {"name": "file_read", "arguments": '{"path": "a.txt"}'}
    call = SimpleNamespace(model_dump=lambda: {"id": "c1", "type": "function", "function": asked})
    assert json.loads(router.call_openai(call)["content"]) == OUTPUT
    bare = SimpleNamespace(id="c1", name="file_read", input={"path": "a.txt"})
    assert json.loads(router.call_anthropic(bare)["content"]) == OUTPUT


def test_call_openai_responses_answer_has_api_shape(router: Any) -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "file_read", "arguments": '{"path":"a.txt","limit":null}'}
    answer = router.call_openai(call)
    assert json.loads(answer.pop("output")) == OUTPUT
    assert answer == {"type": "function_call_output", "call_id": "c1"}


def test_call_openai_custom_tool_accepts_plain_text(workspace: Workspace, root: Path) -> None:
    router = workspace.tools("codex")
    form = next(
        form for form in router.openai_responses(strict=True, custom=True) if form["name"] == "apply_patch_freeform"
    )
    assert (form["type"], form["format"]["syntax"]) == ("custom", "lark")
    patch = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch\n"
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch_freeform", "input": patch}
    answer = router.call_openai(call)
    assert json.loads(answer.pop("output"))["results"][0]["path"] == "a.txt"
    assert answer == {"type": "custom_tool_call_output", "call_id": "c1"}
    assert (root / "a.txt").read_text() == "one\n"


def test_call_anthropic_answer_has_api_shape(router: Any) -> None:
    good = router.call_anthropic({"type": "tool_use", "id": "u1", "name": "file_read", "input": {"path": "a.txt"}})
    assert (good["type"], good["tool_use_id"], json.loads(good["content"])) == ("tool_result", "u1", OUTPUT)
    bad = router.call_anthropic({"type": "tool_use", "id": "u2", "name": "file_read", "input": {"path": "gone"}})
    assert bad["is_error"] is True
    assert bad["content"].endswith("}\n\nCheck the path, or list the directory first")


def test_call_gemini_answer_has_api_shape(router: Any) -> None:
    good = router.call_gemini({"id": "g1", "name": "file.read", "args": {"path": "a.txt"}})
    assert good == {"functionResponse": {"id": "g1", "name": "file.read", "response": {"output": OUTPUT}}}
    bad = router.call_gemini({"name": "file.read", "args": {"path": "gone"}})
    response = bad["functionResponse"]["response"]
    assert response["error"]["error"] == "file_not_found"
    assert response["hints"] == "Check the path, or list the directory first"


def test_call_gemini_text_answer_ends_with_hints(workspace: Workspace) -> None:
    asked = {"name": "read_file", "args": {"path": "gone"}}
    said = workspace.tools("copilot").call_gemini(asked)["functionResponse"]["response"]["error"]
    assert said == "Error: File 'gone' not found\n\nCheck the file name and try again, or use file_search to find it"


HIDDEN = "no match; 1 match in files that .gitignore hides, for example a.txt"


def test_call_answers_show_warnings_unless_hints_are_off(root: Path) -> None:
    (root / ".gitignore").write_text("a.txt")
    (root / "a.txt").write_text("needle")
    asked = {"id": "1", "name": "file.search", "input": {"pattern": "needle"}}
    for hints, tail in ((True, f"\n\nWarning: {HIDDEN}"), (False, "")):
        with Workspace(str(root), hints=hints) as workspace:
            router = workspace.tools("file")
            result = router.call("file.search", asked["input"])
            shown = router.call_anthropic(asked)["content"]
        assert shown == '{"matches": [], "truncated": false}' + tail
        assert (result.text, result.warnings) == (shown, [HIDDEN])


def test_call_hints_in_output_are_not_repeated(workspace: Workspace, root: Path) -> None:
    (root / ".gitignore").write_text("a.txt")
    (root / "a.txt").write_text("needle")
    router = workspace.tools("context")
    assert router.call("grep", {"pattern": "needle"}).hints == ""
    assert router.call("read_file", {"path": "gone"}).hints == ""


@pytest.mark.parametrize("arguments", ["{", "[]", "7", '"text"'])
def test_call_openai_arguments_not_an_object_is_error_answer(router: Any, arguments: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "file_read", "arguments": arguments}}
    output, _, hint = router.call_openai(call)["content"].partition("\n\n")
    assert (json.loads(output)["error"], hint) == (
        "invalid_parameters",
        "Send the parameters as an object: path, offset, limit",
    )


def test_call_media_results_use_api_blocks(workspace: Workspace, root: Path) -> None:
    for name in ("a.png", "b.pdf", "c.mp3"):
        (root / name).write_bytes(b"bytes")
    data, router = b64encode(b"bytes").decode(), workspace.tools("gemini")

    def anthropic(name: str) -> Any:
        use = {"id": "1", "name": "read_file", "input": {"absolute_path": str(root / name)}}
        return router.call_anthropic(use)["content"]

    def responses(name: str) -> Any:
        call = {"type": "function_call", "call_id": "1", "name": "read_file"}
        return router.call_openai({**call, "arguments": json.dumps({"absolute_path": str(root / name)})})["output"]

    source = {"type": "base64", "media_type": "image/png", "data": data}
    assert anthropic("a.png") == [{"type": "image", "source": source}]
    assert anthropic("b.pdf")[0]["type"] == "document"
    assert anthropic("c.mp3") == "The file is audio/mpeg, 5 bytes; it cannot be shown as text"
    assert responses("a.png") == [{"type": "input_image", "image_url": f"data:image/png;base64,{data}"}]
    assert responses("b.pdf")[0]["type"] == "input_file"


def test_router_exports_every_form(router: Any) -> None:
    tools = [*router.tools.values()]
    assert router.openai(strict=True) == openai_chat(tools, strict=True)
    assert router.openai_responses() == openai_responses(tools)
    assert router.anthropic() == anthropic(tools)
    assert router.gemini() == gemini(tools)
    assert router.mcp() == mcp(tools)
    assert router.functions() == [tool.function() for tool in tools]


@pytest.mark.parametrize("form", ["openai-chat", "openai-responses", "anthropic", "gemini", "mcp", "functions"])
def test_tools_command_prints_each_format(form: str, root: Path) -> None:
    out = CliRunner().invoke(main, ["tools", "--dialect", "file", "--format", form, "--root", str(root)])
    tools = [*load("file").tools.values()]
    forms = {"openai-chat": openai_chat, "openai-responses": openai_responses, "anthropic": anthropic, "gemini": gemini}
    forms |= {"mcp": mcp, "functions": lambda tools: [tool.function() for tool in tools]}
    assert json.loads(out.stdout) == forms[form](tools)


def test_tools_command_strict_only_for_openai(root: Path) -> None:
    arguments = ["tools", "--dialect", "file", "--strict", "--root", str(root), "--format"]
    out = CliRunner().invoke(main, [*arguments, "openai-chat"])
    assert json.loads(out.stdout) == openai_chat(load("file").tools.values(), strict=True)
    refused = CliRunner().invoke(main, [*arguments, "anthropic"])
    assert (refused.exit_code, "have a strict mode" in refused.stderr) == (2, True)


class _Entry(TypedDict):
    name: str
    size: int | None


class _Listing(TypedDict):
    entries: list[_Entry]
    kind: Literal["a", "b"]
    ratio: float
    more: NotRequired[bool]
    rest: dict[str, Any]
    any: Any


def test_output_schema_derives_from_return_type() -> None:
    entry = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "size": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        "required": ["name", "size"],
    }
    assert output_schema(_Listing) == {
        "type": "object",
        "properties": {
            "entries": {"type": "array", "items": entry},
            "kind": {"enum": ["a", "b"]},
            "ratio": {"type": "number"},
            "more": {"type": "boolean"},
            "rest": {"type": "object"},
            "any": {},
        },
        "required": ["entries", "kind", "ratio", "rest", "any"],
    }
    assert output_schema(dict[str, Any]) == {"type": "object"}
    assert output_schema(_Listing | dict[str, Any]) == {
        "type": "object",
        "anyOf": [output_schema(_Listing), {"type": "object"}],
    }
    assert output_schema(str) is None
    assert output_schema(str | dict[str, Any]) is None


@pytest.mark.parametrize(
    "item",
    [
        {"type": "shell_call", "call_id": "1", "action": {"commands": ["touch made"], "working_directory": "src"}},
        {
            "type": "local_shell_call",
            "call_id": "1",
            "action": {"type": "exec", "command": ["touch", "made"], "cwd": "x"},
        },
        {
            "type": "apply_patch_call",
            "call_id": "1",
            "operation": {"type": "create_file", "path": "made", "diff": "+x", "mode": "755"},
        },
    ],
    ids=lambda item: item["type"],
)
def test_call_openai_item_unknown_field_is_refused(item: Any, workspace: Workspace, root: Path) -> None:
    answer = str(workspace.tools("openai").call_openai_item(item))
    assert "Unknown parameter" in answer
    assert any(name in answer for name in ("working_directory", "cwd", "mode"))
    assert not (root / "made").exists()
