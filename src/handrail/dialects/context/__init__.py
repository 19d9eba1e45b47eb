"""Declares the `context` dialect: tools with categories, permissions, guidance and previews; answers are objects."""

# The order of the imports is the order of the tools.
from handrail.dialects.context import searching

# isort: split
from handrail.dialects.context import editing
from handrail.dialects.context.dialect import dialect

__all__ = ["dialect", "editing", "searching"]
