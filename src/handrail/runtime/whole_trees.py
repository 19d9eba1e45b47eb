"""Makes the changes that delete or move a file or a whole directory, and measures directories."""

from collections.abc import Iterator

from handrail.model.editor_faults import TooManyEntries
from handrail.model.faults import PathFault
from handrail.model.files import Change, MakeDirectory, Put, RemoveDirectory
from handrail.model.paths import quote, unquote
from handrail.runtime.file_access import Files


def removals(files: Files, path: str, most: int) -> list[Change]:
    """Return the changes that delete a path and everything below it. Of a link, they delete only the link.

    Raises TooManyEntries if there are more than `most` names.
    """
    return _bounded(path, _removals(files, path), most)


def moves(files: Files, old: str, new: str, most: int) -> list[Change]:
    """Return the changes that move a path and everything below it. Raises TooManyEntries like `removals`."""
    return _bounded(old, _moves(files, old, new), 2 * most)


def total_size(files: Files, directory: str) -> tuple[int, int]:
    """Return the size of all files below a directory together, and their number. Links are not followed."""
    size = count = 0
    try:
        entries = files.entries(directory)
    except PathFault:  # another process deleted or replaced the directory
        return 0, 0
    for entry in entries:
        if entry.is_directory and not entry.is_link:
            below = total_size(files, _below(directory, entry.name))
            size, count = size + below[0], count + below[1]
        else:
            size, count = size + entry.size, count + 1
    return size, count


def _bounded(path: str, changes: Iterator[Change], most: int) -> list[Change]:
    found: list[Change] = []
    for change in changes:
        if len(found) >= most:
            raise TooManyEntries(path, most)
        found.append(change)
    return found


def _removals(files: Files, path: str) -> Iterator[Change]:
    if files.is_link(path) or files.kind(path) != "directory":
        yield files.removal(path)
        return
    for name in files.names(path):
        yield from _removals(files, _below(path, name))
    yield RemoveDirectory(path)


def _moves(files: Files, old: str, new: str) -> Iterator[Change]:
    if files.is_link(old) or files.kind(old) != "directory":
        file = files.read(old)
        yield Put(new, file.data, mode=file.mode)
        yield files.removal(old)
        return
    yield MakeDirectory(new)
    for name in files.names(old):
        yield from _moves(files, _below(old, name), _below(new, name))
    yield RemoveDirectory(old)


def _below(path: str, name: str) -> str:
    return quote(f"{unquote(path).rstrip('/')}/{name}")
