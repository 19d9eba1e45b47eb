"""Why a failed command may have failed: facts for a sentence of the dialect.

Only a limit that ended the command is certain. For the rest the error texts of the system are all that
there is, and a program may print them for other reasons: a denial is a hint, and nothing is decided by it.
"""

import re
from dataclasses import dataclass
from typing import Literal

from handrail.kernel.sandbox.settings import Confinement

_READ_ONLY = re.compile(rb"(?:[\"'`](/[^\"'`\n]+)[\"'`]|(/[^\s:\"'`]+))?[^\n]{0,80}?(?:Read-only file system|EROFS)")
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
        path = (match[1] or match[2] or b"").decode(errors="surrogateescape")
        inside = not path or path == root or path.startswith(root.rstrip("/") + "/")
        found.append(Denial("guarded" if inside else "write_outside", path))
    if confinement.level != "network" and _NO_NETWORK.search(text):
        found.append(Denial("network"))
    return found
