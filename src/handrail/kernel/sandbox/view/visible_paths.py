"""What of the machine a command may see: system directories, a few files of /etc, and where a path leads.

A home directory is never shown. A toolchain inside it is shown by its own parts only, since its neighbours
(credentials of package managers, keyrings) are what an agent must not read: `toolchains.py`.
"""

import os
import stat
from collections.abc import Iterable

from handrail.kernel.fs.trusted_paths import in_any
from handrail.kernel.sandbox.levels import looks_secret

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

KEPT_VARIABLES = ("LANG", "LANGUAGE", "TERM", "TZ", "COLORTERM", "SHELL", "USER", "LOGNAME")


def system_directories() -> list[tuple[str, str]]:
    """(name, link target or "") of the directories that hold the operating system's programs."""
    return [(name, os.readlink(name) if os.path.islink(name) else "") for name in SYSTEM if os.path.lexists(name)]


def etc_names(*, network: bool) -> tuple[list[str], list[str]]:
    """The directories and the plain files of /etc that programs need."""
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
    """Where the private home stands: at its own path, so that toolchains find themselves, if that can be."""
    unfit = not os.path.isabs(home) or home == "/" or in_any(home, SYSTEM)
    return "/home" if unfit else home


def reachable(path: str, uid: int, gid: int) -> bool:
    """Whether someone else may walk to `path` and use it, by the mode bits."""
    for place in (path, *_ancestors(path)):
        info = os.stat(place)
        shift = 6 if info.st_uid == uid else 3 if info.st_gid == gid else 0
        needed = 0o4 if place == path else 0o1
        if uid and not info.st_mode >> shift & needed:
            return False
    return True


def within_reach(paths: Iterable[tuple[str, str]], who: tuple[int, int] | None) -> list[tuple[str, str]]:
    """Those (with where they lead) that the one who runs commands can reach: the system keeps the rest from them."""
    return [(path, real) for path, real in paths if os.path.exists(real) and (who is None or reachable(real, *who))]


def upwards(path: str) -> list[str]:
    """A path and all that contains it."""
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
    """Leaves out what lies in another of these paths."""
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not in_any(path, kept):
            kept.append(path)
    return kept


def environment(person: dict[str, str], home: str, extra: tuple[str, ...]) -> dict[str, str]:
    """A clean environment: what programs need to run, what the person listed, and no secret."""
    path = [entry for entry in person.get("PATH", "").split(os.pathsep) if os.path.isabs(entry)]
    names = [n for n in person if n in KEPT_VARIABLES or n.startswith("LC_") or n in extra]
    kept = {name: person[name] for name in names if not looks_secret(name)}
    return {
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        **kept,
        "PATH": os.pathsep.join(path) or os.defpath,
        "HOME": home,
    }


def accounts(uid: int, gid: int, home: str) -> dict[str, str]:
    """Only the one who runs the command, and the two names that programs expect."""
    me = f"person:x:{uid}:{gid}:person:{home}:/bin/sh\n"
    others = "root:x:0:0:root:/:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"
    return {"/etc/passwd": me + others, "/etc/group": f"person:x:{gid}:\nroot:x:0:\nnogroup:x:65534:\n"}
