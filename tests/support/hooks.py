"""Writes hook programs and their settings for tests."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

HookWriter = Callable[..., str]
"""Writes the body of a bash script outside the workspace and returns its path."""


def hook_writer(directory: Path) -> HookWriter:
    """Return a function that writes hook programs into a directory."""

    def write(body: str, name: str = "hook") -> str:
        path = directory / name
        directory.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
        return str(path)

    return write


def table(event: str, command: str, **group: Any) -> dict[str, Any]:
    """Return the setting `hooks` with one hook."""
    return {event: [{**group, "hooks": [{"type": "command", "command": command}]}]}


def answers(output: dict[str, Any]) -> str:
    """Return the body of a hook that prints JSON."""
    return f"cat <<'END'\n{json.dumps(output)}\nEND"


def own(**output: Any) -> str:
    """Return the body of a hook that prints an answer of its event."""
    return answers({"hookSpecificOutput": output})
