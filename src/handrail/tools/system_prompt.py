"""Writes the system-prompt section of a dialect: its tools by category, with permissions, approval and guidance."""

import json

from handrail.model.effects import Effect
from handrail.tools.tool import Dialect, Guide, Tool

# Categories for dialects that declare none: a tool belongs to the first category with one of its effects.
_BY_EFFECT = (
    (Effect.RUN, "Commands", "Run programs in the sandbox. Every command needs approval and stops at its time limit."),
    (Effect.FETCH, "Network", "Fetch from the network. Every fetch needs approval."),
    (Effect.DELETE, "File Management", "Destructive operations on whole files. Approval is always required."),
    (Effect.WRITE | Effect.CREATE, "File Writing", "Create and change files. Every change needs approval."),
    (Effect.READ, "Reading & Searching", "Read and search files. Read-only; never needs approval."),
)


def system_prompt(dialect: Dialect, tools: list[Tool]) -> str:
    """Return the section that describes the given tools of a dialect."""
    groups = dict(dialect.categories)
    members: dict[str, list[Tool]] = {name: [] for name in groups}
    for tool in tools:
        name, summary = (tool.guide.category, "") if tool.guide else _category(tool)
        groups.setdefault(name, summary)
        members.setdefault(name, []).append(tool)
    order = list(dialect.categories) or [name for _, name, _ in reversed(_BY_EFFECT)]
    parts = ["# Tools"]
    for name in order:
        if members.get(name):
            parts += [f"## {name}", groups[name], *(_described(tool) for tool in members[name])]
    return "\n\n".join(parts) + "\n"


def _category(tool: Tool) -> tuple[str, str]:
    """Return the name and the summary of the category for a tool's effects."""
    return next((name, summary) for flags, name, summary in _BY_EFFECT if tool.effects & flags)


def _described(tool: Tool) -> str:
    lines = [
        f"### {tool.name}",
        tool.description,
        f"- Permissions: {', '.join(tool.required_permissions)}",
        f"- Approval: {'required' if tool.requires_approval else 'not required'}",
        "- Parameters:",
    ]
    for name, declared in tool.params.fields.items():
        need = "required" if declared.required else f"default {json.dumps(declared.default)}"
        lines.append(f"  - `{name}` ({need}): {declared.description}")
    return "\n".join(lines + (_guidance(tool.guide) if tool.guide else []))


def _guidance(guide: Guide) -> list[str]:
    return [
        f"- Use: {guide.use}",
        f"- Options: {guide.options}",
        f"- Termination: {guide.termination_behavior_doc}",
        f"- Example: `{json.dumps(guide.example, ensure_ascii=False)}`",
    ]
