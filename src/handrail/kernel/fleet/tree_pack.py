"""Packs a directory into one file and unpacks it elsewhere, bit for bit: names, contents, modes, links.

The content id is the SHA-256 of the list of everything inside, so a pack that was changed on its way does not unpack.
"""

import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Any, NamedTuple

from handrail.errors import HandrailError
from handrail.kernel.fs.placeholder import MARK
from handrail.model.fleet_limits import TREE_BYTES, TREE_FILES

_CHUNK = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_BELOW = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GZIP_LEVEL = 1


class TreeError(HandrailError):
    """A tree cannot be packed or unpacked."""


class Piece(NamedTuple):
    """Describes one entry of a tree: a file, a link or a directory."""

    kind: str
    """`f`, `l` or `d`."""
    mode: int
    content: str
    """The SHA-256 of a file, or the target of a link."""


Pieces = dict[str, Piece]
"""The entries of a tree by their paths."""


def content_id(pieces: Pieces) -> str:
    """Return the id of a tree with these entries."""
    lines = (json.dumps([name, *pieces[name]]) for name in sorted(pieces))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def walk(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the files, links and directories below a directory with their facts, parents first.

    The empty directories that a sandbox makes as mount points are no part of it.
    """
    waiting = [""]
    while waiting:
        here = waiting.pop()
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(os.path.join(root, here)) as found:
            for entry in sorted(found, key=lambda each: each.name):
                name = os.path.join(here, entry.name)
                facts = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(facts.st_mode):
                    if _is_mount_point(entry.path):
                        continue
                    waiting.append(name)
                elif not (stat.S_ISREG(facts.st_mode) or stat.S_ISLNK(facts.st_mode)):
                    continue
                yield name, facts


def _is_mount_point(path: str) -> bool:
    try:
        return os.getxattr(path, MARK, follow_symlinks=False) == b"1" and not os.listdir(path)
    except OSError:  # no mark, or a file system without them
        return False


def pack(root: str, target: str, only: Callable[[str], bool] | None = None) -> Pieces:
    """Write a directory, or some of its entries, into a new file. Raises TreeError and OSError."""
    pieces: Pieces = {}
    size = 0
    with (
        open(target, "xb") as file,
        _compressed(file) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, facts in walk(root):
            if only and not only(name):
                continue
            size += facts.st_size
            if len(pieces) >= TREE_FILES or size > TREE_BYTES:
                raise TreeError(f"the tree {root} is too large: at most {TREE_FILES} entries and {TREE_BYTES} bytes")
            with suppress(FileNotFoundError):  # a command removed it meanwhile
                pieces[name] = _add(archive, root, name, facts)
    return pieces


def _add(archive: tarfile.TarFile, root: str, name: str, facts: os.stat_result) -> Piece:
    path, mode = os.path.join(root, name), stat.S_IMODE(facts.st_mode) & 0o777
    member = tarfile.TarInfo(name)
    member.mode, member.mtime = mode, int(facts.st_mtime)
    if stat.S_ISDIR(facts.st_mode):
        member.type = tarfile.DIRTYPE
        archive.addfile(member)
        return Piece("d", mode, "")
    if stat.S_ISLNK(facts.st_mode):
        member.type, member.linkname = tarfile.SYMTYPE, os.readlink(path)
        archive.addfile(member)
        return Piece("l", 0, member.linkname)
    with open(os.open(path, _READ), "rb") as file:
        member.size = os.fstat(file.fileno()).st_size
        hashed = _Hashed(file, member.size)
        archive.addfile(member, hashed)  # type: ignore[arg-type]  # it only reads
    return Piece("f", mode, hashed.digest.hexdigest())


class _Hashed:
    """Reads exactly as many bytes as were announced, and hashes them: a command may change the file meanwhile."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left, self.digest = file, size, hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left))
        data += bytes(min(size, self._left) - len(data))
        self._left -= len(data)
        self.digest.update(data)
        return data


def unpack(source: str, target: str, *, expected: str | None = None, over: bool = False) -> Pieces:
    """Unpack a tree into a directory and return its pieces. Raises TreeError if its id is not the `expected` one.

    Names never leave the directory: every parent is opened without following a link. `over` replaces what is there.
    """
    pieces: Pieces = {}
    root_fd = os.open(target, _BELOW)
    try:
        with open(source, "rb") as file, tarfile.open(fileobj=_expanded(file), mode="r|") as archive:
            for member in archive:
                name = _checked(member, pieces)
                pieces[name] = _make(archive, member, root_fd, name, over=over)
        for name in sorted(pieces, reverse=True):  # at the end: a directory without write permission takes no files
            if pieces[name].kind == "d":
                _set_mode(root_fd, name, pieces[name].mode)
    except (tarfile.TarError, EOFError, UnicodeError) as error:
        raise TreeError(f"the pack is damaged: {error}") from None
    finally:
        os.close(root_fd)
    if expected is not None and content_id(pieces) != expected:
        raise TreeError(f"the pack does not hold the tree {expected}")
    return pieces


def _checked(member: tarfile.TarInfo, known: Pieces) -> str:
    name = member.name
    parts = name.split("/")
    if name in known or not name or any(part in ("", ".", "..") for part in parts) or "\0" in name:
        raise TreeError(f"the pack is damaged: the name {name!r}")
    if not (member.isreg() or member.issym() or member.isdir()) or member.issparse():
        raise TreeError(f"the pack is damaged: {name!r} is not a file, link or directory")
    if len(known) >= TREE_FILES or member.size > TREE_BYTES:
        raise TreeError("the pack is too large")
    return name


def _make(archive: tarfile.TarFile, member: tarfile.TarInfo, root_fd: int, name: str, *, over: bool) -> Piece:
    *parents, last = name.split("/")
    fd = _descend(root_fd, parents)
    try:
        if member.isdir():
            _make_directory(fd, last, over=over)
            return Piece("d", member.mode & 0o777, "")
        if over:
            with suppress(FileNotFoundError):
                os.unlink(last, dir_fd=fd)
        if member.issym():
            os.symlink(member.linkname, last, dir_fd=fd)
            return Piece("l", 0, member.linkname)
        return _make_file(archive, member, fd, last)
    finally:
        os.close(fd)


def _make_directory(fd: int, last: str, *, over: bool) -> None:
    try:
        os.mkdir(last, 0o700, dir_fd=fd)
    except FileExistsError:
        if not over:
            raise


def _make_file(archive: tarfile.TarFile, member: tarfile.TarInfo, fd: int, last: str) -> Piece:
    digest, content = hashlib.sha256(), archive.extractfile(member)
    with open(os.open(last, _NEW, 0o600, dir_fd=fd), "wb") as file:
        while content and (data := content.read(_CHUNK)):
            digest.update(data)
            file.write(data)
        file.flush()
        os.utime(file.fileno(), (member.mtime, member.mtime))
        os.fchmod(file.fileno(), member.mode & 0o777)
    return Piece("f", member.mode & 0o777, digest.hexdigest())


def _descend(root_fd: int, parents: list[str]) -> int:
    """Open the directory of an entry. Raises OSError if a link is on the way."""
    fd = os.dup(root_fd)
    for parent in parents:
        try:
            below = os.open(parent, _BELOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


def _set_mode(root_fd: int, name: str, mode: int) -> None:
    fd = _descend(root_fd, name.split("/"))
    try:
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def remove_entries(target: str, names: list[str]) -> None:
    """Remove entries of a tree and everything below them. Follows no link."""
    from handrail.kernel.fleet.node_directory import remove_tree  # noqa: PLC0415  it needs more than packing

    root_fd = os.open(target, _BELOW)
    try:
        for name in names:
            *parents, last = name.split("/")
            with suppress(FileNotFoundError, NotADirectoryError):
                fd = _descend(root_fd, parents)
                try:
                    if stat.S_ISDIR(os.lstat(f"/proc/self/fd/{fd}/{last}").st_mode):
                        remove_tree(f"/proc/self/fd/{fd}/{last}")
                    else:
                        os.unlink(last, dir_fd=fd)
                finally:
                    os.close(fd)
    finally:
        os.close(root_fd)


# ── compression: zstd where its package is at hand, gzip everywhere ──

_ZSTD_MAGIC, _GZIP_MAGIC = b"\x28\xb5\x2f\xfd", b"\x1f\x8b"


def _compressed(file: IO[bytes]) -> Any:
    with suppress(ImportError):
        import zstandard  # noqa: PLC0415  optional

        return zstandard.ZstdCompressor(level=3).stream_writer(file, closefd=False)
    import gzip  # noqa: PLC0415  only without zstd

    return gzip.GzipFile(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=file, mtime=0)


def _expanded(file: IO[bytes]) -> Any:
    magic = file.read(4)
    file.seek(0)
    if magic.startswith(_GZIP_MAGIC):
        import gzip  # noqa: PLC0415  only for packs that need it

        return gzip.GzipFile(fileobj=file, mode="rb")
    if magic == _ZSTD_MAGIC:
        try:
            import zstandard  # noqa: PLC0415  optional
        except ImportError:
            raise TreeError("the pack needs zstd: pip install zstandard") from None
        return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file))
    raise TreeError("the pack is damaged: unknown form")
