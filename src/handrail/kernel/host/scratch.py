"""Makes temporary workspaces for the demo and for replays."""

import errno
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from handrail.kernel.host.state_dir import State, existing_directory

_SOURCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
_LEAST = 1 << 12
"""The disk space that each entry counts at least."""
_REMOVE = 'read _; chmod -R u+rwX -- "$@"; rm -rf -- "$@"'
"""`read` ends when our end of the pipe is closed: by this process, or by the system when this process is killed."""


class CopyTooLarge(Exception):  # noqa: N818  its text is a message for the user
    """Says why a directory is too large to be copied."""


@contextmanager
def scratch_workspace(files: Mapping[str, str]) -> Iterator[str]:
    """Yield a temporary directory with these files; remove it at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="handrail-demo-") as root:
        for name, content in files.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(content)
        yield root


@contextmanager
def scratch_copy(root: str, most: int) -> Iterator[str]:
    """Yield a copy of a directory, with links copied as links. Raises CopyTooLarge above `most` bytes.

    The copy and Handrail's state of it are removed at the end of the block, even if this process is killed.
    """
    existing_directory(root)
    home = os.path.realpath(tempfile.mkdtemp(prefix="handrail-replay-"))
    copy = os.path.join(home, "workspace")
    with _removed_at_the_end(home, State(copy).path):
        copy_tree(root, copy, most)
        yield copy


def copy_tree(root: str, copy: str, most: int) -> None:
    """Copy a directory with links as links, without set-id bits. Raises CopyTooLarge above `most` bytes."""
    copier = _Copier(most)
    try:
        shutil.copytree(root, copy, symlinks=True, ignore=copier.left_out, copy_function=copier)
    except RecursionError:
        raise CopyTooLarge("its directories are nested too deeply") from None
    except shutil.Error as error:
        name, _, why = error.args[0][0]
        raise OSError(errno.EIO, f"{name} cannot be copied: {why}") from None


@contextmanager
def _removed_at_the_end(*paths: str) -> Iterator[None]:
    """Remove directories when the block or this process ends; another process, which survives this one, does it."""
    argv = ["/bin/sh", "-c", _REMOVE, "sh", *paths]
    nowhere = subprocess.DEVNULL
    remover = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, cwd="/", start_new_session=True
    )
    try:
        yield
    finally:
        remover.communicate()


class _Copier:
    """Copies regular files, holes as holes, within a number of bytes for all of them."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def left_out(self, directory: str, names: list[str]) -> list[str]:
        """Return the names that cannot be copied: neither a file nor a link nor a directory."""
        self._spend(_LEAST * len(names))
        kinds = (stat.S_ISREG, stat.S_ISLNK, stat.S_ISDIR)
        modes = {name: os.lstat(os.path.join(directory, name)).st_mode for name in names}
        return [name for name, mode in modes.items() if not any(kind(mode) for kind in kinds)]

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise CopyTooLarge(f"it holds more than {self._most} bytes")

    def __call__(self, source: str, target: str) -> str:
        """Copy one file with its times and its mode, but without set-user-id bits."""
        reading = os.open(source, _SOURCE)
        try:
            if not stat.S_ISREG(os.fstat(reading).st_mode):  # it was replaced after it was listed
                return target
            writing = os.open(target, _NEW, 0o600)
            try:
                self._copy(reading, writing)
            finally:
                os.close(writing)
        finally:
            os.close(reading)
        shutil.copystat(source, target, follow_symlinks=False)
        os.chmod(target, stat.S_IMODE(os.stat(target).st_mode) & 0o777)
        return target

    def _copy(self, reading: int, writing: int) -> None:
        size, at = os.fstat(reading).st_size, 0
        os.truncate(writing, size)
        while at < size:
            try:
                at = os.lseek(reading, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:  # ENXIO: only a hole is left
                    raise
                return
            end = os.lseek(reading, at, os.SEEK_HOLE)
            while at < end and (data := os.pread(reading, min(_CHUNK, end - at), at)):
                self._spend(len(data))
                at += os.pwrite(writing, data, at)
            at = max(at, end)  # continue after `end` even if the file became shorter meanwhile
