"""The dialects, in one explicit list. Each is imported when it is first asked for."""

from importlib import import_module

from handrail.tools.tool import Dialect

DEFAULT = "file"
NAMES = ("gemini", "context", "copilot", "file", "codex")


def load(name: str) -> Dialect:
    found: Dialect = import_module(f"handrail.dialects.{name}").dialect
    return found


def find_dialect(tool: str) -> list[str]:
    """The dialects that have a tool of this name. Where that begins with a dialect's, no other need be loaded."""
    prefix = tool.partition(".")[0]
    return [name for name in ((prefix,) if prefix in NAMES else NAMES) if tool in load(name).tools]
