"""Copies the history of a workspace into another state directory, at one moment between two commits."""

import os
import shutil
from contextlib import suppress

from handrail.kernel.host.state_dir import State
from handrail.kernel.journal.journal import Journal

_FILES = ("journal.jsonl", "kept.json", "unkept.json")


def copy_history(state: State, journal: Journal, target: str) -> None:
    """Copy journal, contents and indexes into the directory `target`, which has no journal yet. Raises OSError.

    The copy holds every entry that was written when it begins, and every content that these entries name. It shares
    the bytes of the contents with the original where the file system has hard links; both go on independently.
    """
    with state.lock():
        for name in _FILES:
            with suppress(FileNotFoundError):
                source = os.open(os.path.join(state.path, name), os.O_RDONLY | os.O_CLOEXEC)
                made = os.open(os.path.join(target, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with open(source, "rb") as old, open(made, "wb") as new:
                    shutil.copyfileobj(old, new)
        journal.blobs.copy_to(os.path.join(target, "blobs"))
