"""Starts a host: a process of its own that holds workspaces and is reached over a nameless Unix socket."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from handrail.kernel.fleet.frames import FrameSocket
from handrail.kernel.fleet.node_directory import clear_host

_ENGINE = ("RAY_", "_RAY")
"""Variables of an engine, which a host does not need."""
_END_SECONDS = 20.0


class HostProcess:
    """A running host, its socket, and its directory, which goes with it."""

    def __init__(
        self, directory: str, search_path: Sequence[str] = (), variables: Mapping[str, str] | None = None
    ) -> None:
        """`search_path` are directories from which the host imports episodes, in addition to the installed packages."""
        ours, theirs = socket.socketpair()
        self.directory = directory
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_ENGINE)}
        given = {**kept, **(variables or {}), "PYTHONPATH": os.pathsep.join(filter(None, search_path))}
        argv = [sys.executable, "-P", "-m", "handrail.fleet.host", str(theirs.fileno()), directory]
        with theirs:
            self._process = subprocess.Popen(
                argv,
                env=given,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,  # the standard output of the fleet's process belongs to its results
                start_new_session=True,  # Ctrl-C ends the run, which ends its hosts
            )
        self.pid = self._process.pid
        self.frames = FrameSocket(ours)

    def end(self, *, at_once: bool = False) -> None:
        """End the host; kill it if it does not end by itself, and remove what it leaves."""
        if at_once:
            self._kill()
        self.frames.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        clear_host(self.directory)

    def _kill(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
