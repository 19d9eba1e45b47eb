"""Recognises the shell's error message for an unknown program."""

import re

_NOT_FOUND = re.compile(r"(?:^|: )(?:line \d+: |\d+: )?([^\s:]+): (?:command )?not found$", re.MULTILINE)


def not_found_program(command: str, stderr: str) -> str | None:
    """Return the command's first word if the shell did not find that program; None if another program is missing."""
    first = command.split(maxsplit=1)[0] if command.split() else ""
    found = _NOT_FOUND.search(stderr)
    return first if found and found[1] == first else None
