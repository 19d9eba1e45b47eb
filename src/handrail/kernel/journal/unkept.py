"""Lists what was not kept before the first command of a session, so that `handrail history` can name it."""

import json
import os

from handrail.kernel.host.state_dir import State, read_text, write_text

_LISTED = 1000
"""The most paths in the list."""


def save_unkept(state: State, paths: list[str]) -> None:
    """Write the list; directories end with a slash."""
    write_text(_place(state), json.dumps(paths[:_LISTED]))


def load_unkept(state: State) -> list[str]:
    """Return the list of the last session that ran a command."""
    try:
        return [str(path) for path in json.loads(read_text(_place(state)))]
    except (OSError, ValueError, TypeError, RecursionError):  # no command ran yet, or the list is damaged
        return []


def _place(state: State) -> str:
    return os.path.join(state.path, "unkept.json")
