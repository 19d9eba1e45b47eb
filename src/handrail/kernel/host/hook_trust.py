"""Remembers which content of a project's settings file the user trusts, so that its hooks may run."""

import hashlib
import os

from handrail.kernel.host.state_dir import State, read_text, write_text

_NAME = "trusted-hooks"


def is_trusted(root: str, text: str) -> bool:
    """Return whether the user trusts this very content of the project's file."""
    return read_text(_path(root)).strip() == _digest(text)


def trust(root: str, text: str) -> None:
    """Trust this content of the project's file; a changed file is not trusted."""
    write_text(_path(root), f"{_digest(text)}\n")


def distrust(root: str) -> bool:
    """Trust no content any more. Returns whether one was trusted."""
    try:
        os.unlink(_path(root))
    except FileNotFoundError:
        return False
    return True


def _path(root: str) -> str:
    return os.path.join(State.of(root).path, _NAME)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
