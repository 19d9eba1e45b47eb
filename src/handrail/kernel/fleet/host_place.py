"""Names the files in the directory of one host: roots of workspaces, their state, and files for the fleet."""

import itertools
import os
import signal
from collections.abc import Callable
from contextlib import suppress

from handrail.kernel.fleet.node_directory import hold, private_directory, remove_tree


def process_id() -> int:
    """Return the number of this process."""
    return os.getpid()


class HostPlace:
    """Holds the directory of this process, which is a host. Nothing in it survives the host."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.node = os.path.dirname(os.path.dirname(directory))
        self._lock = hold(directory)
        self._roots, self._files = private_directory(directory, "w"), private_directory(directory, "files")
        os.environ["HANDRAIL_STATE_DIR"] = private_directory(directory, "state")
        os.environ["HANDRAIL_CONFIG_DIR"] = private_directory(directory, "config")
        self._numbers = itertools.count(1)

    def new_root(self) -> str:
        """Return a name for the root of a workspace."""
        return os.path.join(self._roots, f"{os.path.basename(self.directory)}-{next(self._numbers)}")

    def new_file(self) -> str:
        """Return a name for a new file."""
        return os.path.join(self._files, str(next(self._numbers)))

    def trial(self) -> str:
        """Make an empty directory for a trial."""
        return private_directory(self.directory, "trial")

    def take(self, path: str) -> bytes:
        """Read one of the host's files and remove it."""
        with open(path, "rb") as file:
            data = file.read()
        os.unlink(path)
        return data

    def put(self, path: str, data: bytes) -> None:
        """Write one of the host's files."""
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(data)

    def leave_to_this_process(self, forget: Callable[[], None]) -> None:
        """Let processes that an episode forks have neither the lock nor the connection, which `forget` gives up."""

        def begin() -> None:
            os.close(self._lock)
            forget()

        os.register_at_fork(after_in_child=begin)

    def end_process(self) -> None:
        """Remove the directory and end this process, whatever its threads do, and what its episodes have forked."""
        remove_tree(self.directory)
        with suppress(FileNotFoundError):
            os.unlink(self.directory + ".lock")
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(0)
