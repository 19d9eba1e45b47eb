"""Finds the workspace of a command. Its import is cheap, for commands that open no workspace."""

from collections.abc import Iterator
from contextlib import contextmanager

from handrail.kernel.host.project_root import RootRefused, find_root
from handrail.model.faults import PathFault
from handrail.ops.text.display import visible
from handrail.surfaces.cli.light.plain_output import echo, usage_error
from handrail.surfaces.root_refusal import why_refused


def found_workspace(*, silent: bool = False) -> str:
    """Find the workspace from the current directory upwards and print which one it is. Raises UsageError."""
    try:
        found = find_root()
    except RootRefused as refused:
        raise usage_error(f"{why_refused(refused)}; choose one with --root DIR") from None
    if found.path != "." and not silent:
        echo(f"handrail: using the workspace {visible(found.path)}, which has a {found.marker}", err=True)
    return found.path


@contextmanager
def root_errors(root: str) -> Iterator[None]:
    """Report a root that cannot be opened as a usage error."""
    try:
        yield
    except PathFault as fault:
        from handrail.tools.fault_errors import workspace_error  # noqa: PLC0415  needed for errors only

        raise usage_error(str(workspace_error(root, fault))) from None
