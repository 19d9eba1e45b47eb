"""Makes a container image the root of a sandbox, and refuses images that would redirect what is mounted in it.

Bubblewrap follows the links of an image while it builds: with `/tmp` as a link to `/oldroot/home`, the private `/tmp`
would lie over a directory of the host, and a file that bubblewrap makes in the image could be made outside. So:

- Bubblewrap makes nothing in the image. It mounts `/proc`, `/dev` and `/tmp`, and everything else lies in these.
- Before each start, these and the working directory are opened below the image's root without following any link.
  A command cannot exchange them later: they are mounts in its namespace, which the kernel does not rename.
- Handrail itself writes the files of `/etc` that depend on the network: by handles, without following a link.
"""

import errno
import os
import re
import struct
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from handrail.kernel.fs.resolver import openat2
from handrail.kernel.fs.syscalls import os_error, write_all

MOUNT_POINTS = ("proc", "dev", "tmp")
OWN_FILES = ("etc/hosts", "etc/resolv.conf")
OWN_PATHS = tuple(f"/{path}" for path in (*MOUNT_POINTS, *OWN_FILES))
"""What Handrail makes in the view of every image: no change of the image."""
TOOLS = "/dev/.handrail"
"""The directory in the sandbox with the interpreter of the supervisor. No command can write there."""
IMAGE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of commands in an image whose configuration names none."""
SHELLS = ("bin/bash", "usr/bin/bash", "bin/sh", "usr/bin/sh", "bin/ash")
_INSIDE, _NO_LINKS = 0x08 | 0x02, 0x04  # BENEATH | NO_MAGICLINKS, NO_SYMLINKS
_IN_ROOT = 0x10 | 0x02  # IN_ROOT | NO_MAGICLINKS
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH = os.O_PATH | os.O_CLOEXEC
_RETRIES = 8


class ImageRoot(NamedTuple):
    """Holds the view of an image in which commands run."""

    at: str
    """The path of the view in the namespace of its mount."""
    fd: int
    variables: Mapping[str, str]
    """The Env of the image."""
    uid: int
    gid: int
    shell: str
    """The path of its best shell, inside."""


class ImageRefused(OSError):  # noqa: N818  its text is a message for the user
    """Says why no sandbox starts in an image."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EPERM, why)


def checked(fd: int, workdir: str) -> None:
    """Raise ImageRefused if a mount point or the working directory is a link, or no directory; make missing ones."""
    for path in (*MOUNT_POINTS, workdir.strip("/")):
        if path:
            os.close(real_directory(fd, path))


def real_directory(fd: int, path: str) -> int:
    """Open a directory of an image without following links; make what is missing. Raises ImageRefused."""
    here = os.dup(fd)
    try:
        for name in path.split("/"):
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=here)
            found = existing_directory(here, name)
            os.close(here)
            here = found
    except OSError as error:
        os.close(here)
        raise ImageRefused(f"/{path} of the image {error.strerror}") from None
    return here


def existing_directory(fd: int, path: str) -> int:
    """Open a directory of an image without following links; its root for an empty path. Raises ImageRefused."""
    try:
        return _opened(fd, path or ".", _DIRECTORY, _INSIDE | _NO_LINKS)
    except OSError as error:
        known = {errno.ELOOP: "is a link", errno.ENOTDIR: "is no directory"}
        raise ImageRefused(known.get(error.errno or 0, f"cannot be used ({error.strerror})")) from None


def write_etc(fd: int, files: Mapping[str, bytes]) -> None:
    """Write files of `/etc`; a link with such a name is replaced, never followed. Raises ImageRefused."""
    etc = real_directory(fd, "etc")
    try:
        for name, content in files.items():
            if _content(etc, name, len(content)) != content:
                _replace(etc, name, content)
    except OSError as error:
        raise ImageRefused(f"/etc/{name} of the image cannot be written: {error.strerror}") from None
    finally:
        os.close(etc)


def _replace(etc: int, name: str, content: bytes) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=etc)
    made = os.open(name, _NEW, 0o644, dir_fd=etc)
    try:
        os.fchmod(made, 0o644)
        write_all(made, content)
    finally:
        os.close(made)


def _content(etc: int, name: str, most: int) -> bytes | None:
    """Return what a file holds, a byte more than `most` at most; None if it is no regular file."""
    try:
        path = _opened(etc, name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, _INSIDE | _NO_LINKS)
    except OSError:
        return None
    try:
        return os.read(path, most + 1)
    except OSError:
        return None
    finally:
        os.close(path)


def find_shell(fd: int) -> str:
    """Return the best shell of an image, as a path inside; that of sh if it has none."""
    for name in SHELLS:
        with suppress(OSError):
            found = _opened(fd, name, _PATH, _IN_ROOT)
            try:
                if os.fstat(found).st_mode & 0o170111 > 0o100000:
                    return f"/{name}"
            finally:
                os.close(found)
    return "/bin/sh"


def _opened(above: int, name: str, flags: int, resolve: int) -> int:
    how = struct.pack("=QQQ", flags, 0, resolve)
    for _ in range(_RETRIES):
        found = openat2(above, os.fsencode(name), how)
        if found >= 0:
            return found
        if found not in (-errno.EAGAIN, -errno.EINTR):
            raise os_error(-found)
    raise os_error(errno.EAGAIN)


def user_of(text: str) -> tuple[int, int]:
    """Return the numbers of the `User` of a configuration; those of root for a name, and for numbers out of range."""
    uid, _, gid = text.partition(":")
    return _number(uid), _number(gid)


def _number(text: str) -> int:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else 0
