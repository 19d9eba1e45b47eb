"""Applies the text of a patch to the files of a workspace."""

from typing import TYPE_CHECKING

from handrail.model.faults import BlockedByFile, NotFound, SpecialFile
from handrail.model.files import Change, File, Put, Remove
from handrail.model.limits import Limits
from handrail.model.paths import given_form
from handrail.ops.patch import Action, FilePatch, PatchedContent, PatchOutcome, apply

if TYPE_CHECKING:
    from handrail.runtime.file_access import Files


def apply_patches(files: "Files", parsed: list[FilePatch], limits: Limits) -> list[PatchOutcome]:
    """Compute the new files of a patch and commit all of them or none.

    The outcomes have paths relative to the root.
    """
    patches = [_with_given_paths(patch) for patch in parsed]
    targets = PatchTargets(files, patches)
    outcomes = apply(patches, targets.read, key=targets.key, limits=limits)
    files.commit(*map(targets.change, outcomes))
    return [
        each._replace(path=files.relative(each.path), moved_from=each.moved_from and files.relative(each.moved_from))
        for each in outcomes
    ]


def _with_given_paths(patch: FilePatch) -> FilePatch:
    """Return the patch with its paths in the form that answers show and the boundary accepts."""
    return patch._replace(
        path=given_form(patch.path),
        source=given_form(patch.source) if patch.source else "",
        aliases=tuple(map(given_form, patch.aliases)),
    )


class PatchTargets:
    """Reads the files that a patch names and makes the changes to commit.

    A patch that deletes a symbolic link deletes the link itself. A patch that moves a symbolic link is refused.
    """

    def __init__(self, files: "Files", patches: list[FilePatch]) -> None:
        self._files = files
        self._deleted = {
            name for each in patches if each.action is Action.DELETE for name in (each.path, *each.aliases)
        }
        self._made = {each.path for each in patches if each.action is Action.CREATE or each.source}
        self._moved = {each.source for each in patches if each.action is Action.UPDATE and each.source}
        self._found: dict[str, File | None] = {}
        self._keys: dict[str, str] = {}

    def key(self, path: str) -> str:
        """Return the resolved path: equal for two names of the same file."""
        if path not in self._keys:
            try:
                self._keys[path] = self._files.target(path, follow=path not in self._deleted)
            except BlockedByFile:
                if path in self._made:
                    raise
                raise NotFound(path) from None  # a patch can edit nothing below a file
        return self._keys[path]

    def read(self, path: str) -> PatchedContent | None:
        """Return the content of a file; None if it does not exist."""
        try:
            file = self._found[self.key(path)] = self._file(path)
        except NotFound:
            return None
        return PatchedContent(file.data, file.mode) if file else PatchedContent(b"")

    def _file(self, path: str) -> File | None:
        """Return the file; None if it can be deleted but not read: a link, or a file that is too large."""
        if path in self._moved and self._files.is_link(path):
            raise SpecialFile(path, "symbolic link")
        return self._files.removal(path).base if path in self._deleted else self._files.read(path)

    def change(self, outcome: PatchOutcome) -> Change:
        """Return the change that leads to an outcome, based on the file that was read."""
        base = self._found.get(self.key(outcome.path))
        if outcome.after is None:
            return Remove(outcome.path, base)
        return Put(outcome.path, outcome.after.data, base, outcome.after.mode)
