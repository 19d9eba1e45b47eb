"""The strict profile as bubblewrap's argument list: values in, a list out."""

from dataclasses import dataclass, field

from handrail.model.limits import Limits

_BIND = {True: "--bind-fd", False: "--ro-bind-fd"}


@dataclass(frozen=True, slots=True)
class Mounts:
    """All that exists inside. Handles (`*_fd`, the numbers in pairs) are open directories or files."""

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
    """(path, handle, whether it may be written), outer ones first"""
    hidden_files: list[tuple[str, int]] = field(default_factory=list)
    """(path, handle of something empty)"""
    hidden_directories: list[str] = field(default_factory=list)
    data: list[tuple[str, int]] = field(default_factory=list)
    """(path, handle to copy from)"""
    copies: list[tuple[str, int]] = field(default_factory=list)
    """The same, of programs, in a private directory."""


def arguments(view: Mounts, seccomp_fd: int, info_fd: int | None) -> list[str]:
    """Later mounts cover earlier ones, so the order is: system, private, toolchains, workspace, guards."""
    return [
        *_isolation(view),
        "--seccomp",
        str(seccomp_fd),
        *([] if info_fd is None else ["--info-fd", str(info_fd)]),
        *_environment(view.environment),
        *_system(view),
        *_private(view),
        *_files("0555", view.copies),
        *_binds("--ro-bind-fd", view.read_only),
        *_binds("--bind-fd", view.writable),
        *_binds("--bind-fd", [(view.root, view.root_fd)]),
        *(word for path, fd, writable in view.guards for word in _binds(_BIND[writable], [(path, fd)])),
        *_hidden(view),
        "--remount-ro",
        "/",
        "--chdir",
        view.root,
    ]


def _isolation(view: Mounts) -> list[str]:
    shared = ["--share-net"] if view.network else []
    return [
        "--unshare-all",
        *shared,
        "--unshare-user",
        "--disable-userns",
        "--uid",
        str(view.uid),
        "--gid",
        str(view.gid),
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


def _system(view: Mounts) -> list[str]:
    words: list[str] = []
    for name, target in view.system:
        words += ["--symlink", target, name] if target else ["--ro-bind", name, name]
    return [*words, *_files("0444", view.data)]


def _files(mode: str, pairs: list[tuple[str, int]]) -> list[str]:
    """Copies, which cost less than mounts."""
    return [word for path, fd in pairs for word in ("--perms", mode, "--file", str(fd), path)]


def _private(view: Mounts) -> list[str]:
    size = str(view.limits.sandbox_tmp_bytes)
    return [
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--dev", "/dev", "--perms", "1777", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108  inside the sandbox, where it is empty and private
        *("--perms", "1777", "--size", size, "--tmpfs", "/tmp"),  # noqa: S108  a private one
        *("--dir", "/var", "--symlink", "../tmp", "/var/tmp", "--dir", "/run"),  # noqa: S108  inside the sandbox, where it is empty and private
        *("--perms", "0700", "--size", size, "--tmpfs", view.home),
    ]


def _binds(option: str, pairs: list[tuple[str, int]]) -> list[str]:
    return [word for path, fd in pairs for word in (option, str(fd), path)]


def _hidden(view: Mounts) -> list[str]:
    words: list[str] = []
    for path, fd in view.hidden_files:
        words += ["--perms", "0000", "--ro-bind-data", str(fd), path]
    for path in view.hidden_directories:
        words += ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
    return words
