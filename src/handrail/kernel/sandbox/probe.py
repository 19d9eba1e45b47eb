"""Whether bubblewrap can confine anything on this machine, tried on an empty directory of our own.

If it can, and fails in a workspace, the reason is in there, and whoever put it there must not gain a weaker
confinement by it.
"""

import os
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import replace

from handrail.kernel.sandbox import launch as build
from handrail.kernel.sandbox.view.occupied_names import OccupiedNames


def works(place: build.WorkspaceView, bwrap: str) -> bool:
    """The same command line, for another place that belongs to the same person."""
    with tempfile.TemporaryDirectory(prefix="handrail-") as root:
        who = build.identity(place.root_fd).drop_to
        if who is not None:
            os.chown(root, *who)
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            elsewhere = replace(
                place, root=os.path.realpath(root), root_fd=fd, settings=replace(place.settings, hidden=())
            )
            return _runs(
                build.strict(elsewhere, bwrap, OccupiedNames(fd), None), place.settings.limits.sandbox_start_seconds
            )
        except OSError:
            return False
        finally:
            os.close(fd)


def _runs(building: build.Building, seconds: float) -> bool:
    launch = building.launch
    argv = [*launch.argv[: launch.argv.index("--") + 1], build.SHELL, "-c", ":"]
    try:
        with suppress(subprocess.TimeoutExpired):
            return not subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=seconds,
                check=False,
                **launch.options(),
            ).returncode
        return False
    finally:
        building.done()
