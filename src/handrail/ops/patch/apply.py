"""Computes the outcome of a patch for every file, or raises a fault."""

from collections import Counter
from collections.abc import Callable
from dataclasses import field

from handrail.model.faults import AlreadyExists, BadPatch, BlockedByFile, DeletionLeaves, HunkApplied, NotFound
from handrail.model.limits import Limits
from handrail.model.record import record
from handrail.ops.patch.file_lines import Lines
from handrail.ops.patch.model import ADDED, Action, FilePatch, PatchedContent, PatchOutcome
from handrail.ops.patch.splice import patched

Read = Callable[[str], PatchedContent | None]
_EXECUTABLE, _READABLE = 0o111, 0o444


def apply(
    patches: list[FilePatch],
    read: Read,
    *,
    key: Callable[[str], str] | None = None,
    limits: Limits | None = None,
) -> list[PatchOutcome]:
    """Return the outcomes, in the order in which the patch first names the files.

    `read` returns the content of a file, or None if it does not exist; it is called once for each file. `key` returns
    the same text for all names of the same file.
    """
    tree = _PatchedTree(read, key or _plain, limits or Limits())
    for patch in patches:
        tree.expect(patch)
    for patch in patches:
        _ACTIONS[patch.action](tree, patch)
    return tree.outcomes()


@record
class _PatchedTree:
    """Holds the files as they are, and as the sections applied so far change them."""

    read: Read
    key: Callable[[str], str]
    limits: Limits
    names: dict[str, str] = field(default_factory=dict)
    before: dict[str, PatchedContent | None] = field(default_factory=dict)
    after: dict[str, PatchedContent | None] = field(default_factory=dict)
    came_from: dict[str, str] = field(default_factory=dict)
    leaving: Counter[str] = field(default_factory=Counter)
    """The names that later sections move away or delete, each with how often they do."""
    displaced: dict[str, PatchedContent] = field(default_factory=dict)
    """The files that a later section moves away or deletes, and whose names already belong to another file."""

    def expect(self, patch: FilePatch) -> None:
        """Note the file that a section will move away or delete. A deletion in an envelope means the file of then."""
        if patch.action is Action.UPDATE and patch.source:
            self.leaving[self.key(patch.source)] += 1
        elif patch.action is Action.DELETE and not patch.envelope:
            self.leaving[self.key(patch.path)] += 1

    def original(self, path: str) -> PatchedContent | None:
        """Return the content before the patch."""
        name = self.key(path)
        if name not in self.before:
            self.before[name] = self.after[name] = self.read(path)
        return self.before[name]

    def now(self, path: str) -> PatchedContent | None:
        """Return the content after the sections applied so far."""
        self.original(path)
        return self.after[self.key(path)]

    def put(self, path: str, content: PatchedContent | None) -> None:
        """Set the new content; None deletes the file."""
        self.original(path)
        self.names.setdefault(self.key(path), path)
        self.after[self.key(path)] = content

    def make_room(self, path: str, *, replaces: bool = False) -> None:
        """Let a file that a later section moves away or deletes keep its content. Raises AlreadyExists for others."""
        there, name = self.now(path), self.key(path)
        if there and self.leaving[name] and name not in self.displaced:
            self.displaced[name] = there
        elif there and not replaces:
            raise AlreadyExists(path)

    def leaves(self, path: str) -> tuple[PatchedContent | None, bool]:
        """Return the file that a section moves away or deletes, and whether its name belongs to another file by now."""
        name = self.key(path)
        self.leaving[name] -= 1
        displaced = self.displaced.pop(name, None)
        return (displaced, True) if displaced else (self.now(path), False)

    def move(self, source: str, path: str, content: PatchedContent, *, displaced: bool) -> None:
        old, new = self.key(source), self.key(path)
        origin = old if displaced else self.came_from.pop(old, old)
        if not displaced:
            self.put(source, None)
        self.put(path, content)
        self.came_from[new] = origin

    def mode_of_successor(self, path: str) -> int | None:
        """Return the mode of a new file whose name a moved file had: it is not executable because that one was."""
        before = self.original(path)
        if before is None or before.mode is None or self.key(path) not in self.came_from.values():
            return None
        return before.mode & ~_EXECUTABLE

    def outcomes(self) -> list[PatchOutcome]:
        """Return the outcome of every name that the patch changed."""
        moves = {new: old for new, old in self.came_from.items() if new != old and self.after[new] and self.before[old]}
        gone = {old: new for new, old in moves.items() if not self.after[old]}
        self._refuse_files_in_files()
        return [
            PatchOutcome(
                path,
                self.before[name],
                self.after[name],
                moved_from=self.names[moves[name]] if name in moves else "",
                moved_to=self.names[gone[name]] if name in gone else "",
            )
            for name, path in self.names.items()
            if self.before[name] or self.after[name]
        ]

    def _refuse_files_in_files(self) -> None:
        """Raise BlockedByFile if a name would be a file and a directory at once."""
        files = {name for name in self.names if self.after[name]}
        for name in files:
            parent = name.rpartition("/")[0]
            while parent:
                if parent in files:
                    raise BlockedByFile(self.names[name], self.names[parent])
                parent = parent.rpartition("/")[0]


