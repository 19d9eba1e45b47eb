"""Decides which parts of the machine commands may see: system directories, some files of /etc, variables.

Commands never see the user's home directory. Of a toolchain in it they see only its own parts (`toolchains.py`),
because the files next to it, such as credentials and keyrings, must stay hidden from an agent.
"""

import os
import stat
from collections.abc import Iterable

from handrail.kernel.fs.trusted_paths import in_any
from handrail.kernel.sandbox.levels import looks_secret
from handrail.model.limits import MIB

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")

# fmt: off
ETC = (
    "alternatives", "bash.bashrc", "ca-certificates", "ca-certificates.conf", "crypto-policies",
    "debian_version", "fonts", "gai.conf", "gitconfig", "host.conf", "inputrc", "java-11-openjdk",
    "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime",
    "login.defs", "lsb-release", "magic", "mime.types", "nsswitch.conf", "os-release", "perl",
    "pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "profile", "protocols",
    "python3", "services", "shells", "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo",
    "timezone", "vimrc", "xml", "zsh",
)
# fmt: on
ETC_NETWORK = ("hosts", "resolv.conf")

USER = "user"
"""The name of the usual user inside a sandbox."""
GIT_CONFIG, GIT_IGNORE = "/etc/gitconfig", "/etc/handrail-placeholders"

KEPT_VARIABLES = ("LANG", "LANGUAGE", "TERM", "TZ", "COLORTERM", "SHELL", "USER", "LOGNAME")


def system_directories() -> list[tuple[str, str]]:
    """Return (name, link target or "") of the directories of the operating system's programs."""
    return [(name, os.readlink(name) if os.path.islink(name) else "") for name in SYSTEM if os.path.lexists(name)]


def etc_names(*, network: bool) -> tuple[list[str], list[str]]:
    """Return the directories and the regular files of /etc that programs need."""
    directories, files = [], []
    for name in (*ETC, *ETC_NETWORK) if network else ETC:
        path = f"/etc/{name}"
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode):
            directories.append(path)
        elif stat.S_ISREG(mode) and os.access(path, os.R_OK):
            files.append(path)
    return directories, files


def private_home(home: str) -> str:
    """Return the path of the private home: the real home's path, so that toolchains work, or /home if unsuitable."""
    unfit = not os.path.isabs(home) or home == "/" or in_any(home, SYSTEM)
    return "/home" if unfit else home


def reachable(path: str, uid: int, gid: int) -> bool:
    """Return True if another user may read `path` and search its parents, by the mode bits."""
    for place in (path, *_ancestors(path)):
        info = os.stat(place)
        shift = 6 if info.st_uid == uid else 3 if info.st_gid == gid else 0
        needed = 0o4 if place == path else 0o1
        if uid and not info.st_mode >> shift & needed:
            return False
    return True


def within_reach(paths: Iterable[tuple[str, str]], user: tuple[int, int] | None) -> list[tuple[str, str]]:
    """Return the (path, real path) pairs that exist and that the user who runs commands can reach."""
    return [(path, real) for path, real in paths if os.path.exists(real) and (user is None or reachable(real, *user))]


def upwards(path: str) -> list[str]:
    """Return a path and all its parents."""
    return [path, *_ancestors(path)]


def _ancestors(path: str) -> list[str]:
    parents = []
    while path not in ("/", ""):
        path = os.path.dirname(path)
        parents.append(path)
    return parents


def is_inside(path: str, directory: str) -> bool:
    return in_any(path, (directory,))


def outermost(paths: Iterable[str]) -> list[str]:
    """Return these paths without those that lie inside another of them."""
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not in_any(path, kept):
            kept.append(path)
    return kept


def environment(user_environment: dict[str, str], home: str, extra: tuple[str, ...]) -> dict[str, str]:
    """Return the variables for commands: those that programs need, those that the user listed, and no secret."""
    path = [entry for entry in user_environment.get("PATH", "").split(os.pathsep) if os.path.isabs(entry)]
    names = [name for name in user_environment if name in KEPT_VARIABLES or name.startswith("LC_") or name in extra]
    kept = {name: user_environment[name] for name in names if not looks_secret(name)}
    return {
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        **kept,
        "PATH": os.pathsep.join(path) or os.defpath,
        "HOME": home,
    }


def accounts(uid: int, gid: int, home: str) -> dict[str, str]:
    """Return /etc/passwd and /etc/group with only the user of the command, root and nobody."""
    name = USER if uid else "root"
    me = f"{name}:x:{uid}:{gid}:{name}:{home}:/bin/sh\n"
    root = "root:x:0:0:root:/:/sbin/nologin\n" if uid else ""
    others = f"{root}nobody:x:65534:65534:nobody:/:/sbin/nologin\n"
    root_group = "root:x:0:\n" if uid else ""
    groups = f"{name}:x:{gid}:\n{root_group}nogroup:x:65534:\n"
    return {"/etc/passwd": me + others, "/etc/group": groups}


def git_files(ignore_rules: str, identity: bytes) -> dict[str, bytes]:
    """Return files of /etc that make git ignore the placeholders, so that `git clean` and `git stash -u` succeed.

    The settings of the machine follow ours, and so they decide if they name an ignore file, too. The user's `identity`
    comes last, as the user's own configuration would.
    """
    try:
        with open(GIT_CONFIG, "rb") as file:
            machine = file.read(MIB)
    except OSError:
        machine = b""
    ours = f"[core]\n\texcludesFile = {GIT_IGNORE}\n".encode()
    return {GIT_CONFIG: b"\n".join([ours + machine, identity]), GIT_IGNORE: os.fsencode(ignore_rules)}
