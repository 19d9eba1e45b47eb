"""Tries on an empty directory whether bubblewrap works on this machine.

If it works there and fails in a workspace, then something in the workspace causes the failure. The agent that put it
there must not get a weaker sandbox.
"""

import errno
import os
import signal
import subprocess
import tempfile

from handrail.kernel.sandbox import launch
from handrail.kernel.sandbox.first_command import SHELL
from handrail.kernel.sandbox.view.command_user import identity
from handrail.kernel.sandbox.view.occupied_names import OccupiedNames
from handrail.kernel.sandbox.view.workspace_view import WorkspaceView

_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOSPC, errno.EDQUOT)


def works(view: WorkspaceView, bwrap: str) -> bool:
    """Return True if the same command line works for an empty directory of the same owner.

    A lack of handles, memory, processes, space or time is no sign that it does not work: an agent can cause that.
    """
    try:
        with tempfile.TemporaryDirectory(prefix="handrail-") as root:
            return _works_in(root, view, bwrap)
    except OSError as error:
        return error.errno in _SHORTAGES


def _works_in(root: str, view: WorkspaceView, bwrap: str) -> bool:
    settings = view.settings
    owner = identity(view.root_fd).drop_to
    if owner is not None:
        os.chown(root, *owner)
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        empty = view._replace(
            root=os.path.realpath(root), root_fd=fd, settings=settings._replace(hidden=(), image=None, enter=None)
        )
        prepared = launch.strict(empty, bwrap, OccupiedNames(fd), None)
        return _runs(prepared, settings.limits.sandbox_start_seconds)
    finally:
        os.close(fd)


def _runs(prepared: launch.PreparedLaunch, seconds: float) -> bool:
    argv = prepared.launch.argv
    argv = [*argv[: argv.index("--") + 1], SHELL, "-c", ":"]
    try:
        trial = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            **prepared.launch.options(),
        )
        try:
            return not trial.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        finally:
            if trial.returncode is None:
                os.killpg(trial.pid, signal.SIGKILL)  # a young child of bubblewrap does not die with its parent yet
                trial.wait()
    finally:
        prepared.close()
