"""Collects the spans of OpenTelemetry in memory."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from opentelemetry import trace

Spans = Callable[[], list[Any]]


@cache
def _exporter() -> Any:
    """Return an exporter in memory: one for all tests, because OpenTelemetry takes one provider for each process."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    made, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(made))
    trace.set_tracer_provider(provider)
    return made


@pytest.fixture
def spans() -> Iterator[Spans]:
    """Return a function that returns the spans which have ended so far."""
    pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")
    exporter = _exporter()
    exporter.clear()
    yield lambda: list(exporter.get_finished_spans())
    exporter.clear()
