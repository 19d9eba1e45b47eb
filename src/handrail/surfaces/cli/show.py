"""A result as a person reads it."""

import json
from typing import Any

from handrail.ops.show import duration, visible
from handrail.tool import ToolResult


def human(result: ToolResult, root: str) -> str:
    lines = [f"✗ {_failure(result)}"] if result.error else _success(result)
    if result.error and result.error.suggestion:
        lines.append(f"  Suggestion: {result.error.suggestion}")
    if result.error:
        lines.append(f"  Code: {result.error.code}")
    lines += [f"  Location: {root.rstrip('/')}/{path}" for path in result.files_affected]
    lines += [f"  Warning: {warning}" for warning in result.warnings]
    lines.append(f"  Time: {duration(result.execution_time_ms)}")
    return visible("\n".join(lines))


def _failure(result: ToolResult) -> str:
    if isinstance(result.output, str):
        return result.output
    return result.error.message if result.error else ""


def _success(result: ToolResult) -> list[str]:
    if isinstance(result.output, str):
        return [f"✓ {result.output.rstrip(chr(10))}"]
    return [f"✓ {result.tool}", *_fields(result.output, "  ")]


def _fields(value: dict[str, Any], indent: str) -> list[str]:
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
