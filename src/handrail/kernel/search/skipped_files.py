"""What ripgrep passes over in silence is named by a walk of our own, while it searches."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from handrail.kernel.search.engine import Watch
from handrail.kernel.search.walk import Walk
from handrail.model.limits import Limits
from handrail.ops.search.results import Skipped
from handrail.ops.search.scope import Scope


@contextmanager
def survey(dir_fd: int, scope: Scope, watch: Watch, limits: Limits) -> Iterator[Skipped]:
    """Files over the size limit and directories beyond the depth limit, known when the block ends."""
    skipped = Skipped.none(limits)
    if scope.max_depth is None and scope.max_file_bytes is None:
        yield skipped
        return
    failed: list[BaseException] = []

    def walk() -> None:
        try:
            for _ in Walk(scope, watch, skipped, limits, sizes=scope.max_file_bytes is not None).files(dir_fd):
                pass
        except BaseException as error:  # noqa: BLE001  raised again where the caller can see it
            failed.append(error)

    thread = threading.Thread(target=walk, name="handrail-survey")
    thread.start()
    try:
        yield skipped
    finally:
        thread.join()
    if failed:
        raise failed[0]
