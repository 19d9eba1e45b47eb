"""The `context` dialect: categories, permissions, guidance, previews; every answer is an object."""

from handrail.dialects.context import editing, finding
from handrail.dialects.context.declare import dialect
from handrail.tool import Tool

__all__ = ["dialect", "editing", "finding", "tool_registrations"]


def tool_registrations() -> list[Tool]:
    return list(dialect.tools.values())
