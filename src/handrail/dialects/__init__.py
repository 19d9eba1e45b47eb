"""Lists the dialects and loads each of them at its first use."""

from importlib import import_module

from handrail.errors import UnknownDialectError, did_you_mean
from handrail.tools.tool import Dialect

DEFAULT = "file"
NAMES = (
    "gemini",
    "context",
    "copilot",
    "file",
    "codex",
    "claude",
    "claude-agent",
    "claude-code",
    "codex-2026",
    "bash",
    "openai",
    "gemini-3",
)


def load(name: str) -> Dialect:
    """Return a dialect. Raises UnknownDialectError for a name that is not in `NAMES`."""
    if name not in NAMES:
        known = f"Known dialects: {', '.join(NAMES)}"
        raise UnknownDialectError(f"unknown dialect {name!r}{did_you_mean(str(name), NAMES)}", known)
    found: Dialect = import_module(f"handrail.dialects.{name.replace('-', '_')}").dialect
    return found


def find_dialect(tool: str) -> list[str]:
    """Return the dialects that have a tool of this name. A dialect prefix in the name avoids loading the others."""
    prefix = tool.partition(".")[0]
    return [name for name in ((prefix,) if prefix in NAMES else NAMES) if tool in load(name).tools]
