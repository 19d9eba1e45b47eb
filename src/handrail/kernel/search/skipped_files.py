"""Lists files that ripgrep skips silently (too large, too deep) by walking the tree while ripgrep searches."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from handrail.kernel.deadline import Deadline
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
    failed: list[BaseException] = []

    def walk() -> None:
        try:
            for _ in Walk(scope, deadline, skipped, limits, sizes=scope.max_file_bytes is not None).files(dir_fd):
                pass
        except BaseException as error:  # noqa: BLE001  raised again in the caller's thread
            failed.append(error)

    thread = threading.Thread(target=walk, name="handrail-skipped-files")
    thread.start()
    try:
        yield skipped
    finally:
        thread.join()
    if failed:
        raise failed[0]
