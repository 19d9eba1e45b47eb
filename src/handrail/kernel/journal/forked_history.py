"""Copies the history and the memory of a workspace into the state directory of another one."""

import os
import shutil
from contextlib import suppress

from handrail.kernel.host.state_dir import State
from handrail.kernel.journal.journal import Journal
from handrail.model.paths import MEMORIES

_FILES = ("journal.jsonl", "protected.json", "git.json")


def copy_history(state: State, journal: Journal, target: str) -> None:
    """Copy journal, contents and memory into a directory, at one moment between two commits. Raises OSError."""
    with state.lock():
        for name in _FILES:
            with suppress(FileNotFoundError):
                shutil.copyfile(os.path.join(state.path, name), os.path.join(target, name))
        memory = MEMORIES.strip("/")
        with suppress(FileNotFoundError):
            shutil.copytree(os.path.join(state.path, memory), os.path.join(target, memory), symlinks=True)
        blobs = os.path.join(os.path.dirname(journal.path), "blobs")
        with suppress(FileNotFoundError):  # stored contents never change, so both may share them
            shutil.copytree(blobs, os.path.join(target, "blobs"), copy_function=os.link)
