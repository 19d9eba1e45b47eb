"""The `context` dialect: categories, permissions, guidance, previews; every answer is an object."""

# The tools are listed in the order of their categories, in which their modules are imported.
from handrail.dialects.context import searching

# isort: split
from handrail.dialects.context import editing
from handrail.dialects.context.dialect import dialect
from handrail.tools.tool import Tool

__all__ = ["dialect", "editing", "searching", "tool_registrations"]


def tool_registrations() -> list[Tool]:
    return list(dialect.tools.values())
