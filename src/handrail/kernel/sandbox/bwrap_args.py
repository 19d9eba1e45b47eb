"""Makes the argument list of bubblewrap for the levels `strict` and `network`. Pure functions."""

from dataclasses import dataclass, field

from handrail.kernel.sandbox.view.image_root import TOOLS
from handrail.model.limits import Limits

_BIND = {True: "--bind-fd", False: "--ro-bind-fd"}


@dataclass(frozen=True, slots=True)
class Mounts:
    """Holds everything that exists inside the sandbox. Handles (`*_fd`, the numbers) are open directories or files."""

    root: str
    root_fd: int
    home: str
    uid: int
    gid: int
    network: bool
    environment: dict[str, str]
    limits: Limits
    system: list[tuple[str, str]] = field(default_factory=list)
    """(name, link target or "")"""
    read_only: list[tuple[str, int]] = field(default_factory=list)
    writable: list[tuple[str, int]] = field(default_factory=list)
    guards: list[tuple[str, int, bool]] = field(default_factory=list)
    """(path, handle, whether commands may write it), outer paths first"""
    hidden_files: list[tuple[str, int]] = field(default_factory=list)
    """(path, handle of an empty file)"""
    hidden_directories: list[str] = field(default_factory=list)
    data: list[tuple[str, int]] = field(default_factory=list)
    """(path, handle to copy from)"""
    image: str = ""
    """The path of the view of a container image, which is the root of the sandbox; empty for that of the host."""
    tools: str = ""
    """With an image: the directory with the interpreter of the supervisor."""
    copies: list[tuple[str, int]] = field(default_factory=list)
    """The same for executable files of the copied interpreter, in a directory that commands cannot write."""


def arguments(mounts: Mounts, seccomp_fd: int, info_fd: int | None) -> list[str]:
    """Return the arguments. Later mounts cover earlier ones: system, private, toolchains, workspace, guards."""
    begin = [
        *_isolation(mounts),
        "--seccomp",
        str(seccomp_fd),
        *([] if info_fd is None else ["--info-fd", str(info_fd)]),
        *_environment(mounts.environment),
    ]
    if mounts.image:
        return [*begin, *_image(mounts), "--chdir", mounts.root]
    return [
        *begin,
        *_system(mounts),
        *_private(mounts),
        *_files("0555", mounts.copies),
        *_binds("--ro-bind-fd", mounts.read_only),
        *_binds("--bind-fd", mounts.writable),
        *_binds("--bind-fd", [(mounts.root, mounts.root_fd)]),
        *(word for path, fd, writable in mounts.guards for word in _binds(_BIND[writable], [(path, fd)])),
        *_hidden(mounts),
        "--remount-ro",
        "/",
        "--chdir",
        mounts.root,
    ]


def _isolation(mounts: Mounts) -> list[str]:
    shared = ["--share-net"] if mounts.network else []
    return [
        "--unshare-all",
        *shared,
        "--unshare-user",
        "--disable-userns",
        "--uid",
        str(mounts.uid),
        "--gid",
        str(mounts.gid),
        "--hostname",
        "sandbox",
        "--cap-drop",
        "ALL",
        "--new-session",
        "--die-with-parent",
        "--as-pid-1",
    ]


def _environment(variables: dict[str, str]) -> list[str]:
    pairs = [word for name, value in variables.items() for word in ("--setenv", name, value)]
    return ["--clearenv", *pairs]


def _system(mounts: Mounts) -> list[str]:
    words: list[str] = []
    for name, target in mounts.system:
        words += ["--symlink", target, name] if target else ["--ro-bind", name, name]
    return [*words, *_files("0444", mounts.data)]


def _files(mode: str, pairs: list[tuple[str, int]]) -> list[str]:
    """Copy files into the sandbox, which is faster than to mount them."""
    return [word for path, fd in pairs for word in ("--perms", mode, "--file", str(fd), path)]


def _image(mounts: Mounts) -> list[str]:
    """Show the view of an image. Bubblewrap makes nothing in it: it would follow the links of the image."""
    tmp = [] if mounts.root == "/" else _temporary(mounts)  # all of the image is the workspace: tools see its /tmp, too
    return ["--bind", mounts.image, "/", *_kernel_places(mounts, "--ro-bind", mounts.tools, TOOLS), *tmp]


def _temporary(mounts: Mounts) -> list[str]:
    return ["--perms", "1777", "--size", str(mounts.limits.sandbox_tmp_bytes), "--tmpfs", "/tmp"]  # noqa: S108  private to the sandbox


def _kernel_places(mounts: Mounts, *in_dev: str) -> list[str]:
    """Return what every sandbox has of its own: processes and devices."""
    size = str(mounts.limits.sandbox_tmp_bytes)
    return [
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--dev", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/dev/shm"),  # noqa: S108  private to the sandbox
        *in_dev,
        *("--remount-ro", "/dev"),
    ]


def _private(mounts: Mounts) -> list[str]:
    size = str(mounts.limits.sandbox_tmp_bytes)
    return [
        *_kernel_places(mounts),
        *_temporary(mounts),
        *("--dir", "/var", "--symlink", "../tmp", "/var/tmp", "--dir", "/run"),  # noqa: S108  private to the sandbox
        *("--perms", "0700", "--size", size, "--tmpfs", mounts.home),
    ]


def _binds(option: str, pairs: list[tuple[str, int]]) -> list[str]:
    return [word for path, fd in pairs for word in (option, str(fd), path)]


def _hidden(mounts: Mounts) -> list[str]:
    words: list[str] = []
    for path, fd in mounts.hidden_files:
        words += ["--perms", "0000", "--ro-bind-data", str(fd), path]
    for path in mounts.hidden_directories:
        words += ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
    return words
