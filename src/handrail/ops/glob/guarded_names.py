"""Knows the guarded names of a workspace: the user's own tools would run the content of these files."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

# Files that the user's own tools execute: an agent that could write one would later run with the user's rights.
GUARDED = (".vscode", ".idea", ".mcp.json", ".claude", ".codex", ".cursor", ".gemini")
OWN_FILES = (".handrail.toml", ".handrailignore")
"""The files in which a project gives settings to Handrail."""

_UNSEEN = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
_SHORT_NAME = re.compile(r"git~[0-9]+")


@lru_cache(maxsize=1024)
def folded(name: str) -> str:
    """Return the name as a file system that ignores case, Unicode form or invisible characters sees it."""
    plain = _UNSEEN.sub("", unicodedata.normalize("NFKC", name)).casefold()
    stem = plain.partition(":")[0].rstrip(". ") if ":" in plain[1:] else plain.rstrip(". ")
    return ".git" if _SHORT_NAME.fullmatch(stem) else stem or plain


def folded_path(path: str) -> str:
    """Fold every component of a path."""
    return "/".join(map(folded, path.split("/")))


def guarded_place(path: str, names: Iterable[str]) -> str:
    """Return the guarded name that `path`, relative to the root, is or is inside of; empty if none.

    `.git`, the project's own Handrail files and all names without a slash are guarded at any depth.
    """
    anywhere, from_root = _guarded((".git", *OWN_FILES, *names))
    parts = [folded(part) for part in path.split("/")]
    for part in parts:
        if part in anywhere:
            return anywhere[part]
    return next((name for wanted, name in from_root if parts[: len(wanted)] == wanted), "")


@lru_cache(maxsize=16)
def _guarded(names: tuple[str, ...]) -> tuple[dict[str, str], list[tuple[list[str], str]]]:
    """Return the names that are guarded at any depth, and those that are paths from the root, both folded."""
    split = [([folded(part) for part in name.strip("/").split("/")], name) for name in names]
    anywhere = {wanted[0]: name for wanted, name in reversed(split) if len(wanted) == 1}
    return anywhere, [(wanted, name) for wanted, name in split if len(wanted) > 1]
