"""Throw-away workspaces, for the demo and for replays."""

import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from handrail.kernel.state import State, existing_directory


@contextmanager
def scratch_workspace(files: Mapping[str, str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="handrail-demo-") as root:
        for name, content in files.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(content)
        yield root


@contextmanager
def scratch_copy(root: str) -> Iterator[str]:
    """A copy of a directory, links as links; it goes again, with all that Handrail kept about it."""
    existing_directory(root)
    with tempfile.TemporaryDirectory(prefix="handrail-replay-") as home:
        copy = os.path.join(os.path.realpath(home), "workspace")
        shutil.copytree(root, copy, symlinks=True, ignore=_special)
        try:
            yield copy
        finally:
            shutil.rmtree(State(copy).path)


def _special(directory: str, names: list[str]) -> list[str]:
    """What is neither a file nor a link nor a directory cannot be copied."""
    kinds = (stat.S_ISREG, stat.S_ISLNK, stat.S_ISDIR)
    modes = {name: os.lstat(os.path.join(directory, name)).st_mode for name in names}
    return [name for name, mode in modes.items() if not any(kind(mode) for kind in kinds)]


def nowhere() -> io.StringIO:
    """A file for what is recorded elsewhere."""
    return io.StringIO()
