"""Mounts an overlay without privileges and without a process that stays, and hands it out as an open directory.

    with Mount.make([lower_fd, …], upper_fd, work_fd, at_path) as mount:   # the top lower layer first
        os.open("name", os.O_RDONLY, dir_fd=mount.fd)                # the merged view, for openat2 below it
        subprocess.Popen([*mount.entering(), program, …])            # a program that finds the view at `at_path`

A child process of a few milliseconds leaves the namespaces of this process, mounts with `fsopen`, `fsconfig` and
`fsmount`, attaches the mount at the directory `at_path`, and sends three handles: the view, the user namespace and the
mount namespace. They keep the mount alive; closing them, or the end of this process in any way, unmounts. Only in that
namespace is the view at `at_path`: everywhere else that directory stays as it is, and it may be the lower layer itself.
Root needs no user namespace, so that files of all owners keep them.

Layers are passed as handles. The child opens the name of each again, because the kernel takes layers of the own mount
namespace only, and refuses a name that leads to another directory now. The kernel permits two mounts of one upper
directory, with undefined results: the caller holds a lock on the upper (`upper.py`).
`Mount.make` raises `OverlayRefused` with the step that failed; `refusal()` tries it once and says why it does not work.
"""

import contextlib
import ctypes
import errno
import os
import platform
import shutil
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, NoReturn, Self

from handrail.kernel.fs.syscalls import AT_FDCWD, libc_function

# The numbers of these system calls are the same on every architecture that Python runs on.
_MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT = 429, 430, 431, 432
_CLOEXEC, _SET_FLAG, _SET_STRING, _CREATE = 1, 0, 1, 6
_NOSUID, _NODEV = 2, 4
_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_RECURSIVE, _SLAVE = 1 << 14, 1 << 19
_EMPTY_PATH = 4
_DETACH = 2
_TAKES_MANY_LOWERS = (6, 5)
"""The kernel from which layers are passed one by one, without a limit of one page for all of them."""
_WORDS = {
    "unshare": "the system allows no user namespaces",
    "map": "the system allows no user namespaces",
    "fsopen": "the kernel has no overlay file system",
    "create": "the kernel mounts no overlay here",
}

warnings.filterwarnings("ignore", ".*multi-threaded, use of fork", DeprecationWarning, __name__)


class OverlayRefused(OSError):  # noqa: N818  a fact about the machine, as other refusals are
    """Says that the system does not mount an overlay, and why."""

    def __init__(self, code: int, step: str) -> None:
        why = _WORDS.get(step.partition(" ")[0], f"it fails at {step}")
        super().__init__(code, f"{why} ({errno.errorcode.get(code, code)})")
        self.step = step


