"""Names a model of each API, as a user names it, and the calls that mend `calc.py` in its dialect."""

from pathlib import Path
from typing import Any, NamedTuple

from support.model_server import Say, Use

ANSWER = "add() adds now."
KEY = "key-of-the-user-0123456789"
"""Looks like no known secret, so that no pattern hides it."""


class Wire(NamedTuple):
    """Describes one API: the model, the variables of its provider, and a task in its tools."""

    model: str
    path: str
    """What follows the address of the server in the base URL."""
    key: str
    address: str
    """The variable for the base URL."""
    call: Use

    def turns(self, root: Path) -> list[Say | Use]:
        """Return the turns of the model; `{root}` in a call is the path of the project."""
        arguments = {
            name: value.replace("{root}", str(root)) if isinstance(value, str) else value
            for name, value in self.call.arguments.items()
        }
        return [Use(self.call.tool, arguments), Say(ANSWER)]


_OLD, _NEW = "    return a - b", "    return a + b"
_STRINGS = {"old_string": _OLD, "new_string": _NEW}
_PATCH: dict[str, Any] = {"type": "update_file", "path": "calc.py", "diff": f"@@\n-{_OLD}\n+{_NEW}\n"}
MENDED = f"def add(a, b):\n{_NEW}\n"
WIRES = {
    "chat": Wire(
        "openai-chat:qwen3",
        "/v1",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        Use("replace", {"file_path": "calc.py", "instruction": "Add.", **_STRINGS}),
    ),
    "responses": Wire(
        "openai-responses:gpt-5.1", "/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL", Use("apply_patch", _PATCH)
    ),
    "anthropic": Wire(
        "anthropic:claude-opus-5-5",
        "",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        Use(
            "str_replace_based_edit_tool",
            {"command": "str_replace", "path": "{root}/calc.py", "old_str": _OLD, "new_str": _NEW},
        ),
    ),
    "gemini": Wire(
        "google:gemini-2.5-pro",
        "",
        "GOOGLE_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        Use("replace", {"file_path": "{root}/calc.py", **_STRINGS}),
    ),
}
