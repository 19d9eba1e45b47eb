"""Finds symbolic links to files by walking the tree while ripgrep lists files: ripgrep leaves out every link."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from handrail.kernel.deadline import Deadline
from handrail.kernel.fs.parallel import beside
from handrail.kernel.search.walk import Walk
from handrail.model.limits import Limits
from handrail.ops.search.results import Skipped
from handrail.ops.search.scope import FindRequest, Scope


@contextmanager
def linked_files(dir_fd: int, request: FindRequest, deadline: Deadline, limits: Limits) -> Iterator[list[str]]:
    """Yield the links in scope that lead to a file; the list is complete when the block ends."""
    found: list[str] = []
    if request.leads_to_file is None:
        yield found
        return
    scope = replace(request.scope, max_depth=_depth(request.scope))
    walk = Walk(scope, deadline, Skipped.none(limits), limits, links=request.leads_to_file, only_links=True)
    with beside(lambda: found.extend(each.path for each in walk.files(dir_fd)), "handrail-linked-files"):
        yield found


def _depth(scope: Scope) -> int | None:
    """Return how many levels the globs can reach; None if that is not known."""
    if scope.anywhere or not scope.include or any("**" in glob or glob.endswith("/") for glob in scope.include):
        return scope.max_depth
    reached = max(glob.count("/") for glob in scope.include) + 1
    return reached if scope.max_depth is None else min(reached, scope.max_depth)
