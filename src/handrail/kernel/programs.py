"""Where programs and configurations of other programs are on this machine."""

import os
import shutil
import sys
import time

from handrail.kernel.state import read_text, write_text


def own_command() -> list[str]:
    """What starts this very installation, also where PATH is another."""
    beside = os.path.join(os.path.dirname(sys.executable), "handrail")
    found = beside if os.access(beside, os.X_OK) else shutil.which("handrail")
    return [found] if found else [sys.executable, "-P", "-m", "handrail"]


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
    """Write a file of another program. What was there is kept beside it; returns where."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    old, backup = read_text(path), None
    if old:
        backup = f"{path}.{time.strftime('%Y%m%d-%H%M%S')}.bak"
        write_text(backup, old)
    target = os.path.realpath(path)  # a link to a file kept elsewhere stays one
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    write_text(target, text)
    if mode is not None:
        os.chmod(target, mode)
    return backup
