"""Manages a workspace's state directory (the writer's lock, intents, session logs) and Handrail's own files."""

import errno
import fcntl
import hashlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from handrail.kernel.fs.small_files import read_small
from handrail.model.faults import NotADirectory, NotFound
from handrail.model.files import Version
from handrail.settings import OWN_VARIABLES


def state_home() -> str:
    """Return the directory of all state."""
    return _home(OWN_VARIABLES[0], "XDG_STATE_HOME", "~/.local/state", "user_state_dir")


def config_home() -> str:
    """Return the directory of the user's configuration."""
    return _home(OWN_VARIABLES[1], "XDG_CONFIG_HOME", "~/.config", "user_config_dir")


def _home(variable: str, xdg: str, default: str, function: str) -> str:
    if own := os.environ.get(variable):
        return os.path.abspath(own)
    if sys.platform == "linux":  # the rule of platformdirs, whose import takes longer than to read a file
        named = os.environ.get(xdg, "").strip()
        return os.path.join(named if os.path.isabs(named) else os.path.expanduser(default), "handrail")
    import platformdirs  # noqa: PLC0415  other systems only

    return str(getattr(platformdirs, function)("handrail"))


class State:
    """Holds the state directory of one workspace, named after the root's path; makes it if necessary."""

    def __init__(self, root: str) -> None:
        name = _name_of(root)
        self.warning: str | None = None
        path = os.path.join(state_home(), "workspaces", name)
        try:
            self._make(path)
            make_private(self.pending)
        except OSError as error:
            self.warning = f"the state directory {path} cannot be used: {error.strerror}"
            self._make(os.path.join(_own_temporary_directory(), name))
            make_private(self.pending)
        make_private(self.sessions)

    @classmethod
    def within(cls, path: str, sessions: str) -> "State":
        """Return the state in a directory of Handrail's own, and the logs in another one. Raises OSError."""
        made = cls.__new__(cls)
        made.warning = None
        made._make(path)
        made.sessions = sessions
        return made

    @classmethod
    def of(cls, root: str) -> "State":
        """Return the state of the workspace with this root."""
        return cls(os.path.realpath(root))

    def _make(self, path: str) -> None:
        self.path = path
        self.pending = os.path.join(path, "pending")
        self.sessions = os.path.join(path, "sessions")
        self._lock = os.path.join(path, "lock")
        make_private(path)
        if os.stat(path).st_uid != os.geteuid() or not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(13, "it belongs to another user")

    def session_log(self, session_id: str) -> str:
        """Return the path of a session's log."""
        return os.path.join(self.sessions, f"{session_id}.jsonl")

    def lock(self) -> AbstractContextManager[None]:
        """Return a lock for one writer at a time, among threads and processes: each holder opens the file itself."""
        return _locked(os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _name_of(root: str) -> str:
    """Return the name of the directory for one root: readable, and different for each root."""
    key = hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
    label = "".join(c if c.isalnum() or c in "-_." else "_" for c in os.path.basename(root))[:40]
    return f"{label}-{key}"


def layers_of(root: str) -> str:
    """Return the directory for the layers over one root."""
    return os.path.join(state_home(), "layers", _name_of(root))


def _own_temporary_directory() -> str:
    """Return a temporary directory that no other user could have made or can change. Raises PermissionError."""
    import tempfile  # noqa: PLC0415  saves start-up time: most state directories can be used

    path = os.path.join(tempfile.gettempdir(), f"handrail-{os.getuid()}")
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError(13, "it belongs to another user, or other users can write to it", path)
    return path


def make_private(path: str) -> None:
    """Make one of Handrail's directories and its missing parents, so that no other user can read them."""
    missing, here = [], os.path.abspath(path)
    while not os.path.isdir(here):
        missing.append(here)
        here = os.path.dirname(here)
    for each in reversed(missing):
        try:
            os.mkdir(each, 0o700)
        except FileExistsError:
            if not os.path.isdir(each):
                raise


def existing_directory(path: str) -> str:
    """Return the path of an existing directory. Raises NotADirectory or NotFound."""
    if not os.path.isdir(path):
        raise NotADirectory(path) if os.path.lexists(path) else NotFound(path)
    return path


def read_text(path: str) -> str:
    """Return the content of one of Handrail's files; empty if it does not exist."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # usually it does not exist; `open` is slower to report that
    except FileNotFoundError:
        return ""
    with open(fd, encoding="utf-8") as file:
        return file.read()


def read_small_text(path: str, most: int) -> str:
    """Read a regular file of at most `most` bytes; empty if it does not exist. Do not wait for a FIFO or device."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        return io.TextIOWrapper(io.BytesIO(read_small(fd, most)), encoding="utf-8").read()
    finally:
        os.close(fd)


def read_some(path: str, most: int) -> str:
    """Read a file or pipe that the user named. Raises OSError for more than `most` bytes.

    A pipe in a repository, into which nothing writes, is empty: opening it does not wait.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        os.set_blocking(fd, True)
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most} bytes")
    return data.decode()


def version_of(path: str) -> Version | None:
    """Return the version of one of Handrail's files; None if it does not exist."""
    if os.access(path, os.F_OK):  # usually it does not exist; this takes half the time of an exception
        with suppress(OSError):  # it was removed a moment ago
            return Version.of(os.stat(path))
    return None


@contextmanager
def locked_directory_of(path: str) -> Iterator[None]:
    """Lock the directory of one of Handrail's files: one process at a time changes the files in it."""
    make_private(os.path.dirname(path))
    with _locked(os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)):
        yield


