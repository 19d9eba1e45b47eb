"""Names in a workspace that deserve care: those whose content a person's own tools would run."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

# Files that the person's own tools execute: an agent that could plant one would run later, as the person.
GUARDED = (".vscode", ".idea", ".mcp.json", ".claude", ".codex", ".cursor", ".gemini")
OWN_FILES = (".handrail.toml", ".handrailignore")
"""What a project says to Handrail itself."""

_UNSEEN = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
_SHORT_NAME = re.compile(r"git~[0-9]+")


@lru_cache(maxsize=1024)
def folded(name: str) -> str:
    """What every file system that ignores case, form or invisible marks would take `name` for."""
    plain = _UNSEEN.sub("", unicodedata.normalize("NFKC", name)).casefold()
    stem = plain.partition(":")[0].rstrip(". ") if ":" in plain[1:] else plain.rstrip(". ")
    return ".git" if _SHORT_NAME.fullmatch(stem) else stem or plain


def folded_path(path: str) -> str:
    return "/".join(map(folded, path.split("/")))


def guarded_place(path: str, names: Iterable[str]) -> str:
    """The guarded name that `path`, relative to the root, is or lies in; empty where there is none.

    `.git` and a project's own word to Handrail count at any depth, like all names that have no slash.
    """
    parts = [folded(part) for part in path.split("/")]
    for name in (".git", *OWN_FILES, *names):
        wanted = [folded(part) for part in name.strip("/").split("/")]
        places = range(len(parts) - len(wanted) + 1) if len(wanted) == 1 else (0,)
        if any(parts[at : at + len(wanted)] == wanted for at in places):
            return name
    return ""
