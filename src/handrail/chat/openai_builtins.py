"""Lets OpenAI's models use the tools that the Responses API has built in: `shell` and `apply_patch`.

The model library knows function calls alone. So its client is given one that translates: a `shell_call` in a stream
becomes a call of the function `shell`, and such a call in the conversation becomes an item again, with its output.
"""

import json
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import cached_property
from typing import Any, Self

from openai import AsyncOpenAI
from openai.resources.responses import AsyncResponses
from openai.types.responses import ResponseFunctionToolCall
from pydantic_ai.models.openai import OpenAIResponsesModel

Json = dict[str, Any]

_FIELDS = {"shell": "action", "apply_patch": "operation"}
"""The built-in tools, and the field of their calls that holds the parameters."""
_FAILED = {"type": "exit", "exit_code": 1}


class BuiltinItemsModel(OpenAIResponsesModel):
    """Asks a model over the Responses API, also with built-in tools (in `extra_body`)."""

    builtin_api = "openai-responses"
    """Whose declarations of built-in tools this model can be given."""

    @property
    def client(self) -> AsyncOpenAI:
        given = super().client
        return _Client(
            api_key=given.api_key,
            base_url=given.base_url,
            organization=given.organization,
            project=given.project,
            http_client=given._client,  # noqa: SLF001  the library closes it, so both share it
        )


class _Client(AsyncOpenAI):
    @cached_property
    def responses(self) -> AsyncResponses:
        return _Responses(self)


class _Responses(AsyncResponses):
    async def create(self, **params: Any) -> Any:
        """Ask the model; translate the conversation and the stream of its answer if it has built-in tools."""
        offered = {each.get("type") for each in (params.get("extra_body") or {}).get("tools", ())}
        if not offered & _FIELDS.keys():
            return await super().create(**params)
        answer = await super().create(**{**params, "input": [*items(params["input"])]})
        return _CallStream(answer)


class _CallStream:
    """Passes the events of a stream on, with function calls instead of items of built-in tools."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stream.close()

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for event in self._stream:
            kind = _builtin(event)
            if not kind:
                yield event
            elif event.type == "response.output_item.done":
                yield event.model_copy(update={"item": _function_call(kind, event.item)})


def _builtin(event: Any) -> str:
    """Return the built-in tool that an event is about; empty for every other event."""
    about = event.item.type if event.type.startswith("response.output_item.") else event.type.removeprefix("response.")
    return next((name for name in _FIELDS if about.startswith(f"{name}_call")), "")


def _function_call(name: str, item: Any) -> ResponseFunctionToolCall:
    parameters = getattr(item, _FIELDS[name]).model_dump(mode="json", exclude_none=True)
    return ResponseFunctionToolCall(
        type="function_call", id=item.id, call_id=item.call_id, name=name, arguments=json.dumps(parameters)
    )


def items(conversation: Iterable[Json]) -> Iterator[Json]:
    """Yield the items of a conversation, those of built-in tools in the form of the API."""
    calls: dict[str, tuple[str, Json]] = {}
    for item in conversation:
        kind, call_id = item.get("type"), item.get("call_id", "")
        if kind == "function_call" and item["name"] in _FIELDS:
            name, parameters = item["name"], _object(item["arguments"])
            calls[call_id] = name, parameters
            about = {"call_id": call_id, _FIELDS[name]: parameters, "status": "completed"}
            yield {"type": f"{name}_call", **about}
        elif kind == "function_call_output" and call_id in calls:
            name, parameters = calls[call_id]
            made = _shell_output(item["output"], parameters) if name == "shell" else _patch_output(item["output"])
            yield {"type": f"{name}_call_output", "call_id": call_id, **made}
        else:
            yield item


def _object(text: str) -> Json:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _shell_output(text: str, parameters: Json) -> Json:
    found, hints = _result(text)
    outputs = found.get("output")
    if not isinstance(outputs, list) or not outputs:
        outputs = [{"stdout": "", "stderr": text, "outcome": _FAILED}]
    elif hints:
        outputs[-1]["stderr"] = "\n".join(filter(None, (outputs[-1]["stderr"].rstrip("\n"), hints)))
    most = parameters.get("max_output_length")
    return {"output": outputs, **({} if most is None else {"max_output_length": most})}


def _patch_output(text: str) -> Json:
    found, hints = _result(text)
    if found.get("status") != "completed":
        return {"status": "failed", "output": text}
    return {"status": "completed", "output": "\n".join(filter(None, (str(found.get("output", "")), hints)))}


def _result(text: str) -> tuple[Json, str]:
    """Return the output of a tool, and the hints after it; an empty output if the text is no JSON object."""
    try:
        found, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return {}, ""
    return (found, text[end:].strip()) if isinstance(found, dict) else ({}, "")
