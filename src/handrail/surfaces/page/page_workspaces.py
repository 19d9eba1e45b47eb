"""Opens the workspaces that processes have reported, for one piece of work of the page."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from handrail.errors import HandrailError
from handrail.model.approval import Question, Verdict
from handrail.model.faults import PathFault
from handrail.ops.text.display import visible
from handrail.surfaces.page.page_app import BadRequest, Json
from handrail.surfaces.page.page_hub import PageHub
from handrail.tools.fault_errors import workspace_error
from handrail.workspace import Workspace


def known_root(hub: PageHub, body: Json) -> str:
    """Return a workspace that a process has reported; no other directory is opened."""
    root = str(body.get("workspace"))
    if root not in {session["path"] for session in hub.sessions.values()}:
        raise BadRequest("this workspace is not known", 404)
    return root


def in_workspace(
    root: str, work: Callable[[Workspace], Any], approve: Callable[[Question], Verdict] | None = None
) -> Any:
    """Open a workspace for one piece of work."""
    with (
        bad_requests(root),
        Workspace.from_settings(root, {"approve": "ask"}, approver=approve, tell=lambda _: None) as workspace,
    ):
        return work(workspace)


@contextmanager
def bad_requests(root: str) -> Iterator[None]:
    """Answer with what is wrong with a workspace: it is gone, its settings cannot be read, its files have changed."""
    try:
        yield
    except PathFault as fault:
        raise BadRequest(visible(str(workspace_error(root, fault))), 409) from None
    except (HandrailError, OSError) as error:
        raise BadRequest(visible(str(error)), 409) from None
