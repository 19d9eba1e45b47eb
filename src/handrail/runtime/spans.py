"""Describes calls as OpenTelemetry spans, if the setting `telemetry` is `otel`.

Handrail uses only the API of OpenTelemetry. The user's program configures an exporter; without one, nothing is sent.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, StatusCode

from handrail.model.files import Change, Put

if TYPE_CHECKING:
    from handrail.kernel.journal.journal import Journal

_tracer = trace.get_tracer("handrail")
span_of_surface: ContextVar[bool] = ContextVar("span_of_surface", default=False)
"""True if a surface has opened the span of a call, as the MCP server does: the call adds its attributes to that one."""

_NO_WORD = re.compile(r"[^\w-]")
"""Frameworks know a tool by a name without dots."""

Facts = Mapping[str, Any]


class Spans:
    """Makes the spans of one session."""

    def __init__(self, session: str, *, contents: bool) -> None:
        self._session, self._contents = session, contents

    @contextmanager
    def call(self, tool: str, facts: Facts, given: Any) -> Iterator["CallSpan"]:
        """Open the span of one call, or describe the one that the surface or a framework has opened for it."""
        about = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.conversation.id": self._session,
            **{name: value for name, value in facts.items() if value},
        }
        if self._contents:
            about["gen_ai.tool.call.arguments"] = json.dumps(given, ensure_ascii=False, default=str)
        span = trace.get_current_span()
        if (of_surface := span_of_surface.get()) or _is_of_call(span, tool):
            span.set_attributes(about)
            yield CallSpan(span, contents=self._contents, own=not of_surface)
            return
        with _tracer.start_as_current_span(f"execute_tool {tool}", kind=SpanKind.INTERNAL, attributes=about) as span:
            yield CallSpan(span, contents=self._contents, own=True)

    @contextmanager
    def run(self, model: str) -> Iterator[Span]:
        """Open the span of one run of the agent."""
        about = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "handrail",
            "gen_ai.request.model": model,
            "gen_ai.conversation.id": self._session,
        }
        with _tracer.start_as_current_span("invoke_agent handrail", kind=SpanKind.INTERNAL, attributes=about) as span:
            yield span

    @contextmanager
    def part(self, name: str) -> Iterator[Span]:
        """Open a span for one part of a call."""
        with _tracer.start_as_current_span(f"handrail.{name}", record_exception=False) as span:
            yield span


def _is_of_call(span: Span, tool: str) -> bool:
    """Say whether a framework that runs the tool, such as pydantic-ai, has opened a span for this call."""
    known = getattr(span, "attributes", None) or {}
    named = str(known.get("gen_ai.tool.name", ""))
    return known.get("gen_ai.operation.name") == "execute_tool" and _NO_WORD.sub("_", tool) == _NO_WORD.sub("_", named)


def commit_facts(changes: Sequence[Change], journal: "Journal") -> dict[str, int]:
    """Return what the span of a commit tells; the caller holds the lock, so that the newest entry is its own."""
    size = sum(len(change.data) for change in changes if isinstance(change, Put))
    facts = {"handrail.commit.files": len(changes), "handrail.commit.bytes": size}
    return facts | ({"handrail.journal.entry": journal.last_number()} if journal.on else {})


class CallSpan:
    """Holds the span of one call."""

    def __init__(self, span: Span, *, contents: bool, own: bool) -> None:
        self._span, self._contents, self._own = span, contents, own

    def end(self, text: str, error: str, facts: Facts) -> None:
        """Add what is known after the call: the code of its error, if any, and facts."""
        self._span.set_attributes({name: value for name, value in facts.items() if value not in (None, "")})
        if self._contents:
            self._span.set_attribute("gen_ai.tool.call.result", text)
        if error and self._own:
            self._span.set_attribute("error.type", error)
            self._span.set_status(StatusCode.ERROR)
        elif error:
            self._span.set_attribute("handrail.error.code", error)
