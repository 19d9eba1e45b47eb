"""Declares the `gemini-3` dialect: the tools of Gemini CLI for Gemini 3; the output is the text that the model sees."""

# The order of the imports is the order of the tools.
from handrail.dialects.gemini_3 import file_tools

# isort: split
from handrail.dialects.gemini_3 import searching

# isort: split
from handrail.dialects.gemini_3 import running
from handrail.dialects.gemini_3.dialect import dialect

__all__ = ["dialect", "file_tools", "running", "searching"]
