"""Reads the user's name and e-mail address from the user's git configuration, so that commands can commit.

Commands do not see that configuration: it may name programs, and hold credentials. They get these two values as
defaults, so the configuration of a repository still decides.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping

from handrail.kernel.fs.trusted_paths import resolved

_SECONDS = 2.0
_LONGEST = 256
_PASSED_ON = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "PATH")
_WANTED = ("user.name", "user.email")


def section(user_environment: Mapping[str, str], root: str, agents: tuple[str, ...]) -> bytes:
    """Return the lines of a git configuration that name the user; empty if the user has no identity.

    `agents` are the directories that commands can write: no git in one of them is started.
    """
    values = _usable(_answer(user_environment, root, agents))
    lines = [f"\t{name.removeprefix('user.')} = {_quoted(values[name])}\n" for name in _WANTED if name in values]
    return "".join(["[user]\n", *lines]).encode() if lines else b""


def _answer(user_environment: Mapping[str, str], root: str, agents: tuple[str, ...]) -> bytes:
    """Ask the user's own git, which knows what includes mean; it reads the user's files only."""
    found = shutil.which("git", path=user_environment.get("PATH", os.defpath))
    git = resolved(found, agents) if found and os.path.isabs(found) else None
    if git is None:
        return b""
    environment = {name: user_environment[name] for name in _PASSED_ON if name in user_environment}
    words = [git, "config", "--global", "--includes", "--null", "--get-regexp", r"^user\.(name|email)$"]
    try:
        done = subprocess.run(
            words,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""


def _usable(answer: bytes) -> dict[str, str]:
    """Return the last value of each setting, if it is one short line of text."""
    values: dict[str, str] = {}
    for each in answer.split(b"\0"):
        name, _, value = each.partition(b"\n")
        try:
            values[name.decode()] = value.decode()
        except UnicodeDecodeError:
            continue
    return {name: value for name, value in values.items() if 0 < len(value) <= _LONGEST and value.isprintable()}


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
