"""Writes a layer with the state of its workspace into one file, and makes a layer from such a file again.

The file is a tar archive: `snapshot.json`, `state/…` (journal, contents, memory), `upper/…`, `end`. The upper is as the
kernel keeps it: a deleted name is a character device 0:0, an opaque directory has an attribute. A file that comes from
elsewhere is read like any hostile input: every name is taken apart, nothing is followed, no entry replaces another one.
"""

import contextlib
import hashlib
import json
import os
import stat
import tarfile
import tempfile
import weakref
from collections.abc import Iterator
from typing import IO, Any, NamedTuple, Self

from handrail.kernel.fs.small_files import open_file
from handrail.kernel.layers.upper_entries import entries, is_opaque, is_whiteout

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SOURCE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_HEAD, _STATE, _UPPER, _END = "snapshot.json", "state", "upper", "end"
_STATES = ("journal.jsonl", "kept.json", "unkept.json", "protected.json", "git.json", "blobs", "memories")
"""The names in a state directory that a snapshot may hold."""
_CHUNK = 1 << 20
_HEAD_BYTES = 1 << 20
_SHOWN = 200
"""The most characters of a name that a message shows."""
_OPAQUE, _XATTR = "user.overlay.opaque", "SCHILY.xattr."
_VERSION = 1


class BadSnapshot(Exception):  # noqa: N818  the caller words it
    """Says why a file is no snapshot that can be opened."""


class About(NamedTuple):
    """Holds what a snapshot says about itself."""

    root: str
    """The root that the workspace had; the name of its image, if it worked in one."""
    content: str
    """The content id of that root; the digest of the configuration of that image."""
    workdir: str = ""
    """The working directory in the image; empty for a directory."""


class Snapshot:
    """Holds the changes, the journal and the memory of a layered workspace at one moment, to store, send and open.

    `save` and `load` keep it in a file; it can be pickled.
    """

    def __init__(self, file: IO[bytes], digest: str = "") -> None:
        """Hold an open file, and close it with this object. `digest` is the SHA-256 of its bytes, if known."""
        self._file, self._id = file, digest
        weakref.finalize(self, file.close)

    @classmethod
    def of(cls, data: bytes) -> Self:
        """Return the snapshot with these bytes."""
        made = cls(tempfile.TemporaryFile(prefix="handrail-"))  # noqa: SIM115  the object holds it
        made._file.write(data)
        made._file.flush()
        return made

    @classmethod
    def load(cls, path: "str | os.PathLike[str]") -> Self:
        """Return the snapshot in a file. Raises OSError."""
        return cls(open(path, "rb"))

    @property
    def id(self) -> str:
        """The SHA-256 of the bytes, in hexadecimal digits."""
        if not self._id:
            digest, at = hashlib.sha256(), 0
            while data := os.pread(self._file.fileno(), _CHUNK, at):
                digest.update(data)
                at += len(data)
            self._id = digest.hexdigest()
        return self._id

    @property
    def size(self) -> int:
        """The number of bytes."""
        return os.fstat(self._file.fileno()).st_size

    def save(self, path: "str | os.PathLike[str]") -> None:
        """Write the snapshot into a file, whole or not at all. Raises OSError."""
        temp = f"{os.fspath(path)}.{os.urandom(6).hex()}"
        try:
            with open(os.open(temp, _NEW, 0o600), "wb") as file:
                at = 0
                while count := os.sendfile(file.fileno(), self._file.fileno(), at, 1 << 30):
                    at += count
                os.fsync(file.fileno())
            os.rename(temp, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temp)
            raise

    def __bytes__(self) -> bytes:
        return os.pread(self._file.fileno(), self.size, 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Snapshot) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (bytes(self),)

    def __repr__(self) -> str:
        return f"<Snapshot {self.id[:12]}: {self.size} bytes>"

    @contextlib.contextmanager
    def read(self) -> Iterator["tuple[About, tarfile.TarFile]"]:
        """Open the archive behind its head for the time of the block. Raises BadSnapshot."""
        try:
            with (
                open(f"/proc/self/fd/{self._file.fileno()}", "rb", buffering=_CHUNK) as file,
                tarfile.open(fileobj=file, mode="r:", tarinfo=_BoundedHeader) as archive,
            ):
                yield _about(archive), archive
        except (tarfile.TarError, ValueError, KeyError, TypeError, EOFError, OverflowError, RecursionError) as error:
            raise BadSnapshot(str(error) or type(error).__name__) from None


