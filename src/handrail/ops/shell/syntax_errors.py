"""What a shell says when the program of a command is unknown."""

import re

_NOT_FOUND = re.compile(r"(?:^|: )(?:line \d+: |\d+: )?([^\s:]+): (?:command )?not found$", re.MULTILINE)


def not_found_program(command: str, stderr: str) -> str | None:
    """The command's first word, if the shell could not find it (and not some program that it ran)."""
    first = command.split(maxsplit=1)[0] if command.split() else ""
    found = _NOT_FOUND.search(stderr)
    return first if found and found[1] == first else None