@contextmanager
def _locked(fd: int) -> Iterator[None]:
    owner = os.getpid()
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        if os.getpid() == owner:  # unlock explicitly: a forked child may hold the handle open
            fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def write_text(path: str, text: str) -> None:
    """Replace one of Handrail's files completely or not at all."""
    write_whole(path, text.encode())


def write_whole(path: str, data: bytes, *, sync: bool = True) -> None:
    """Replace one of Handrail's files completely or not at all; without `sync`, a loss of power may undo it."""
    os.close(_put(path, data, sync=sync))


def _put(path: str, data: bytes, *, sync: bool, locked: bool = False, new: bool = False) -> int:
    """Replace a file as `write_whole` does, and return the open new file; lock it first if `locked`.

    With `new` nothing is replaced. Raises FileExistsError.
    """
    temp = os.path.join(os.path.dirname(path), f".handrail-{os.urandom(6).hex()}")
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        if locked:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        if sync:
            os.fsync(fd)
        if not (_linked(temp, path) if new else not sync and _exchanged(temp, path)):
            os.rename(temp, path)
    except BaseException:
        os.close(fd)
        os.unlink(temp)
        raise
    return fd


def _linked(temp: str, path: str) -> bool:
    """Give a new file its name, if nothing has that name. Raises FileExistsError."""
    try:
        os.link(temp, path)
    except FileExistsError:
        raise
    except OSError:
        return False  # the file system has no second names
    os.unlink(temp)
    return True


def _exchanged(temp: str, path: str) -> bool:
    """Replace an old file by a new one without waiting for the disk, as a rename may."""
    from handrail.kernel.fs.syscalls import AT_FDCWD, exchange_names  # noqa: PLC0415  most files are synced

    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return False  # a file does not take the place of a directory
        exchange_names(temp, path, AT_FDCWD)
    except OSError:
        return False  # there is no old file, or the file system cannot exchange names
    os.unlink(temp)
    return True


class HeldFile:
    """Writes one file, which no other holder writes meanwhile.

    The file itself is locked. Each new content is a new file, which is locked before it takes the place of the old one,
    so no lock file stays behind, and the lock ends with the process.
    """

    def __init__(self, path: str) -> None:
        """Lock the file, if it exists. Raises BlockingIOError if another holder writes it."""
        self._path, self._fd = path, -1
        while self._fd < 0 and os.path.exists(path):
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(fd), os.stat(path)):  # else it was replaced before it was locked
                    self._fd, fd = fd, -1
            except FileNotFoundError:
                pass  # it was removed a moment ago
            finally:
                if fd >= 0:
                    os.close(fd)

    def replace(self, data: bytes) -> None:
        """Replace the content completely or not at all; a loss of power may undo it.

        Raises BlockingIOError if another holder has made the file in the meantime.
        """
        try:
            fd = _put(self._path, data, sync=False, locked=True, new=self._fd < 0)
        except FileExistsError:
            raise BlockingIOError(errno.EAGAIN, "another process has made the file", self._path) from None
        self.close()
        self._fd = fd

    def close(self) -> None:
        """Let others write the file."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def directory_named(text: str) -> str | None:
    """Return a directory that the user named, with `~` expanded; None if it is not an absolute, existing one."""
    path = os.path.expanduser(text)
    return path if os.path.isabs(path) and os.path.isdir(path) else None


def environment() -> dict[str, str]:
    """Return a copy of the variables of this process."""
    return dict(os.environ)
