"""Copies what a fork shares with its parent besides files: the history, the memory, and records about files."""

import os
import shutil
from contextlib import suppress

from handrail.kernel.host.state_dir import State
from handrail.kernel.journal.journal import Journal
from handrail.kernel.journal.snapshot import copy_history
from handrail.model.paths import MEMORIES

_FILES = ("protected.json", "git.json")


def copy_state(state: State, journal: Journal, target: str) -> None:
    """Copy the state of a workspace into a directory for the state of another one. Raises OSError."""
    copy_history(state, journal, target)
    for name in _FILES:
        with suppress(FileNotFoundError):
            shutil.copyfile(os.path.join(state.path, name), os.path.join(target, name))
    memory = MEMORIES.strip("/")
    with suppress(FileNotFoundError):
        shutil.copytree(os.path.join(state.path, memory), os.path.join(target, memory), symlinks=True)
