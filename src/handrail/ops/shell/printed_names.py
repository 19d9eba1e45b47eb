"""Tells which files a command prints, so that a model that reads with commands counts as having read them."""

from handrail.ops.shell.command_programs import parse_command

_PRINTERS = frozenset({"cat", "head", "tail", "nl", "less", "more", "bat", "sed", "awk", "grep", "rg", "diff"})


def printed_names(text: str) -> frozenset[str]:
    """Return the last parts of the paths that a command names to a program that prints files."""
    commands = [argv for argv in parse_command(text).commands if argv[0] in _PRINTERS]
    words = [word for argv in commands if not _edits(argv) for word in argv[1:] if word and not word.startswith("-")]
    return frozenset(word.rpartition("/")[2] for word in words)


def _edits(argv: tuple[str | None, ...]) -> bool:
    return argv[0] == "sed" and any(word is None or word.startswith(("-i", "--in-place")) for word in argv[1:])
