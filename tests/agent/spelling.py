"""Spells the steps of a task as calls of each dialect.

In the texts, `$path` is relative and `$whole` absolute. `$old`, `$new` and `$text` are contents; `$-`, `$+` and `$*`
are their lines as a patch writes them. `$words` are all words of a step, quoted for a shell.
"""

import re
import shlex
from pathlib import Path
from typing import Any

Call = dict[str, Any]
Spelling = tuple[str, dict[str, Any]]

_EDIT = (
    "import sys; p, o, n = sys.argv[1:]; t = open(p, newline='').read(); assert o in t, 'no such text'; "
    "open(p, 'w', newline='').write(t.replace(o, n))"
)
_WRITE = (
    "import os, sys; p, t = sys.argv[1:]; os.makedirs(os.path.dirname(p) or '.', exist_ok=True); open(p, 'w').write(t)"
)
_COMMANDS = {
    "read": "cat $words",
    "search": "grep -rnF -e $words .",
    "edit": f"python3 -c {shlex.quote(_EDIT)} $words",
    "create": f"python3 -c {shlex.quote(_WRITE)} $words",
    "delete": "rm $words",
    "run": "$path",
    "escape": "echo out > $words",
}
_OPENED = "*** Begin Patch\n"
_UPDATE = f"{_OPENED}*** Update File: $path\n@@\n$-$+*** End Patch\n"
_ADD = f"{_OPENED}*** Add File: $path\n$**** End Patch\n"
_DELETE = f"{_OPENED}*** Delete File: $path\n*** End Patch\n"
_OLD_NEW = {"old_string": "$old", "new_string": "$new"}

# What a dialect does not spell here, it does with its command; `context` and `file` have none.
_COMMAND: dict[str, tuple[str, str]] = {
    "gemini": ("run_shell_command", "command"),
    "copilot": ("run_in_terminal", "command"),
    "codex": ("shell", "command"),
    "claude-code": ("Bash", "command"),
    "claude": ("bash", "command"),
    "codex-2026": ("exec_command", "cmd"),
    "bash": ("bash", "command"),
    "claude-agent": ("bash", "command"),
    "gemini-3": ("run_shell_command", "command"),
    "openai": ("shell", "commands"),
}
_EDITOR = "str_replace_based_edit_tool"
_TOOLS: dict[str, dict[str, Spelling]] = {
    "gemini": {
        "read": ("read_file", {"absolute_path": "$whole"}),
        "search": ("search_file_content", {"pattern": "$path"}),
        "create": ("write_file", {"file_path": "$whole", "content": "$text"}),
        "edit": ("replace", {"file_path": "$whole", **_OLD_NEW}),
    },
    "context": {
        "read": ("read_file", {"path": "$path"}),
        "search": ("grep", {"pattern": "$path"}),
        "create": ("create_file", {"path": "$path", "content": "$text"}),
        "edit": ("replace_in_file", {"path": "$path", "find": "$old", "replace": "$new"}),
        "delete": ("delete_file", {"path": "$path"}),
        "escape": ("create_file", {"path": "$path", "content": "out"}),
    },
    "copilot": {
        "read": ("read_file", {"path": "$path"}),
        "search": ("grep_search", {"pattern": "$path"}),
        "create": ("create_file", {"path": "$path", "content": "$text"}),
        "edit": ("replace_string_in_file", {"path": "$path", **_OLD_NEW}),
    },
    "file": {
        "read": ("file.read", {"path": "$path"}),
        "search": ("file.search", {"pattern": "$path"}),
        "create": ("file.write", {"path": "$path", "content": "$text"}),
        "edit": ("file.patch", {"path": "$path", "patches": [{"find": "$old", "replace": "$new"}]}),
        "delete": ("file.delete", {"path": "$path"}),
        "escape": ("file.write", {"path": "$path", "content": "out"}),
    },
    "codex": {
        "read": ("read_file", {"path": "$path"}),
        "search": ("grep_files", {"pattern": "$path"}),
        "create": ("apply_patch_freeform", {"patch": _ADD}),
        "edit": ("apply_patch_freeform", {"patch": _UPDATE}),
        "delete": ("apply_patch_freeform", {"patch": _DELETE}),
    },
    "claude-code": {
        "read": ("Read", {"file_path": "$whole"}),
        "search": ("Grep", {"pattern": "$path"}),
        "create": ("Write", {"file_path": "$whole", "content": "$text"}),
        "edit": ("Edit", {"file_path": "$whole", **_OLD_NEW}),
    },
    "claude": {
        "read": (_EDITOR, {"command": "view", "path": "$whole"}),
        "create": (_EDITOR, {"command": "create", "path": "$whole", "file_text": "$text"}),
        "edit": (_EDITOR, {"command": "str_replace", "path": "$whole", "old_str": "$old", "new_str": "$new"}),
    },
    "codex-2026": {
        "create": ("apply_patch", {"input": _ADD}),
        "edit": ("apply_patch", {"input": _UPDATE}),
        "delete": ("apply_patch", {"input": _DELETE}),
    },
    "bash": {},
    "claude-agent": {
        "read": ("read", {"file_path": "$path"}),
        "search": ("grep", {"pattern": "$path"}),
        "create": ("write", {"file_path": "$path", "content": "$text"}),
        "edit": ("edit", {"file_path": "$path", **_OLD_NEW}),
    },
    "gemini-3": {
        "read": ("read_file", {"file_path": "$path"}),
        "search": ("grep_search", {"pattern": "$path"}),
        "create": ("write_file", {"file_path": "$path", "content": "$text"}),
        "edit": ("replace", {"file_path": "$path", "instruction": "Do it.", **_OLD_NEW}),
    },
    "openai": {
        "create": ("apply_patch", {"type": "create_file", "path": "$path", "diff": "$*"}),
        "edit": ("apply_patch", {"type": "update_file", "path": "$path", "diff": "@@\n$-$+"}),
        "delete": ("apply_patch", {"type": "delete_file", "path": "$path"}),
    },
}


