"""Where programs and configurations of other programs are on this machine."""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from itertools import chain, count

from handrail.kernel.host.state_dir import write_text


def own_command() -> list[str]:
    """What starts this very installation, also where PATH is another."""
    beside = os.path.join(os.path.dirname(sys.executable), "handrail")
    found = beside if os.access(beside, os.X_OK) else shutil.which("handrail")
    return [found] if found and os.path.isabs(found) else [sys.executable, "-P", "-m", "handrail"]


def absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))


def home() -> str:
    return os.path.expanduser("~")


def application_data() -> str:
    """The directory in which a desktop application of this person keeps its settings."""
    if sys.platform == "darwin":
        return os.path.join(home(), "Library", "Application Support")
    if sys.platform == "win32":
        return os.environ.get("APPDATA", home())
    return os.environ.get("XDG_CONFIG_HOME") or os.path.join(home(), ".config")


def replace_with_backup(path: str, text: str) -> str | None:
    """Write a file of another program. What was there is kept beside it, byte for byte; returns where."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    target = os.path.realpath(path)  # a link to a file kept elsewhere stays one
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    backup = _backup(path) if mode is not None and os.path.getsize(target) else None
    write_text(target, text)
    if mode is not None:
        os.chmod(target, mode)
    return backup


def _backup(path: str) -> str:
    """A copy under a name that nothing has."""
    name, fd = next(made for made in map(_created, backup_names(path)) if made)
    with open(fd, "wb") as copy, open(path, "rb") as file:
        shutil.copyfileobj(file, copy)
        os.fchmod(fd, os.fstat(file.fileno()).st_mode & 0o777)
    return name


def backup_names(path: str) -> Iterator[str]:
    """Names for a copy of a file, in the order in which they are tried."""
    stem = f"{path}.{time.strftime('%Y%m%d-%H%M%S')}"
    return chain([f"{stem}.bak"], (f"{stem}-{number}.bak" for number in count(2)))


def is_beneath(path: str, root: str) -> bool:
    """Whether an absolute path lies in a directory by its name alone."""
    return os.path.commonpath([path, root]) == root != path


def _created(name: str) -> tuple[str, int] | None:
    try:
        return name, os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return None
