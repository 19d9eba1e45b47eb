"""Lists files that ripgrep skips silently (too large, too deep) by walking the tree while ripgrep searches."""

from collections.abc import Iterator
from contextlib import contextmanager

from handrail.kernel.deadline import Deadline
from handrail.kernel.search.beside import beside
from handrail.kernel.search.walk import Walk
from handrail.model.limits import Limits
from handrail.ops.search.results import Skipped
from handrail.ops.search.scope import Scope


@contextmanager
def listed_skips(dir_fd: int, scope: Scope, deadline: Deadline, limits: Limits) -> Iterator[Skipped]:
    """Yield the files over the size limit and directories beyond the depth limit; complete when the block ends."""
    skipped = Skipped.none(limits)
    if scope.max_depth is None and scope.max_file_bytes is None:
        yield skipped
        return

    def walk() -> None:
        for _ in Walk(scope, deadline, skipped, limits, sizes=scope.max_file_bytes is not None).files(dir_fd):
            pass

    with beside(walk, "handrail-skipped-files"):
        yield skipped
