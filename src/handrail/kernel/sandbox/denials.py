"""Why a failed command may have failed: facts for a sentence of the dialect.

Only a limit that ended the command is certain. For the rest the error texts of the system are all that
there is, and a program may print them for other reasons: a denial is a hint, and nothing is decided by it.
"""

import re
from dataclasses import dataclass
from typing import Literal

from handrail.kernel.sandbox.levels import Confinement

_READ_ONLY = re.compile(rb"^(.*)(?:Read-only file system|EROFS)(.*)$", re.MULTILINE)
_NOT_PERMITTED = re.compile(rb"^(.*)(?:Permission denied|EACCES)(.*)$", re.MULTILINE)
_NAME = re.compile(rb"[\"'`]([^\"'`\n]+)[\"'`]|(?:^|(?<=[\s:=]))([^\s:=\"'`]*/[^\s:=\"'`]*)")
_NO_NETWORK = re.compile(
    rb"Network is unreachable|ENETUNREACH|Could not resolve host|Temporary failure in name resolution"
    rb"|getaddrinfo E(?:AI_AGAIN|NOTFOUND)|Address family not supported"
)
LOOKED_AT = 64 * 1024


@dataclass(frozen=True, slots=True)
class Denial:
    kind: Literal["write_outside", "guarded", "network", "processes", "memory", "disk"]
    path: str = ""
    certain: bool = False


def explain(stderr: bytes, *, failed: bool, limit: str | None, root: str, confinement: Confinement) -> list[Denial]:
    """What the sandbox probably refused, most certain first."""
    found: list[Denial] = []
    if limit in ("processes", "memory", "disk"):
        found.append(Denial(limit, certain=True))  # type: ignore[arg-type]  # narrowed by the line above
    if not failed or confinement.level == "off":
        return found
    text = stderr[-LOOKED_AT:]
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
    """The name in an error message: programs put it right before the reason, interpreters behind it."""
    before, behind = (_NAME.findall(part) for part in match.groups())
    quoted, bare = behind[0] if behind else before[-1] if before else (b"", b"")
    return (quoted or bare).decode(errors="surrogateescape")


def _leads_outside(path: str, root: str) -> bool:
    """By its looks: where a relative name starts from is not known."""
    if not path.startswith("/"):
        return path == ".." or path.startswith("../")
    return path != root and not path.startswith(root.rstrip("/") + "/")
