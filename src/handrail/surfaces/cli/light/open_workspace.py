"""Finds and opens the workspace of a command, and reports what is wrong with it as an error of the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from handrail.dialects import DEFAULT, NAMES, find_dialect, load
from handrail.errors import HandrailError
from handrail.surfaces.cli.light.find_workspace import found_workspace, root_errors
from handrail.surfaces.cli.light.plain_output import echo, usage_error
from handrail.workspace import Workspace

__all__ = ["dialect_of", "found_workspace", "open_workspace", "usage_errors"]


@contextmanager
def usage_errors(root: str) -> Iterator[None]:
    """Report a wrong root, setting or rule as a usage error."""
    try:
        with root_errors(root):
            yield
    except HandrailError as error:
        raise usage_error(str(error)) from None
    except OSError as error:  # the state directory cannot be used
        raise usage_error(f"cannot open the workspace {root}: {error}") from None


def open_workspace(
    root: str,
    *,
    approver: Any = None,
    tell: Any = None,
    image: str | None = None,
    workdir: str | None = None,
    layered: bool | str | None = None,
    **flags: Any,
) -> Workspace:
    """Open a directory, or an image, for a command; report what is wrong as a usage error."""
    if workdir is not None and image is None:
        raise usage_error("--workdir needs --image")
    if root and image is not None:
        raise usage_error("give --root or --image, not both")
    if layered and image is not None:
        raise usage_error("changes to an image lie in a layer already: leave --layered out")
    with usage_errors(root or str(image)):
        place = root if image is None else None
        where: dict[str, Any] = {"image": image, "workdir": workdir, "layered": layered or False}
        workspace = Workspace.from_settings(place, flags, approver=approver, tell=tell, **where)
    for note in workspace.warnings:
        echo(f"handrail: {note}", err=True)
    if workspace.recovered:
        echo(f"handrail: rolled back {workspace.recovered} interrupted write(s)", err=True)
    return workspace


def dialect_of(tool: str, named: str | None) -> str:
    """Return the named dialect, or the only dialect that has this tool."""
    if named:
        return named
    having = find_dialect(tool)
    if len(having) > 1:
        raise usage_error(f"several dialects have {tool}; choose one with --dialect: {', '.join(having)}")
    return having[0] if having else _nearest_dialect(tool)


def _nearest_dialect(tool: str) -> str:
    """Return the dialect that has the tool with the most similar name."""
    from difflib import get_close_matches  # noqa: PLC0415  needed for unknown tools only

    homes = {known: name for name in NAMES for known in load(name).tools}
    return next((homes[each] for each in get_close_matches(tool, homes, 1)), DEFAULT)
