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
    anywhere, from_root = _guarded((".git", *OWN_FILES, *names))
    parts = [folded(part) for part in path.split("/")]
    for part in parts:
        if part in anywhere:
            return anywhere[part]
    return next((name for wanted, name in from_root if parts[: len(wanted)] == wanted), "")


@lru_cache(maxsize=16)
def _guarded(names: tuple[str, ...]) -> tuple[dict[str, str], list[tuple[list[str], str]]]:
    """The names that count at any depth, and those that are paths from the root, as file systems see them."""
    split = [([folded(part) for part in name.strip("/").split("/")], name) for name in names]
    anywhere = {wanted[0]: name for wanted, name in reversed(split) if len(wanted) == 1}
    return anywhere, [(wanted, name) for wanted, name in split if len(wanted) > 1]
