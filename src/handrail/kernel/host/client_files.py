"""Finds the paths that a client configuration needs: Handrail's own command, the user's directories, backup names."""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from itertools import chain, count

from handrail.kernel.host.state_dir import write_text


def own_command() -> list[str]:
    """Return the command that starts this installation, independent of PATH if possible."""
    script = os.path.join(os.path.dirname(sys.executable), "handrail")
    found = script if os.access(script, os.X_OK) else shutil.which("handrail")
    return [found] if found and os.path.isabs(found) else [sys.executable, "-P", "-m", "handrail"]


def absolute(path: str) -> str:
    """Return the absolute form of a path that the user typed, with `~` expanded."""
    return os.path.abspath(os.path.expanduser(path))


def home() -> str:
    return os.path.expanduser("~")


def application_data() -> str:
    """Return the directory in which desktop applications keep this user's settings."""
    if sys.platform == "darwin":
        return os.path.join(home(), "Library", "Application Support")
    if sys.platform == "win32":
        return os.environ.get("APPDATA", home())
    return config_directory()


def config_directory() -> str:
    """Return the directory in which terminal programs keep this user's settings."""
    return os.environ.get("XDG_CONFIG_HOME") or os.path.join(home(), ".config")


def on_path(program: str) -> str | None:
    """Return the path of the program that a shell of this user starts; None if there is none."""
    return shutil.which(program)


def environment() -> dict[str, str]:
    """Return the variables of this process, for a server that is started as a client starts it."""
    return dict(os.environ)


def may_replace(path: str) -> bool:
    """Say whether a file can be put at a path that the user named: nothing is there, or a regular file."""
    return os.path.isfile(path) or not os.path.exists(path)


def replace_with_backup(path: str, text: str) -> str | None:
    """Write a file of another program. Copy the old content to a backup first; return the backup's path, if any."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    target = os.path.realpath(path)  # keep a link: write the file that it leads to
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    backup = _backup(path) if mode is not None and os.path.getsize(target) else None
    write_text(target, text)
    if mode is not None:
        os.chmod(target, mode)
    return backup


def _backup(path: str) -> str:
    """Copy a file to a new name in the same directory; return the name."""
    name, fd = next(made for made in map(_created, backup_names(path)) if made)
    with open(fd, "wb") as copy, open(path, "rb") as file:
        shutil.copyfileobj(file, copy)
        os.fchmod(fd, os.fstat(file.fileno()).st_mode & 0o777)
    return name


def backup_names(path: str) -> Iterator[str]:
    """Yield names for a backup of a file, in the order in which to try them."""
    stem = f"{path}.{time.strftime('%Y%m%d-%H%M%S')}"
    return chain([f"{stem}.bak"], (f"{stem}-{number}.bak" for number in count(2)))


def is_inside_text(path: str, root: str) -> bool:
    """Return True if an absolute path lies inside a directory, judged by its text alone."""
    return os.path.commonpath([path, root]) == root != path


def _created(name: str) -> tuple[str, int] | None:
    try:
        return name, os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return None