class Mount:
    """Holds a mounted view of layers. Close it, or use it in a `with` statement."""

    def __init__(self, fd: int, user: int | None, mounts: int, at: str) -> None:
        self.fd = fd
        """The root of the view."""
        self.at = at
        """The path of the view for programs that enter the namespaces."""
        self._user, self._mounts = user, mounts

    @classmethod
    def make(cls, lowers: Sequence[int], upper: int | None, work: int | None, at: str) -> Self:
        """Mount layers; without `upper`, the view is read-only. Raises OverlayRefused.

        The handles are directories; `upper` and `work` are on one file system, and `work` is empty.
        """
        if sys.platform != "linux":
            raise OverlayRefused(errno.ENOSYS, "fsopen")
        layers = [("lowerdir+", fd) for fd in lowers]
        layers += [("upperdir", upper), ("workdir", work)] if upper is not None and work is not None else []
        plan = _Plan(layers, at)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        _prepare()
        child = os.fork()
        if child == 0:
            _serve(plan, theirs)
        try:
            theirs.close()
            message, handles, _, _ = socket.recv_fds(ours, 1024, 3)
        finally:
            ours.close()
            os.waitpid(child, 0)
        if not handles:
            code, _, step = message.decode().partition(" ")
            raise OverlayRefused(int(code or errno.ECHILD), step or "its start")
        fd, mounts, *user = handles
        for handle in handles:
            os.set_inheritable(handle, False)
        return cls(fd, user[0] if user else None, mounts, at)

    def entering(self, user: tuple[int, int] | None = None) -> list[str]:
        """Return the command that enters the namespaces of the view, to stand before a program and its arguments.

        It names the namespaces by this process, so that the program inherits no handle of them. `user` is the user and
        the group that the program runs as; only root can name one.
        """
        here, program = f"/proc/{os.getpid()}/fd", entering_program()
        words = [program or "nsenter", f"--mount={here}/{self._mounts}"]
        if self._user is not None:
            words += [f"--user={here}/{self._user}", "--preserve-credentials"]
        if user is not None:
            words += [f"--setgid={user[1]}", f"--setuid={user[0]}"]
        return [*words, "--"]

    def close(self) -> None:
        """Unmount, as soon as the programs that entered the view have ended."""
        handles = [self.fd, self._mounts, *([] if self._user is None else [self._user])]
        self.fd = self._mounts = -1
        self._user = None
        for handle in handles:
            if handle >= 0:
                os.close(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@cache
def entering_program() -> str | None:
    """Return the program that enters namespaces; None if the machine has none."""
    return next((path for path in ("/usr/bin/nsenter", "/bin/nsenter") if os.access(path, os.X_OK)), None)


@cache
def refusal() -> str:
    """Say why this machine mounts no overlays; empty if it does. Tries it once."""
    if sys.platform != "linux":
        return "only Linux has overlay file systems"
    if _kernel_version() < _TAKES_MANY_LOWERS:
        return f"the kernel {platform.release()} is older than {'.'.join(map(str, _TAKES_MANY_LOWERS))}"
    if entering_program() is None:
        return "the program nsenter of util-linux is missing"
    with tempfile.TemporaryDirectory(prefix="handrail-overlay-") as place:
        return refusal_in(place)


def refusal_in(place: str) -> str:
    """Say why no upper directory can lie in a directory, which must be empty; empty if one can. Leaves nothing."""
    names = ("lower", "upper", "work", "at")
    for name in names:
        os.mkdir(f"{place}/{name}", 0o700)
    try:
        with contextlib.ExitStack() as opened:
            fds = [_opened(opened, f"{place}/{name}") for name in names]
            opened.enter_context(Mount.make(fds[:1], fds[1], fds[2], f"{place}/at"))
            return ""
    except OSError as error:
        return error.strerror or str(error)
    finally:
        with contextlib.suppress(OSError):
            os.chmod(f"{place}/work/work", 0o700)  # the kernel makes this directory, with no mode bits
        for name in names:
            shutil.rmtree(f"{place}/{name}", ignore_errors=True)


def _opened(stack: contextlib.ExitStack, path: str) -> int:
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    stack.callback(os.close, fd)
    return fd


def _kernel_version() -> tuple[int, ...]:
    numbers = platform.release().split("-")[0].split(".")[:2]
    return tuple(int(each) for each in numbers if each.isdigit())


# The child process. Nothing in it may wait for another thread of this process, because the child has none.


class _Plan(NamedTuple):
    """Holds everything that the child needs, made before the fork."""

    layers: list[tuple[str, int]]
    at: str
    flags: tuple[str, ...] = ("userxattr",)


class _Failed(Exception):  # noqa: N818  never leaves this module
    """Says at which step the child failed."""

    def __init__(self, step: str, code: int) -> None:
        super().__init__(step)
        self.step, self.code = step, code


def _prepare() -> None:
    """Load what the child calls, so that it imports nothing."""
    for name in ("unshare", "mount", "syscall"):
        libc_function(name)


def _serve(plan: _Plan, reply: socket.socket) -> NoReturn:
    """Mount and send the handles, or the number of the error and the step; the body of the child."""
    try:
        try:
            handles = _mounted(plan)
            socket.send_fds(reply, [b"ok"], handles)
        except _Failed as failed:
            reply.send(f"{failed.code} {failed.step}".encode())
        except OSError as error:
            reply.send(f"{error.errno or 0} {error.filename or 'a system call'}".encode())
    finally:
        os._exit(0)


def _mounted(plan: _Plan) -> list[int]:
    """Return handles of the view, the mount namespace and, if one was needed, the user namespace."""
    names = ("mnt",) if _leave_namespaces() else ("mnt", "user")
    _attach(plan)
    opened = os.open(plan.at, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    return [opened, *(os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names)]


def _leave_namespaces() -> bool:
    """Get a mount namespace of its own; return False if it needed a user namespace, too."""
    alone = os.geteuid() == 0 and libc_function("unshare")(_NEW_MOUNTS) == 0
    if not alone:
        _enter_own_user_namespace()
    if libc_function("mount")(None, b"/", None, ctypes.c_ulong(_RECURSIVE | _SLAVE), None) < 0:
        raise _Failed("mount", ctypes.get_errno())
    return alone


def _attach(plan: _Plan) -> None:
    """Mount the layers at their place in the present mount namespace."""
    context = _call("fsopen", _FSOPEN, b"overlay", _CLOEXEC)
    view, again = -1, list[int]()
    try:
        for name, fd in plan.layers:
            again.append(_opened_again(fd))
            _call(name, _FSCONFIG, context, _SET_STRING, name.encode(), f"/proc/self/fd/{again[-1]}".encode(), 0)
        for flag in plan.flags:
            _call(flag, _FSCONFIG, context, _SET_FLAG, flag.encode(), None, 0)
        _call("create", _FSCONFIG, context, _CREATE, None, None, 0)
        view = _call("fsmount", _FSMOUNT, context, _CLOEXEC, _NOSUID | _NODEV)
        _call("move_mount", _MOVE_MOUNT, view, b"", AT_FDCWD, os.fsencode(plan.at), _EMPTY_PATH)
    finally:
        for fd in (context, view, *again):
            if fd >= 0:
                os.close(fd)


def _opened_again(fd: int) -> int:
    """Open a directory by its name in the new mount namespace."""
    again = os.open(os.readlink(f"/proc/self/fd/{fd}"), os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not os.path.samestat(os.fstat(fd), os.fstat(again)):
        raise _Failed("a layer that was replaced", errno.ESTALE)
    return again


def _enter_own_user_namespace() -> None:
    """Leave the user namespace for one in which this user is the only one."""
    user, group = os.geteuid(), os.getegid()
    if libc_function("unshare")(_NEW_USER | _NEW_MOUNTS) < 0:
        raise _Failed("unshare", ctypes.get_errno())
    texts = (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1"))
    for name, text in texts:
        try:
            fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
            os.write(fd, text.encode())
            os.close(fd)
        except OSError as error:
            raise _Failed("map", error.errno or 0) from None


def _call(step: str, number: int, *given: Any) -> int:
    """Make a system call by its number. Raises _Failed with the name of the step."""
    found: int = libc_function("syscall")(number, *given)
    if found < 0:
        raise _Failed(step, ctypes.get_errno())
    return found


# A process that mounts views in its own namespace, such as the host of a fleet, which ends with all of them.


def enter_own_namespaces() -> None:
    """Give this process, which must have one thread, a mount namespace of its own. Raises OverlayRefused."""
    with _told():
        _leave_namespaces()


def mount_here(lowers: Sequence[int], upper: int, work: int, at: str) -> None:
    """Mount layers, which nothing will need after this process, at a path in its mount namespace.

    The kernel syncs nothing of them. Raises OverlayRefused.
    """
    layers = [*(("lowerdir+", fd) for fd in lowers), ("upperdir", upper), ("workdir", work)]
    with _told():
        _attach(_Plan(layers, at, ("userxattr", "volatile")))


def unmount(at: str) -> None:
    """Unmount what is mounted at a path, as soon as nothing uses it. Raises OSError."""
    if libc_function("umount2")(os.fsencode(at), _DETACH) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), at)


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn the failure of a step into OverlayRefused."""
    try:
        yield
    except _Failed as failed:
        raise OverlayRefused(failed.code, failed.step) from None
