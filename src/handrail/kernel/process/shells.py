"""Names the shells that run commands."""

import os

BASH = "/bin/bash"


def is_bash(shell: str) -> bool:
    return shell.endswith("/bash")


def users_shell() -> str:
    """Return the shell that the user's environment names, or /bin/sh."""
    return os.environ.get("SHELL") or "/bin/sh"
