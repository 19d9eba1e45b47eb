"""Holds the two trees that tools may change: the workspace and the memory directory."""

import os
import threading
from contextlib import suppress

from handrail.kernel.fs.boundary import FsBoundary, faults_for
from handrail.model.faults import AccessDenied, OutsideRoot, PathFault
from handrail.model.paths import MEMORIES


def in_memory(target: str) -> bool:
    """Return whether a resolved path lies in the memory directory: those of the workspace are relative to its root."""
    return target.startswith("/")


class Trees:
    """Finds the boundary of a resolved path. Opens the memory directory at its first use.

    A resolved path in the workspace is relative to the root. A resolved path in the memory directory begins with
    `/memories`. So a path in an intent or in the journal says in which tree it lies, and no path in the workspace can
    be taken for one in the memory.
    """

    def __init__(self, workspace: FsBoundary, state: str = "") -> None:
        self.workspace = workspace
        self._directory = os.path.join(state, MEMORIES.strip("/"))
        self._memory: FsBoundary | None = None
        self._opening = threading.Lock()

    @property
    def memory(self) -> FsBoundary:
        """The memory directory. It lies in the state of the workspace, and only its owner can read it."""
        with self._opening:
            if self._memory is None:
                with faults_for(MEMORIES), suppress(FileExistsError):
                    os.mkdir(self._directory, 0o700)
                try:
                    self._memory = FsBoundary(self._directory, mount=MEMORIES)
                except PathFault:  # another process has put a link or a file in its place
                    raise AccessDenied(MEMORIES) from None
            return self._memory

    def has_memories(self) -> bool:
        """Say whether there is a memory directory."""
        return os.path.isdir(self._directory)

    def of(self, target: str) -> FsBoundary:
        """Return the boundary of a resolved path."""
        return self.memory if in_memory(target) else self.workspace

    def named(self, path: str) -> FsBoundary:
        """Return the boundary of a path as the user writes it. A root that is `/memories` itself hides the memory."""
        try:
            self.workspace.split(path)
        except OutsideRoot:
            if path == MEMORIES or path.startswith(f"{MEMORIES}/"):
                return self.memory
        return self.workspace

    def close(self) -> None:
        """Close both roots."""
        if self._memory is not None:
            self._memory.close()
        self.workspace.close()
