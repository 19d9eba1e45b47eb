"""Stores the contents of many files: opens each directory once, reads in a few threads, and writes large parts."""

import os
import stat
from collections.abc import Iterator
from functools import partial

from handrail.kernel.fs.parallel import parallel_map
from handrail.kernel.fs.resolver import O_PATH
from handrail.kernel.fs.small_files import PARENT, open_file
from handrail.kernel.journal.blobs import Blobs
from handrail.kernel.journal.journal import KeptNode
from handrail.kernel.journal.scanner import Fingerprint, fingerprint_of

_GROUP = 64
"""The most files of one directory that one thread stores at a time."""
_LINK = O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC

_File = tuple[str, str, Fingerprint]
"""Path, name in its directory, fingerprint."""


def store_files(root_fd: int, blobs: Blobs, files: dict[str, Fingerprint]) -> dict[str, KeptNode]:
    """Store the contents of files and return the entries by path.

    The entry of a file that changed since the scan, was deleted or cannot be read has no content. Raises OSError if
    storing fails.
    """
    with blobs.batch():
        found = parallel_map(partial(_store_group, root_fd, blobs), [*_groups(files)])
    return {path: node for nodes in found for path, node in nodes}


def _groups(files: dict[str, Fingerprint]) -> Iterator[tuple[str, list[_File]]]:
    """Yield each directory with files in it."""
    directories: dict[str, list[_File]] = {}
    for path, fingerprint in files.items():
        directory, _, name = path.rpartition("/")
        directories.setdefault(directory, []).append((path, name, fingerprint))
    for directory, inside in directories.items():
        for first in range(0, len(inside), _GROUP):
            yield directory, inside[first : first + _GROUP]


def _store_group(root_fd: int, blobs: Blobs, group: tuple[str, list[_File]]) -> list[tuple[str, KeptNode]]:
    directory, files = group
    try:
        fd = open_file(root_fd, directory, PARENT) if directory else os.dup(root_fd)
    except OSError:  # deleted meanwhile, or not readable
        return [(path, KeptNode("file", "", stat.S_IMODE(fingerprint[0]))) for path, _, fingerprint in files]
    try:
        return [(path, _store(fd, blobs, name, fingerprint)) for path, name, fingerprint in files]
    finally:
        os.close(fd)


def _store(dir_fd: int, blobs: Blobs, name: str, fingerprint: Fingerprint) -> KeptNode:
    mode = stat.S_IMODE(fingerprint[0])
    try:
        if stat.S_ISLNK(fingerprint[0]):
            return KeptNode("link", _target(dir_fd, name), mode)
        data = _data(dir_fd, name, fingerprint)
    except OSError:
        data = None  # deleted meanwhile, or not readable
    return KeptNode("file", "" if data is None else blobs.put(data), mode)


def _data(dir_fd: int, name: str, fingerprint: Fingerprint) -> bytes | None:
    fd = open_file(dir_fd, name)
    try:
        size = fingerprint[2]
        data = os.read(fd, size)
        while len(data) < size and (more := os.read(fd, size - len(data))):
            data += more
        return data if fingerprint_of(os.fstat(fd)) == fingerprint else None  # otherwise it changed after the scan
    finally:
        os.close(fd)


def _target(dir_fd: int, name: str) -> str:
    fd = open_file(dir_fd, name, _LINK)
    try:
        return os.readlink("", dir_fd=fd)
    finally:
        os.close(fd)
