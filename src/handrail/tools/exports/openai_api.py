"""Exports tools for OpenAI's Chat Completions and Responses APIs, in loose and in strict form."""

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from handrail.tools.exports import Json, api_name, plain
from handrail.tools.media_output import SHOWN_IMAGES, media_of
from handrail.tools.tool import Freeform, Tool, ToolResult

if TYPE_CHECKING:
    from handrail.tools.router import ToolRouter

# Words of JSON Schema that OpenAI's strict mode does not take.
_LAX_WORDS = ("default", "minLength", "maxLength", "title")


class NotStrict(Exception):  # noqa: N818  a reason that is shown to the user
    """The parameters cannot be expressed in strict mode."""


def openai_chat(tools: Iterable[Tool], *, strict: bool = False) -> list[Json]:
    """Return the tools for Chat Completions."""
    return [{"type": "function", "function": _openai(tool, strict=strict)} for tool in tools]


def openai_responses(tools: Iterable[Tool], *, strict: bool = False, custom: bool = False) -> list[Json]:
    """Return the tools for Responses; with `custom`, a tool with a grammar becomes a custom tool without a schema."""
    return [
        tool.builtin_for("openai-responses")
        or (
            _custom(tool, tool.freeform)
            if custom and tool.freeform
            else {"type": "function", "strict": False, **_openai(tool, strict=strict)}
        )
        for tool in tools
    ]


def _custom(tool: Tool, form: Freeform) -> Json:
    """Return a tool that takes plain text, which must match a grammar."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": form.grammar}
    return {"type": "custom", "name": api_name(tool.name), "description": form.description, "format": grammar}


def _openai(tool: Tool, *, strict: bool) -> Json:
    form: Json = {"name": api_name(tool.name), "description": tool.description}
    if strict:
        try:
            return form | {"parameters": strict_schema(tool.params.schema()), "strict": True}
        except NotStrict:
            return form | {"parameters": tool.params.schema(), "strict": False}
    return form | {"parameters": tool.params.schema()}


def why_not_strict(tool: Tool) -> str | None:
    """Return why a tool has no strict form; None if it has one."""
    try:
        strict_schema(tool.params.schema())
    except NotStrict as reason:
        return str(reason)
    return None


def strict_schema(schema: Json, where: str = "") -> Json:
    """Return the schema with every property required and no other allowed; optional ones may be null."""
    made = {word: value for word, value in schema.items() if word not in _LAX_WORDS}
    if "anyOf" in made:
        made["anyOf"] = [strict_schema(option, where) for option in made["anyOf"]]
    if "items" in made:
        made["items"] = strict_schema(made["items"], f"{where}[]")
    if made.get("type") != "object":
        return made
    if "properties" not in schema:
        raise NotStrict(f"{where or 'the parameters'} may hold any keys")
    needed = schema.get("required", ())
    made["properties"] = {
        name: _strict_property(each, name in needed and "default" not in each, f"{where}.{name}" if where else name)
        for name, each in schema["properties"].items()
    }
    return made | {"required": list(schema["properties"]), "additionalProperties": False}


def _strict_property(schema: Json, required: bool, where: str) -> Json:
    made = strict_schema(schema, where)
    if required:
        return made
    if schema.get("default") is not None:
        text = f"{schema.get('description', '')} Default: {json.dumps(schema['default'])}."
        made["description"] = text.strip()
    if "anyOf" in made:
        null = {"type": "null"}
        return made | {"anyOf": made["anyOf"] if null in made["anyOf"] else [*made["anyOf"], null]}
    if "enum" in made:
        made["enum"] = [*made["enum"], None]
    return made | {"type": [made["type"], "null"]}


def answer_openai(router: "ToolRouter", tool_call: Any) -> Json:
    """Run a tool call of Chat Completions or of Responses and return the message that the API expects."""
    call = plain(tool_call)
    if call.get("type") == "function_call":
        result = router.call_named(call["name"], call["arguments"], call["call_id"])
        output = _responses_output(result)
        return {"type": "function_call_output", "call_id": call["call_id"], "output": output}
    if call.get("type") == "custom_tool_call":
        return _answer_custom(router, call)
    asked = call["function"]
    result = router.call_named(asked["name"], asked["arguments"], call["id"])
    return {"role": "tool", "tool_call_id": call["id"], "content": result.text}


def _answer_custom(router: "ToolRouter", call: Json) -> Json:
    declared = router.tools.get(router.real_name(call["name"]))
    parameter = declared.freeform.parameter if declared and declared.freeform else "input"
    result = router.call_named(call["name"], {parameter: call["input"]}, call["call_id"])
    return {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": _responses_output(result)}


def _responses_output(result: ToolResult) -> Any:
    media = media_of(result.output)
    if media is None or (media[0].startswith("image/") and media[0] not in SHOWN_IMAGES):
        return result.text
    url = f"data:{media[0]};base64,{media[1]}"
    hints = [{"type": "input_text", "text": result.hints}] if result.hints else []
    if media[0].startswith("image/"):
        return [{"type": "input_image", "image_url": url}, *hints]
    return [{"type": "input_file", "filename": "file", "file_data": url}, *hints]
