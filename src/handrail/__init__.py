"""Handrail: the hands of coding agents. The public names, each imported when it is first used."""

from importlib import import_module

TYPE_CHECKING = False  # not from typing: with `python -m handrail` it could be a file of the repository's
if TYPE_CHECKING:
    from handrail.kernel.fs.boundary import FsBoundary
    from handrail.kernel.host.session_log import SessionLog
    from handrail.model.approval import Keep, Question, Verdict
    from handrail.tools.router import ToolRouter
    from handrail.tools.tool import ToolResult
    from handrail.workspace import Workspace

__version__ = "0.1.0"
__all__ = ["FsBoundary", "Keep", "Question", "SessionLog", "ToolResult", "ToolRouter", "Verdict", "Workspace"]

_HOMES = {
    "FsBoundary": "kernel.fs.boundary",
    "Keep": "model.approval",
    "Question": "model.approval",
    "SessionLog": "kernel.host.session_log",
    "ToolResult": "tools.tool",
    "ToolRouter": "tools.router",
    "Verdict": "model.approval",
    "Workspace": "workspace",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'handrail' has no attribute {name!r}")
    return getattr(import_module(f"handrail.{_HOMES[name]}"), name)
