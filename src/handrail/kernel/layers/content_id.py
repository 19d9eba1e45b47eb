"""Computes the content id of a directory: equal for directories with the same names, contents, kinds and exec bits."""

import hashlib
import json
import os
import stat
from contextlib import suppress

from handrail.kernel.fs.placeholder import is_placeholder
from handrail.kernel.fs.small_files import FILE, open_file
from handrail.kernel.host.state_dir import read_text, write_whole
from handrail.kernel.layers.upper_entries import entries
from handrail.ops.git_names import OCCUPIED

_CHUNK = 1 << 20


def content_id(root_fd: int, known_path: str) -> str:
    """Return the content id of an open directory. `known_path` is a file that keeps digests for the next time."""
    known = _read_known(known_path)
    seen: dict[str, list[object]] = {}
    total = hashlib.sha256()

    def enters(path: str, found: os.stat_result) -> bool:
        may_stand = stat.S_ISDIR(found.st_mode) or path.rpartition("/")[2] in OCCUPIED
        return not (may_stand and is_placeholder(root_fd, path))

    for path, found, _ in entries(root_fd, enters):
        kind, digest = _described(root_fd, path, found, known, seen)
        total.update(b"\0".join((os.fsencode(path), kind, digest.encode())) + b"\n")
    if seen != known:
        with suppress(OSError):  # it only saves time
            write_whole(known_path, json.dumps(seen).encode(), sync=False)
    return total.hexdigest()


def _described(
    root_fd: int,
    path: str,
    found: os.stat_result,
    known: dict[str, list[object]],
    seen: dict[str, list[object]],
) -> tuple[bytes, str]:
    if stat.S_ISDIR(found.st_mode):
        return b"directory", ""
    if stat.S_ISLNK(found.st_mode):
        fd = open_file(root_fd, path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return b"link", hashlib.sha256(os.readlink(b"", dir_fd=fd)).hexdigest()
        finally:
            os.close(fd)
    if not stat.S_ISREG(found.st_mode):
        return b"other", ""
    mark = [found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]
    if path in known and known[path][:-1] == mark:
        seen[path] = known[path]
    else:
        seen[path] = [*mark, _digest(root_fd, path)]
    return b"program" if found.st_mode & 0o100 else b"file", str(seen[path][-1])


def _digest(root_fd: int, path: str) -> str:
    digest = hashlib.sha256()
    try:
        fd = open_file(root_fd, path, FILE)
    except OSError:  # this user cannot read it: nor can the workspace
        return "unreadable"
    try:
        while data := os.read(fd, _CHUNK):
            digest.update(data)
    finally:
        os.close(fd)
    return digest.hexdigest()


def _read_known(path: str) -> dict[str, list[object]]:
    try:
        found = json.loads(read_text(path) or "{}")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
