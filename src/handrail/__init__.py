"""Handrail: the hands of coding agents. Start with `Workspace`; each public name is imported when it is first used."""

from importlib import import_module

TYPE_CHECKING = False  # not from typing: with `python -m handrail` that could be a file of the workspace
if TYPE_CHECKING:
    from handrail.dialects.by_model import dialect_for
    from handrail.errors import (
        CallError,
        ClosedError,
        DeniedError,
        HandrailError,
        ImageError,
        RuleError,
        SettingsError,
        UndoError,
        UnknownDialectError,
        UnknownToolError,
        WorkspaceError,
    )
    from handrail.kernel.fs.boundary import FsBoundary
    from handrail.kernel.host.session_log import SessionLog
    from handrail.kernel.layers.layer_archive import Snapshot
    from handrail.library.client_session import ClientSession
    from handrail.library.history import History
    from handrail.library.raw_access import ExecResult
    from handrail.model.approval import Keep, Question, Verdict
    from handrail.settings import Settings
    from handrail.tools.router import ToolRouter
    from handrail.tools.tool import ToolResult
    from handrail.workspace import Workspace

__version__ = "0.1.0"
__all__ = [
    "CallError",
    "ClientSession",
    "ClosedError",
    "DeniedError",
    "ExecResult",
    "FsBoundary",
    "HandrailError",
    "History",
    "ImageError",
    "Keep",
    "Question",
    "RuleError",
    "SessionLog",
    "Settings",
    "SettingsError",
    "Snapshot",
    "ToolResult",
    "ToolRouter",
    "UndoError",
    "UnknownDialectError",
    "UnknownToolError",
    "Verdict",
    "Workspace",
    "WorkspaceError",
    "dialect_for",
]

_HOMES = {
    "CallError": "errors",
    "ClientSession": "library.client_session",
    "ClosedError": "errors",
    "DeniedError": "errors",
    "ExecResult": "library.raw_access",
    "FsBoundary": "kernel.fs.boundary",
    "HandrailError": "errors",
    "History": "library.history",
    "ImageError": "errors",
    "Keep": "model.approval",
    "Question": "model.approval",
    "RuleError": "errors",
    "SessionLog": "kernel.host.session_log",
    "Settings": "settings",
    "SettingsError": "errors",
    "Snapshot": "kernel.layers.layer_archive",
    "ToolResult": "tools.tool",
    "ToolRouter": "tools.router",
    "UndoError": "errors",
    "UnknownDialectError": "errors",
    "UnknownToolError": "errors",
    "Verdict": "model.approval",
    "Workspace": "workspace",
    "WorkspaceError": "errors",
    "dialect_for": "dialects.by_model",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'handrail' has no attribute {name!r}")
    return getattr(import_module(f"handrail.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
