"""Turns faults, which carry facts, into the exceptions with sentences that the library raises."""

from handrail.errors import ClosedError, DeniedError, HandrailError, UndoError, WorkspaceError, did_you_mean
from handrail.model.faults import AccessDenied, Closed, Denied, Fault, NotADirectory, NotFound, PathFault
from handrail.tools.messages import ToolError

_WHY = {NotFound: "directory not found", NotADirectory: "it is not a directory", AccessDenied: "permission denied"}


def message_of(fault: Fault) -> ToolError:
    """Return the common code, message and suggestion for a fault."""
    from handrail.tools.common_messages import COMMON  # noqa: PLC0415  only when something is wrong
    from handrail.tools.messages import render  # noqa: PLC0415  only when something is wrong

    return render((COMMON,), "", fault, {})


def workspace_error(root: str, fault: PathFault, known: list[str] | None = None) -> WorkspaceError:
    """Return the error for a root that cannot be opened; `known` are names that the caller may have meant."""
    name = root.rstrip("/").rpartition("/")[2]
    why = next((said for kind, said in _WHY.items() if isinstance(fault, kind)), "a link in it cannot be followed")
    return WorkspaceError(f"cannot open the workspace {root}: {why}{did_you_mean(name, known or ())}")


def history_error(fault: Fault) -> HandrailError:
    """Return the error for a fault that ends an undo, a redo or a restore."""
    from handrail.tools.common_messages import COMMON  # noqa: PLC0415  only when something is wrong
    from handrail.tools.messages import how_to_allow  # noqa: PLC0415  only when something is wrong

    if isinstance(fault, Closed):
        return closed_error()
    said, kind = message_of(fault), DeniedError if isinstance(fault, Denied) else UndoError
    return kind(said.message, said.suggestion, how_to_allow((COMMON,), "", fault, {}))


def closed_error() -> ClosedError:
    """Return the error for a workspace that is closed."""
    return ClosedError("the workspace is closed")