def _plain(path: str) -> str:
    """Return the path without empty and `.` components."""
    root = "/" if path.startswith("/") else ""
    return root + "/".join(part for part in path.split("/") if part not in ("", "."))


def _create(tree: _PatchedTree, patch: FilePatch) -> None:
    data = _new_file(patch)
    there = tree.now(patch.path)
    mode = None if patch.executable is None else 0o755 if patch.executable else 0o644
    if patch.envelope:
        mode = there.mode if there else tree.mode_of_successor(patch.path)
    elif there and there.data == data and data and not tree.leaving[tree.key(patch.path)]:
        raise HunkApplied(patch.path, 1, 1)
    else:
        tree.make_room(patch.path)
    tree.put(patch.path, PatchedContent(data, mode))


def _new_file(patch: FilePatch) -> bytes:
    """Return the content of a created file. Raises BadPatch if a line is not an added line."""
    lines: list[bytes] = []
    closed = True
    for chunk in patch.chunks:
        for number, line in enumerate(chunk.lines[: len(chunk.lines) - chunk.padding], chunk.at + 1):
            if line[0] != ADDED:
                raise BadPatch("old_lines", number, line.decode(errors="surrogateescape"))
            lines.append(line[1:])
        closed = not chunk.new_open
    return Lines(lines, closed).data()


def _delete(tree: _PatchedTree, patch: FilePatch) -> None:
    there, path = _existing(tree, patch)
    displaced = False
    if not patch.envelope and path == patch.path:
        left, displaced = tree.leaves(path)
        there = left or there
    if patch.chunks:
        rest = patched(path, there.data, patch.chunks, tree.limits)
        if rest:
            raise DeletionLeaves(path, len(Lines.of(rest).lines))
    if not displaced:
        tree.put(path, None)


def _update(tree: _PatchedTree, patch: FilePatch) -> None:
    if _creates_after_all(tree, patch):
        _create(tree, patch)
    elif patch.source:
        _move(tree, patch)
    else:
        there, path = _existing(tree, patch)
        tree.put(path, _changed(path, there, patch, tree.limits))


def _move(tree: _PatchedTree, patch: FilePatch) -> None:
    there, displaced = tree.leaves(patch.source)
    if there is None:
        raise NotFound(patch.source)
    content = _changed(patch.source, there, patch, tree.limits)
    if tree.key(patch.source) == tree.key(patch.path):
        tree.put(patch.source, content)
        return
    tree.make_room(patch.path, replaces=patch.envelope)
    tree.move(patch.source, patch.path, content, displaced=displaced)


def _copy(tree: _PatchedTree, patch: FilePatch) -> None:
    """Copy the source as it was before the patch, as git does, even if the patch changes the source."""
    there = tree.original(patch.source)
    if there is None:
        raise NotFound(patch.source)
    tree.make_room(patch.path)
    tree.put(patch.path, _changed(patch.source, there, patch, tree.limits))


def _creates_after_all(tree: _PatchedTree, patch: FilePatch) -> bool:
    """Return whether an update creates a file: some diffs name a new file on both sides, with no old lines."""
    starts = [chunk.start for chunk in patch.chunks]
    if starts != [0] or patch.source or patch.chunks[0].old:
        return False
    return not any(tree.now(name) for name in (patch.path, *patch.aliases))


def _existing(tree: _PatchedTree, patch: FilePatch) -> tuple[PatchedContent, str]:
    """Return the file that the patch changes, and the name under which it was found. Raises NotFound."""
    for name in (patch.path, *patch.aliases):
        there = tree.now(name)
        if there:
            return there, name
    raise NotFound(patch.path)


def _changed(path: str, there: PatchedContent, patch: FilePatch, limits: Limits) -> PatchedContent:
    """Return the file with the chunks and the mode of the patch."""
    data = patched(path, there.data, patch.chunks, limits) if patch.chunks else there.data
    mode = there.mode
    if patch.executable is not None and mode is not None:
        mode = mode | (mode & _READABLE) >> 2 if patch.executable else mode & ~_EXECUTABLE
    return PatchedContent(data, mode)


_ACTIONS = {Action.CREATE: _create, Action.DELETE: _delete, Action.UPDATE: _update, Action.COPY: _copy}
