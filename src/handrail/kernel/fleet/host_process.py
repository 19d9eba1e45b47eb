"""Starts a host: a process of its own that holds workspaces and is reached over a nameless Unix socket."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress

from handrail.kernel.fleet.frames import FrameSocket
from handrail.kernel.fleet.node_directory import clear_host
from handrail.model.fleet_limits import END_SECONDS

_ENGINE = ("RAY_", "_RAY")
"""Variables of an engine, which a host does not need."""


class HostProcess:
    """Holds a running host, its socket, and its directory, which is removed with it."""

    def __init__(self, directory: str) -> None:
        ours, theirs = socket.socketpair()
        self.directory = directory
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_ENGINE)}
        argv = [sys.executable, "-P", "-m", "handrail.fleet.host", str(theirs.fileno()), directory]
        with theirs:
            self._process = subprocess.Popen(
                argv,
                env=kept,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,  # the standard output of the fleet's process belongs to its results
                start_new_session=True,  # Ctrl-C ends the run, which ends its hosts
            )
        self.pid = self._process.pid
        self.frames = FrameSocket(ours)

    def end(self, *, at_once: bool = False) -> None:
        """End the host: kill it if it does not end by itself, and remove its directory."""
        if at_once:
            self._kill()
        self.frames.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        clear_host(self.directory)

    def _kill(self) -> None:
        """Kill the host and what its episodes have forked; a host leads a group of its own."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


def run_module(module: str, arguments: Sequence[str], *, without: tuple[str, ...]) -> int:
    """Run a module to its end, without the variables whose names begin with `without`; return its exit code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(without)}
    argv = [sys.executable, "-P", "-m", module, *arguments]
    nowhere = subprocess.DEVNULL
    with tempfile.TemporaryDirectory(prefix="handrail-home-") as home:  # a token may lie in the user's home
        given = {**kept, "HOME": home}
        return subprocess.run(argv, env=given, stdin=nowhere, stdout=nowhere, stderr=nowhere, check=False).returncode
