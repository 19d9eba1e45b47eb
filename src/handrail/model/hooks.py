"""Declares hooks: the user's own programs that judge calls before they run, or act after them."""

from typing import Any, Literal, NamedTuple

PRE, POST, FAILED, PERMISSION = "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"
EVENTS = (PRE, POST, FAILED, PERMISSION)
"""The events of Claude Code's contract that a tool runtime has."""


class Hook(NamedTuple):
    """Holds one hook: the event and the calls for which it runs, and its command."""

    event: str
    command: str
    """A text for bash."""
    matcher: str = ""
    """Names of tools with `|` between them, or a regular expression; empty for every tool."""
    pattern: str = ""
    """A regular expression that is searched in the input as compact JSON; empty for every input."""
    timeout: float | None = None
    """In seconds; None for the limit `hook_seconds`."""
    source: str = ""
    """The file that names the hook; empty for the caller of the library."""


class HookAnswer(NamedTuple):
    """Holds what a hook said."""

    decision: Literal["", "allow", "ask", "deny"] = ""
    reason: str = ""
    updated_input: dict[str, Any] | None = None
    context: str = ""
    """A text for the model."""
    output: Any = None
    """The output that replaces the tool's."""
    message: str = ""
    """A text for the user."""


class InputChanged(Exception):  # noqa: N818  no error: the router runs the call again
    """Says that a hook approved a call with another input, which must be checked and asked about like any input."""

    def __init__(self, params: dict[str, Any]) -> None:
        super().__init__()
        self.params = params


class Judgement(NamedTuple):
    """Holds what the hooks said about a call before it ran."""

    decision: Literal["", "allow", "ask"] = ""
    reason: str = ""
    params: Any = None
    """The input, as the hooks have changed it."""
    contexts: tuple[str, ...] = ()
    """Texts for the model."""
    seconds: float = 0.0
    """The time that the hooks took."""
