"""Commits changes with the writer alone, without a question."""

from collections.abc import Sequence

from handrail.kernel.write.writer import Writer
from handrail.model.files import Change, Version


def commit(writer: Writer, changes: Sequence[Change], targets: list[str] | None = None) -> list[Version | None]:
    """Commit the changes at `targets`, or at the paths that they resolve to now."""
    wanted = writer.targets([*changes]) if targets is None else targets
    with writer.locked(changes[0].path):
        return writer.commit([*changes], wanted)
