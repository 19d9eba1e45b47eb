"""Gives the hints for an error about a path: what exists under a similar name, and what `~` means."""

from typing import TYPE_CHECKING

from handrail.model.faults import HomePath, NotADirectory, NotFound, PathFault
from handrail.model.hints import FileWithSlash, HomeNotExpanded, NearestPath
from handrail.model.paths import quote, stem_of
from handrail.model.warnings import ToolWarning
from handrail.runtime.nearest_path import nearest_paths, plain_parts

if TYPE_CHECKING:
    from handrail.runtime.session import Services


def path_hints(services: "Services", fault: PathFault, *, absolute: bool, mount: str = "") -> list[ToolWarning]:
    """Return the hints for a fault, in the order to show them. `absolute`: the tool takes absolute paths only.

    `mount` is the tree of the tool's paths: empty for the workspace.
    """
    if isinstance(fault, NotADirectory) and fault.path.endswith("/"):
        return [FileWithSlash(fault.path.rstrip("/"))]
    stem = stem_of(services.boundary.root) if absolute and not mount else ""
    names = [quote(stem + name) for name in nearest_paths(services, fault, mount)]
    if others := [each for each in names if each != fault.path]:
        return [NearestPath(others)]
    if isinstance(fault, HomePath | NotFound) and fault.path.startswith("~"):
        return [HomeNotExpanded(quote(stem + "/".join(plain_parts(fault.path, services))) or ".")]
    return []
