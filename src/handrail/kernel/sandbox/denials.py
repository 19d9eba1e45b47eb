"""Guesses from the error output of a failed command what the sandbox refused.

Only a limit that ended the command is certain. The rest is read from error texts of the system, which a program may
also print for other reasons. So a denial is a hint for the model, and no code decides anything by it.
"""

import re
from typing import Literal, NamedTuple

from handrail.kernel.sandbox.levels import Confinement

_READ_ONLY = re.compile(rb"^(.*)(?:Read-only file system|EROFS)(.*)$", re.MULTILINE)
_NOT_PERMITTED = re.compile(rb"^(.*)(?:Permission denied|EACCES)(.*)$", re.MULTILINE)
_NAME = re.compile(rb"[\"'`]([^\"'`\n]+)[\"'`]|(?:^|(?<=[\s:=]))([^\s:=\"'`]*/[^\s:=\"'`]*)")
_NO_NETWORK = re.compile(
    rb"Network is unreachable|ENETUNREACH|Could not resolve host|Temporary failure in name resolution"
    rb"|getaddrinfo E(?:AI_AGAIN|NOTFOUND)|Address family not supported"
)
READ_BYTES = 64 * 1024
"""How much of the end of the error output is read."""


class Denial(NamedTuple):
    """Names one thing that the sandbox probably refused."""

    kind: Literal["write_outside", "guarded", "network", "processes", "memory", "disk"]
    path: str = ""


def explain(stderr: bytes, *, failed: bool, limit: str | None, root: str, confinement: Confinement) -> list[Denial]:
    """Return what the sandbox probably refused: first the limit that ended the command, then the guesses."""
    found: list[Denial] = []
    if limit in ("processes", "memory", "disk"):
        found.append(Denial(limit))  # type: ignore[arg-type]  # narrowed by the line above
    if not failed or confinement.level == "off":
        return found
    text = stderr[-READ_BYTES:]
    if match := _READ_ONLY.search(text):
        path = _named(match)
        found.append(Denial("write_outside" if _leads_outside(path, root) else "guarded", path))
    elif confinement.level == "reduced" and (match := _NOT_PERMITTED.search(text)):
        path = _named(match)
        if _leads_outside(path, root):
            found.append(Denial("write_outside", path))
    if confinement.level != "network" and _NO_NETWORK.search(text):
        found.append(Denial("network"))
    return found


def _named(match: "re.Match[bytes]") -> str:
    """Return the path in an error message: programs print it before the reason, interpreters after it."""
    before, after = (_NAME.findall(part) for part in match.groups())
    quoted, bare = after[0] if after else before[-1] if before else (b"", b"")
    return (quoted or bare).decode(errors="surrogateescape")


def _leads_outside(path: str, root: str) -> bool:
    """Judge a path by its text; the directory that a relative path starts from is not known."""
    if not path.startswith("/"):
        return path == ".." or path.startswith("../")
    return path != root and not path.startswith(root.rstrip("/") + "/")
