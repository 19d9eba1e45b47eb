"""Copies the contents of one directory into another, with hard links where that is possible."""

import os
import shutil
from contextlib import suppress

from handrail.kernel.contents.old_blobs import OldBlobs
from handrail.kernel.contents.pack import lock_pack
from handrail.kernel.contents.packs import pack_paths
from handrail.kernel.host.state_dir import make_private


def copy_contents(path: str, target: str) -> None:
    """Copy all contents that are stored when the copy begins. Raises OSError.

    A pack gets a second name while its lock is held: nothing is added to it after that, in either directory. A pack to
    which a process is just adding is copied; a reader ignores its torn end. A compaction meanwhile puts new packs in
    the place of old ones, so the copy ends when it finds no pack that it has not copied.
    """
    make_private(target)
    done = set[str]()
    while missing := [each for each in pack_paths(path) if each not in done]:
        for each in missing:
            done.add(each)
            with suppress(FileNotFoundError):
                _copy_pack(each, os.path.join(target, os.path.basename(each)))
    for old in OldBlobs(path).paths():
        place = os.path.join(target, os.path.relpath(old, path))
        make_private(os.path.dirname(place))
        with suppress(FileNotFoundError):
            _link_or_copy(old, place)


def _copy_pack(path: str, target: str) -> None:
    fd = lock_pack(path)
    if fd is None:
        _copy(path, target)
        return
    try:
        _link_or_copy(path, target)
    finally:
        os.close(fd)


def _link_or_copy(path: str, target: str) -> None:
    try:
        os.link(path, target)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without hard links
        _copy(path, target)


def _copy(path: str, target: str) -> None:
    with open(path, "rb") as source, open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as copy:
        shutil.copyfileobj(source, copy, 1 << 20)
