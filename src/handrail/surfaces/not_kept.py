"""Says what undo cannot restore: its content was not kept before commands."""

_NAMED = 10


def cannot_restore(paths: list[str]) -> str:
    """Return the sentence that names files and directories, which end with a slash."""
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return (
        f"Undo cannot restore what commands change in {', '.join(paths[:_NAMED])}{more}: too many files, or too large"
    )
