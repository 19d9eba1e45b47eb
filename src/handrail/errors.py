"""Defines the exceptions that the library raises to its caller. Mistakes of a model are never raised: they are results.

HandrailError
├── WorkspaceError        the root cannot be opened as a workspace
├── ImageError            a container image cannot be read, unpacked or written
├── SettingsError         a setting, or a file with settings, is not valid
├── RuleError             an approval rule, or a file with rules, is not valid
├── UnknownDialectError   no dialect has this name
├── UnknownToolError      the dialect has no tool of this name
├── ClosedError           the workspace, or the session, is closed
├── DeniedError           the user, a rule or the policy denied a change
├── CallError             a file cannot be read or written, or a program not started, as asked
└── UndoError             the history cannot be undone, redone or restored as asked
"""

from collections.abc import Iterable


class HandrailError(Exception):
    """The base of all exceptions that the library raises. `str()` is a sentence for the user."""

    def __init__(self, message: str, suggestion: str = "", allow: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion
        """The action that helps; empty if none is known."""
        self.allow = allow
        """The action that would allow it, for the user and never for the model; empty if none would."""

    def __str__(self) -> str:
        stop = "" if self.message.endswith("?") else "."
        return f"{self.message}{stop} {self.suggestion}." if self.suggestion else self.message


class WorkspaceError(HandrailError):
    """The root cannot be opened as a workspace."""


class ImageError(HandrailError):
    """A container image cannot be read, unpacked or written."""


class SettingsError(HandrailError):
    """A setting, or a file with settings, is not valid."""


class RuleError(HandrailError):
    """An approval rule, or a file with rules, is not valid."""


class UnknownDialectError(HandrailError):
    """No dialect has this name."""


class UnknownToolError(HandrailError):
    """The dialect has no tool of this name."""


class ClosedError(HandrailError):
    """The workspace, or the session, is closed."""


class DeniedError(HandrailError):
    """The user, a rule or the policy denied a change."""


class CallError(HandrailError):
    """A file cannot be read or written, or a program cannot be started, as asked."""

    def __init__(self, message: str, suggestion: str = "", allow: str = "", code: str = "") -> None:
        super().__init__(message, suggestion, allow)
        self.code = code
        """The code of the error, as the answer to a model has it, such as `file_not_found`."""


class UndoError(HandrailError):
    """The history cannot be undone, redone or restored as asked."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?` for the nearest known name; empty if none is near."""
    from difflib import get_close_matches  # noqa: PLC0415  only when something is wrong

    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]}?" if near else ""