class _BoundedHeader(tarfile.TarInfo):
    """Refuses headers larger than those that `pack` writes, which the library reads into memory, and sparse files."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.size > _HEAD_BYTES and not self.isfile():
            raise BadSnapshot(f"it has a header of {self.size} bytes")
        found: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]  # there is no other place
        if found.issparse():
            raise BadSnapshot(f"{found.name[:_SHOWN]!r} is of a kind that no snapshot has")
        return found


# writing


def pack(upper: int, state: str, about: About, directory: str) -> Snapshot:
    """Return the snapshot of an upper that does not change any more, and of a state directory. Raises OSError.

    The snapshot lies in `directory`, without a name: it ends with the object, or with this process.
    """
    file = tempfile.TemporaryFile(prefix="snapshot-", dir=directory)  # noqa: SIM115  the snapshot holds it
    with tarfile.TarFile(fileobj=file, mode="w", format=tarfile.PAX_FORMAT, copybufsize=_CHUNK) as archive:
        head = json.dumps({"version": _VERSION, **about._asdict()}).encode()
        _add(archive, _info(_HEAD, None, len(head)), head)
        _add_state(archive, state)
        with _Parent(upper) as parent:
            for path, found, _ in entries(upper):
                _add_entry(archive, parent, path, found)
        archive.addfile(_info(_END, None))
    file.flush()
    return Snapshot(file)


def _add_state(archive: tarfile.TarFile, state: str) -> None:
    for name in _STATES:
        path = os.path.join(state, name)
        if os.path.isdir(path):
            archive.addfile(_info(f"{_STATE}/{name}", os.lstat(path)))
            for place, directories, files in os.walk(path):
                directories.sort()
                rel = os.path.relpath(place, state)
                for each in directories:
                    archive.addfile(_info(f"{_STATE}/{rel}/{each}", os.lstat(os.path.join(place, each))))
                for each in sorted(files):
                    _add_file(archive, f"{_STATE}/{rel}/{each}", os.open(os.path.join(place, each), _SOURCE))
        elif os.path.exists(path):
            _add_file(archive, f"{_STATE}/{name}", os.open(path, _SOURCE))


class _Parent:
    """Opens entries below a directory by their paths, and keeps the parent of the last one open."""

    def __init__(self, top: int) -> None:
        self._top, self._path, self._fd = top, "", os.dup(top)

    def open(self, path: str, flags: int) -> int:
        above, _, name = path.rpartition("/")
        if above != self._path:
            fd = open_file(self._top, above, _DIRECTORY) if above else os.dup(self._top)
            os.close(self._fd)
            self._path, self._fd = above, fd
        return os.open(name, flags, dir_fd=self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def _add_entry(archive: tarfile.TarFile, parent: _Parent, path: str, found: os.stat_result) -> None:
    """Add one entry of the upper. Pipes and sockets stay out."""
    name = f"{_UPPER}/{path}"
    if stat.S_ISREG(found.st_mode):
        _add_file(archive, name, parent.open(path, _SOURCE))
        return
    info = _info(name, found)
    if stat.S_ISDIR(found.st_mode):
        fd = parent.open(path, _DIRECTORY)
        try:
            info.pax_headers = _attributes(fd)
        finally:
            os.close(fd)
    elif stat.S_ISLNK(found.st_mode):
        handle = parent.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            info.type, info.linkname = tarfile.SYMTYPE, os.readlink("", dir_fd=handle)
        finally:
            os.close(handle)
    elif is_whiteout(found):
        info.type = tarfile.CHRTYPE
    else:
        return
    archive.addfile(info)


def _add_file(archive: tarfile.TarFile, name: str, fd: int) -> None:
    with open(fd, "rb", buffering=0) as file:
        found = os.fstat(fd)
        info = _info(name, found, found.st_size)
        info.pax_headers = _attributes(fd) if name.startswith(_UPPER) else {}
        archive.addfile(info, file)


def _add(archive: tarfile.TarFile, info: tarfile.TarInfo, data: bytes) -> None:
    import io  # noqa: PLC0415  for the head only

    archive.addfile(info, io.BytesIO(data))


def _info(name: str, found: os.stat_result | None, size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    if found is not None:
        info.mode, info.uid, info.gid = stat.S_IMODE(found.st_mode) & 0o1777, found.st_uid, found.st_gid
        info.mtime = found.st_mtime_ns // 1_000_000_000
        if stat.S_ISDIR(found.st_mode):
            info.type = tarfile.DIRTYPE
    return info


def _attributes(fd: int) -> dict[str, str]:
    """Return the attributes to keep: those of the user, and the mark of an opaque directory."""
    kept: dict[str, str] = {}
    for name in os.listxattr(fd):
        if name == _OPAQUE and is_opaque(fd):
            kept[_XATTR + name] = "y"
        elif name.startswith("user.") and not name.startswith("user.overlay."):
            kept[_XATTR + name] = os.getxattr(fd, name).decode(errors="surrogateescape")
    return kept


# reading


def _about(archive: tarfile.TarFile) -> About:
    info = archive.next()
    if info is None or info.name != _HEAD or not info.isreg() or info.size > _HEAD_BYTES:
        raise BadSnapshot("it does not begin like a snapshot")
    source = archive.extractfile(info)
    head = json.loads(source.read() if source else b"")
    if head["version"] != _VERSION:
        raise BadSnapshot(f"it has the version {head['version']!r}, and this Handrail reads {_VERSION}")
    return About(str(head["root"]), str(head["content"]), str(head.get("workdir", "")))


def unpack(archive: tarfile.TarFile, place: str, *, owners: bool = True) -> None:
    """Write the state and the upper of a snapshot into an empty directory. Raises BadSnapshot and OSError.

    Without `owners`, everything belongs to this user, as in an image.
    """
    top = os.open(place, _DIRECTORY)
    try:
        _Unpacking(archive, top, owners=owners and os.geteuid() == 0).run()
    finally:
        os.close(top)


class _Unpacking:
    """Writes one archive below an open directory."""

    def __init__(self, archive: tarfile.TarFile, top: int, *, owners: bool) -> None:
        self._archive, self._top, self._owners = archive, top, owners
        self._parent, self._parent_fd = "", os.dup(top)
        self._directories: list[tuple[str, int, int]] = []

    def run(self) -> None:
        os.mkdir(_UPPER, 0o700, dir_fd=self._top)
        try:
            while (info := self._archive.next()) is None or info.name != _END:
                if info is None:
                    raise BadSnapshot("it is cut short")
                try:
                    self._write(info)
                except FileExistsError:
                    raise BadSnapshot(f"it has the entry {info.name!r} twice") from None
                except (FileNotFoundError, NotADirectoryError):
                    raise BadSnapshot(f"the parent of {info.name!r} is missing") from None
            self._finish_directories()
        finally:
            os.close(self._parent_fd)

    def _write(self, info: tarfile.TarInfo) -> None:
        path = _place(info)
        above, _, name = path.rpartition("/")
        if above != self._parent:
            fd = open_file(self._top, above, _DIRECTORY) if above else os.dup(self._top)
            os.close(self._parent_fd)
            self._parent, self._parent_fd = above, fd
        at = self._parent_fd
        if info.isdir():
            os.mkdir(name, 0o700, dir_fd=at)
            self._directories.append((path, info.mode & 0o1777, int(info.mtime)))
            if info.pax_headers:
                fd = os.open(name, _DIRECTORY, dir_fd=at)
                _set_attributes(fd, info)
                os.close(fd)
        elif info.isreg():
            self._write_file(info, os.open(name, _NEW, 0o600, dir_fd=at))
        elif info.issym() and path.startswith(f"{_UPPER}/"):
            os.symlink(info.linkname, name, dir_fd=at)
        elif info.ischr() and not (info.devmajor or info.devminor) and path.startswith(f"{_UPPER}/"):
            os.mknod(name, stat.S_IFCHR, 0, dir_fd=at)
        else:
            raise BadSnapshot(f"{info.name!r} is of a kind that no snapshot has")
        self._give(info, name)

    def _write_file(self, info: tarfile.TarInfo, fd: int) -> None:
        with open(fd, "wb", buffering=0) as file:
            source = self._archive.extractfile(info)
            left = info.size
            while source is not None and left and (data := source.read(min(left, _CHUNK))):
                file.write(data)
                left -= len(data)
            if left:
                raise BadSnapshot("it is cut short")
            _set_attributes(fd, info)
            os.fchmod(fd, info.mode & 0o777)
            os.utime(fd, (info.mtime, info.mtime))

    def _give(self, info: tarfile.TarInfo, name: str) -> None:
        """Give an entry to its owner, which only root can do."""
        if self._owners and info.name.startswith(f"{_UPPER}/"):
            os.chown(name, info.uid, info.gid, dir_fd=self._parent_fd, follow_symlinks=False)

    def _finish_directories(self) -> None:
        for path, mode, moment in reversed(self._directories):
            fd = open_file(self._top, path, _DIRECTORY)
            try:
                os.fchmod(fd, mode if path.startswith(f"{_UPPER}/") else 0o700)
                os.utime(fd, (moment, moment))
            finally:
                os.close(fd)


def _place(info: tarfile.TarInfo) -> str:
    """Return where an entry goes, below the directory of the layer. Raises BadSnapshot for an odd name."""
    parts = info.name.split("/")
    if len(parts) < 2 or any(part in ("", ".", "..") or len(os.fsencode(part)) > 255 for part in parts):
        raise BadSnapshot(f"{info.name[:_SHOWN]!r} is no name of an entry")
    if parts[0] == _STATE and parts[1] in _STATES:
        return "/".join(parts[1:])
    if parts[0] != _UPPER:
        raise BadSnapshot(f"{info.name[:_SHOWN]!r} is no part of a snapshot")
    return info.name


def _set_attributes(fd: int, info: tarfile.TarInfo) -> None:
    for header, value in info.pax_headers.items():
        name = header.removeprefix(_XATTR)
        opaque = name == _OPAQUE and info.isdir() and value == "y"
        if header.startswith(_XATTR) and (
            opaque or (name.startswith("user.") and not name.startswith("user.overlay."))
        ):
            with contextlib.suppress(OSError):  # the file system has no room for it
                os.setxattr(fd, name, value.encode(errors="surrogateescape"))
