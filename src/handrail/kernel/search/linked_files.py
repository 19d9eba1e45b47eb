"""Finds symbolic links to files by walking the tree while ripgrep lists files: ripgrep leaves out every link."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from handrail.kernel.deadline import Deadline
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
    with _beside(lambda: found.extend(each.path for each in walk.files(dir_fd)), "handrail-linked-files"):
        yield found


def _depth(scope: Scope) -> int | None:
    """Return how many levels the globs can reach; None if that is not known."""
    if scope.anywhere or not scope.include or any("**" in glob or glob.endswith("/") for glob in scope.include):
        return scope.max_depth
    reached = max(glob.count("/") for glob in scope.include) + 1
    return reached if scope.max_depth is None else min(reached, scope.max_depth)


@contextmanager
def _beside(work: Callable[[], None], name: str) -> Iterator[None]:
    """Run `work` in a thread beside the block. At the end of the block, wait for it and raise what it raised."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            failed.append(error)

    thread = threading.Thread(target=run, name=name)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if failed:
        raise failed[0]
