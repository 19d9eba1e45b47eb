"""Declares the `claude` dialect: the client tools of Anthropic's API, whose schemas are built into the models."""

from handrail.dialects.claude import editor, shell  # isort: skip  the order of the contract
from handrail.dialects.claude import memory  # isort: skip
from handrail.dialects.claude.dialect import dialect  # isort: skip

__all__ = ["dialect", "editor", "memory", "shell"]
