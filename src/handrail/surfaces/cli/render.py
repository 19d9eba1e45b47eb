"""Prints results as text for a user or as JSON."""

import json
import re
from collections.abc import Mapping
from typing import Any

from handrail.ops.text.display import duration, visible
from handrail.surfaces.cli.light.plain_output import echo
from handrail.tools.tool import ToolResult

# JSON allows these characters unescaped, but terminals, line readers and encoders may fail on them.
_ESCAPED = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def echo_json(value: Any, indent: int | None = None) -> None:
    """Print one JSON document, always in UTF-8."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    echo(_ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode())


def human(result: ToolResult, root: str, *, colour: bool = False) -> str:
    """Return a result as text for a user."""
    lines = [f"✗ {_failure(result)}"] if result.error else _success(result)
    if result.error and result.error.suggestion:
        lines.append(f"  Suggestion: {result.error.suggestion}")
    if result.error:
        lines.append(f"  Code: {result.error.code}")
    lines += [f"  Location: {root.rstrip('/')}/{path}" for path in result.files_affected]
    lines += [f"  Warning: {warning}" for warning in result.warnings]
    lines.append(f"  Time: {duration(result.execution_time_ms)}")
    shown = visible("\n".join(lines))
    return f"\x1b[{31 if result.error else 32}m{shown[0]}\x1b[0m{shown[1:]}" if colour else shown


def _failure(result: ToolResult) -> str:
    if isinstance(result.output, str):
        return result.output
    return result.error.message if result.error else ""


def _success(result: ToolResult) -> list[str]:
    if isinstance(result.output, str):
        return [f"✓ {result.output.rstrip(chr(10))}"]
    return [f"✓ {result.tool}", *_fields(result.output, "  ")]


def _fields(value: Mapping[str, Any], indent: str) -> list[str]:
    lines = []
    for key, each in value.items():
        if isinstance(each, str) and "\n" in each:
            lines.append(f"{indent}{key}:")
            lines.extend(f"{indent}  {line}" for line in each.split("\n"))
        elif isinstance(each, list) and each:
            lines.append(f"{indent}{key}:")
            lines.extend(f"{indent}  - {_inline(item)}" for item in each)
        else:
            lines.append(f"{indent}{key}: {_inline(each)}")
    return lines


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_inline(each)}" for key, each in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
