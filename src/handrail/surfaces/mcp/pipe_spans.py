"""Describes the messages of a pipe as OpenTelemetry spans, with the attributes that those over HTTP have."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.propagate import extract
from opentelemetry.trace import Span, SpanKind, StatusCode

from handrail.surfaces.mcp.mcp_protocol import CALL, Json, ProtocolError

_tracer = trace.get_tracer("handrail")


@contextmanager
def message_span(method: str, params: Json, version: str, number: int | str | None) -> Iterator[Callable[[Json], None]]:
    """Open the span of one message of the client."""
    name = params.get("name")
    target = name if isinstance(name, str) else ""
    about: dict[str, Any] = {"mcp.method.name": method, "mcp.protocol.version": version}
    if number is not None:
        about["jsonrpc.request.id"] = str(number)
    if method == CALL:
        about |= {"gen_ai.operation.name": "execute_tool"} | ({"gen_ai.tool.name": target} if target else {})
    elif method == "prompts/get" and target:
        about["gen_ai.prompt.name"] = target
    title = f"{method} {target}" if target else method
    with _tracer.start_as_current_span(
        title, _parent(params), SpanKind.SERVER, about, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield lambda result: _describe(span, result)
        except ProtocolError as error:
            span.set_attributes({"error.type": str(error.code), "rpc.response.status_code": str(error.code)})
            span.set_status(StatusCode.ERROR, error.message)
            raise
        except Exception as error:
            span.set_attribute("error.type", type(error).__qualname__)
            span.record_exception(error)
            span.set_status(StatusCode.ERROR, str(error))
            raise


def _describe(span: Span, result: Json) -> None:
    if result.get("isError") is True:
        span.set_attribute("error.type", "tool_error")
        span.set_status(StatusCode.ERROR)


def _parent(params: Json) -> Context | None:
    """Return the trace that a client names in `_meta`; None if it names no valid one."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return None
    context = extract({name: value for name, value in meta.items() if isinstance(value, str)})
    return context if trace.get_current_span(context).get_span_context().is_valid else None
