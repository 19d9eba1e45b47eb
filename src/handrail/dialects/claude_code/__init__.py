"""Declares the `claude-code` dialect: the tools of Claude Code; the output is the text that the model sees."""

# The order of the imports is the order of the tools.
from handrail.dialects.claude_code import file_tools

# isort: split
from handrail.dialects.claude_code import running

# isort: split
from handrail.dialects.claude_code import searching

# isort: split
from handrail.dialects.claude_code import fetching
from handrail.dialects.claude_code.dialect import dialect

__all__ = ["dialect", "fetching", "file_tools", "running", "searching"]
