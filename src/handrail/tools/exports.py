"""Tools in the forms that function-calling APIs want, and their calls answered in the API's own shape."""

import json
import threading
from collections.abc import Iterable
from typing import Any

from handrail.model.effects import mcp_hints
from handrail.tools.schema import Field, Params
from handrail.tools.tool import Freeform, Tool, ToolResult

Json = dict[str, Any]

# What OpenAI's strict mode does not take.
_LAX_WORDS = ("default", "minLength", "maxLength", "title")


class NotStrict(Exception):  # noqa: N818  a message for the person who asked for strict mode
    """The tool's parameters have no closed form."""


def api_name(name: str) -> str:
    """The name where an API allows letters, digits, underscores and dashes only."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)


def openai_chat(tools: Iterable[Tool], *, strict: bool = False) -> list[Json]:
    return [{"type": "function", "function": _openai(tool, strict=strict)} for tool in tools]


def openai_responses(tools: Iterable[Tool], *, strict: bool = False) -> list[Json]:
    return [
        _custom(tool, tool.freeform)
        if tool.freeform
        else {"type": "function", "strict": False, **_openai(tool, strict=strict)}
        for tool in tools
    ]


def _custom(tool: Tool, form: Freeform) -> Json:
    """A tool that takes plain text, held to a grammar."""
    grammar = {"type": "grammar", "syntax": "lark", "definition": form.grammar}
    return {"type": "custom", "name": api_name(tool.name), "description": form.description, "format": grammar}


def anthropic(tools: Iterable[Tool]) -> list[Json]:
    return [
        {"name": api_name(tool.name), "description": tool.description, "input_schema": tool.params.schema()}
        for tool in tools
    ]


def gemini(tools: Iterable[Tool]) -> Json:
    return {
        "functionDeclarations": [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.params.schema()}
            for tool in tools
        ]
    }


def mcp(tools: Iterable[Tool]) -> list[Json]:
    return [mcp_tool(tool) for tool in tools]


def mcp_tool(tool: Tool) -> Json:
    form: Json = {"name": tool.name, "description": tool.description, "inputSchema": tool.params.schema()}
    if tool.output is not None:
        form["outputSchema"] = tool.output
    return form | {"annotations": mcp_hints(tool.effects)}


def functions(tools: Iterable[Tool]) -> list[Json]:
    return [tool.function() for tool in tools]


def _openai(tool: Tool, *, strict: bool) -> Json:
    form: Json = {"name": api_name(tool.name), "description": tool.description}
    if strict:
        try:
            return form | {"parameters": strict_schema(tool.params.schema()), "strict": True}
        except NotStrict:
            return form | {"parameters": tool.params.schema(), "strict": False}
    return form | {"parameters": tool.params.schema()}


def why_not_strict(tool: Tool) -> str | None:
    try:
        strict_schema(tool.params.schema())
    except NotStrict as reason:
        return str(reason)
    return None


def strict_schema(schema: Json, where: str = "") -> Json:
    """The schema with every property required and no other allowed; what may be left out may be null instead."""
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
        told = f"{schema.get('description', '')} Default: {json.dumps(schema['default'])}."
        made["description"] = told.strip()
    if "anyOf" in made:
        null = {"type": "null"}
        return made | {"anyOf": made["anyOf"] if null in made["anyOf"] else [*made["anyOf"], null]}
    if "enum" in made:
        made["enum"] = [*made["enum"], None]
    return made | {"type": [made["type"], "null"]}


def media_of(output: Any) -> tuple[str, str] | None:
    """The type and base64 data of an output that is an image or its like."""
    inline = output.get("inlineData") if isinstance(output, dict) else None
    return (inline["mimeType"], inline["data"]) if inline else None


def text_of(output: Any) -> str:
    """An output as a model reads it where only text fits."""
    if media := media_of(output):
        return f"The file is {media[0]}, which cannot be shown as text"
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


def _responses_output(output: Any) -> Any:
    media = media_of(output)
    if media is None:
        return text_of(output)
    url = f"data:{media[0]};base64,{media[1]}"
    if media[0].startswith("image/"):
        return [{"type": "input_image", "image_url": url}]
    return [{"type": "input_file", "filename": "file", "file_data": url}]


def _anthropic_content(output: Any) -> Any:
    media = media_of(output)
    if media is None or not (media[0].startswith("image/") or media[0] == "application/pdf"):
        return text_of(output)
    source = {"type": "base64", "media_type": media[0], "data": media[1]}
    return [{"type": "image" if media[0].startswith("image/") else "document", "source": source}]


def _without_nulls(params: type[Params], given: Any) -> Any:
    """Strict mode sends null for what was left out."""
    if not isinstance(given, dict):
        return given
    kept = {}
    for name, value in given.items():
        declared = params.fields.get(name)
        if declared is None:
            kept[name] = value
        elif value is not None or declared.required:
            kept[name] = _nested(declared, value)
    return kept


def _nested(declared: Field, value: Any) -> Any:
    if declared.origin is list and isinstance(value, list) and _is_params(declared.args[0]):
        return [_without_nulls(declared.args[0], each) for each in value]
    return _without_nulls(declared.kind, value) if _is_params(declared.kind) else value


def _is_params(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Params)


class Exports:
    """What a router offers to function-calling APIs."""

    tools: dict[str, Tool]

    def call(
        self,
        tool: str,
        params: Any = None,
        *,
        call_id: str | None = None,
        cancel: threading.Event | None = None,
    ) -> ToolResult:
        raise NotImplementedError

    def openai(self, *, strict: bool = False) -> list[Json]:
        """For the Chat Completions API."""
        return openai_chat(self.tools.values(), strict=strict)

    def openai_responses(self, *, strict: bool = False) -> list[Json]:
        return openai_responses(self.tools.values(), strict=strict)

    def anthropic(self) -> list[Json]:
        return anthropic(self.tools.values())

    def gemini(self) -> Json:
        return gemini(self.tools.values())

    def mcp(self) -> list[Json]:
        return mcp(self.tools.values())

    def functions(self) -> list[Json]:
        return functions(self.tools.values())

    def call_named(
        self, name: str, arguments: Any, call_id: str | None = None, cancel: threading.Event | None = None
    ) -> ToolResult:
        """A call as an API sends it: a mapped name, arguments as an object or as JSON text."""
        tool = self.real_name(name)
        try:
            given = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
        except ValueError:
            given = arguments  # not an object: the answer says so
        declared = self.tools.get(tool)
        plainly = given if declared is None else _without_nulls(declared.params, given)
        return self.call(tool, plainly, call_id=call_id, cancel=cancel)

    def real_name(self, name: str) -> str:
        """The tool behind a mapped name; a name that is nobody's stays as it is."""
        return name if name in self.tools else next((each for each in self.tools if api_name(each) == name), name)

    def call_openai(self, tool_call: Any) -> Json:
        """Answer a tool call of Chat Completions or of Responses with the message that the API expects."""
        call = plain(tool_call)
        if call.get("type") == "function_call":
            result = self.call_named(call["name"], call["arguments"], call["call_id"])
            return {
                "type": "function_call_output",
                "call_id": call["call_id"],
                "output": _responses_output(result.output),
            }
        if call.get("type") == "custom_tool_call":
            return self._call_custom(call)
        asked = call["function"]
        result = self.call_named(asked["name"], asked["arguments"], call["id"])
        return {"role": "tool", "tool_call_id": call["id"], "content": text_of(result.output)}

    def _call_custom(self, call: Json) -> Json:
        declared = self.tools.get(self.real_name(call["name"]))
        parameter = declared.freeform.parameter if declared and declared.freeform else "input"
        result = self.call_named(call["name"], {parameter: call["input"]}, call["call_id"])
        return {"type": "custom_tool_call_output", "call_id": call["call_id"], "output": text_of(result.output)}

    def call_anthropic(self, tool_use: Any) -> Json:
        use = plain(tool_use)
        result = self.call_named(use["name"], use["input"], use["id"])
        answer = {"type": "tool_result", "tool_use_id": use["id"], "content": _anthropic_content(result.output)}
        return answer if result.success else answer | {"is_error": True}

    def call_gemini(self, function_call: Any) -> Json:
        call = plain(function_call)
        result = self.call_named(call["name"], call.get("args"), call.get("id"))
        response = {"output": result.output} if result.success else {"error": result.output}
        known = {"id": call["id"]} if call.get("id") else {}
        return {"functionResponse": {**known, "name": call["name"], "response": response}}


def plain(value: Any) -> Json:
    """An SDK's object, or the JSON it came from, as a dictionary."""
    if isinstance(value, dict):
        return value
    dump = getattr(value, "model_dump", None)
    return dict(dump() if dump else vars(value))