def fails_in_text(dialect: str, step: list[str]) -> bool:
    """Say whether the text alone tells that this step failed: of a command, and of an edit that found nothing."""
    return dialect == "context" or (dialect in _COMMAND and step[0].lstrip("!") not in _TOOLS[dialect])


def spelled(dialect: str, step: list[str], root: Path) -> Call | None:
    """Return the call of a step; None if the dialect cannot do it."""
    kind, words = step[0].lstrip("!"), step[1:]
    if kind == "unknown":
        return {"tool": "no_such_tool", "arguments": {"path": "a.txt"}}
    if kind == "bare":
        tool, _ = _TOOLS[dialect].get("create") or _COMMAND[dialect]
        return {"tool": tool, "arguments": {}}
    if kind in _TOOLS[dialect]:
        tool, arguments = _TOOLS[dialect][kind]
    elif dialect in _COMMAND:
        tool, name = _COMMAND[dialect]
        arguments = {name: [_COMMANDS[kind]] if name == "commands" else _COMMANDS[kind]}
    else:
        return None
    return {"tool": tool, "arguments": _filled(arguments, _values(words, root))}


def _values(words: list[str], root: Path) -> dict[str, str]:
    path, *texts = words
    values = {"$path": path, "$whole": f"{root}/{path}", "$words": shlex.join(words)}
    if texts:
        values |= {"$text": texts[0], "$old": texts[0], "$new": texts[-1]}
        values |= {"$-": _marked("-", texts[0]), "$+": _marked("+", texts[-1]), "$*": _marked("+", texts[0])}
    return values


def _marked(mark: str, text: str) -> str:
    return "".join(f"{mark}{line}\n" for line in text.splitlines())


def _filled(value: Any, values: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each, values) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, values) for each in value]
    parts = re.split(r"(\$(?:path|whole|words|text|old|new|[-+*]))", value)
    return "".join(values.get(part, part) for part in parts)
