"""Guesses from the output of a command what the sandbox refused.

A limit that ended the command is certain, and so is an attempt to reach the network, which the sandbox counts. The rest
is read from error texts of the system, which a program may also print for other reasons. So a denial is a hint for the
model, and no code decides anything by it.
"""

import re
from typing import Literal, NamedTuple

from handrail.kernel.sandbox.levels import Confinement

_READ_ONLY = re.compile(rb"^(.*)(?:Read-only file system|EROFS)(.*)$", re.MULTILINE)
_MOUNTED = re.compile(rb"^(.*)(?:Device or resource busy|EBUSY)(.*)$", re.MULTILINE)
"""Inside the workspace, only the sandbox mounts something: on a guarded name, which nothing can replace or remove."""
_NOT_PERMITTED = re.compile(rb"^(.*)(?:Permission denied|EACCES)(.*)$", re.MULTILINE)
_GIT_CONFIG = re.compile(
    rb"could not (?:lock|write) config file ([^\n]{1,4096}): (?:Device or resource busy|Read-only file system)"
)
_NAME = re.compile(rb"[\"'`]([^\"'`\n]+)[\"'`]|(?:^|(?<=[\s:=]))([^\s:=\"'`]*/[^\s:=\"'`]*)")
_NO_SOCKET = re.compile(rb"Address family not supported|EAFNOSUPPORT")
_NO_NETWORK = re.compile(
    rb"Network is unreachable|ENETUNREACH|Could not resolve host|Temporary failure in name resolution"
    rb"|getaddrinfo E(?:AI_AGAIN|NOTFOUND)|dial (?:tcp|udp)[^\n]{0,200}: connection refused|" + _NO_SOCKET.pattern
)
_NO_IDENTITY = re.compile(rb"Please tell me who you are|unable to auto-detect email address|empty ident name")
_NO_PACKAGES = re.compile(rb"Could not open lock file /var/lib/(?:dpkg|apt)/|List directory /var/lib/apt/lists")
_ERRORS_IN_OUTPUT = re.compile(r"2>&1|&>|\|&|>&2")
_HANDLED = re.compile(rb"^(?:warning:|[^\n]*/info/)[^\n]*\n?", re.MULTILINE)
"""Lines about refusals after which a program goes on: its warnings, and what git cannot change in its directory."""
_CONFIG_LINE = re.compile(rb"^[^\n]*config file [^\n]*\n?", re.MULTILINE)
"""A refused change of git's configuration; git goes on if it does not need it. Behind a pipe it may have failed."""
_PIPE = re.compile(r"(?<!\|)\|(?!\|)")
READ_BYTES = 64 * 1024
"""The number of bytes at the end of the error output that are read."""


class Denial(NamedTuple):
    """Names one thing that the sandbox probably refused."""

    kind: Literal["write_outside", "guarded", "git_config", "packages", "network", "processes", "memory", "disk"]
    path: str = ""


class Printed(NamedTuple):
    """Holds what a command printed, and the text of the command, which tells where its errors went."""

    stderr: bytes
    stdout: bytes = b""
    command: str = ""

    @property
    def errors(self) -> bytes:
        """The end of the error output; of both streams if the command joins them."""
        streams = (self.stdout, self.stderr) if _ERRORS_IN_OUTPUT.search(self.command) else (self.stderr,)
        return b"\n".join(stream[-READ_BYTES:] for stream in streams)


def explain(
    printed: Printed,
    *,
    failed: bool,
    limit: str | None = None,
    tried_network: bool | None = None,
    root: str,
    confinement: Confinement,
) -> list[Denial]:
    """Return what the sandbox probably refused: first the limit that ended the command, then the guesses.

    A command may succeed although a part of it failed: the last program of a pipe decides the exit status.
    """
    found: list[Denial] = []
    if limit in ("processes", "memory", "disk"):
        found.append(Denial(limit))  # type: ignore[arg-type]  # narrowed by the line above
    if confinement.level == "off":
        return found
    text = printed.errors
    blamed = text if failed else _HANDLED.sub(b"", text)
    if not failed and not _PIPE.search(printed.command):
        blamed = _CONFIG_LINE.sub(b"", blamed)
    found += _files(blamed, root, uncertain=failed and confinement.level == "reduced")
    if confinement.level != "network" and (tried_network or _missed_network(text, known=tried_network is not None)):
        found.append(Denial("network"))
    return found


def lacks_git_identity(printed: Printed) -> bool:
    """Return whether git refused to commit because it knows no author."""
    return _NO_IDENTITY.search(printed.errors) is not None


def _files(text: bytes, root: str, *, uncertain: bool) -> list[Denial]:
    """Return what a text says about files that commands cannot change; if `uncertain`, also from doubtful texts."""
    if match := _GIT_CONFIG.search(text):
        return [Denial("git_config", _decoded(match[1]))]
    if match := _READ_ONLY.search(text):
        path = _named(match)
        return [Denial("write_outside" if _leads_outside(path, root) else "guarded", path)]
    if (match := _MOUNTED.search(text)) and (path := _named(match)) and not _leads_outside(path, root):
        return [Denial("guarded", path)]
    if _NO_PACKAGES.search(text):
        return [Denial("packages")]
    if uncertain and (match := _NOT_PERMITTED.search(text)):
        path = _named(match)
        return [Denial("write_outside", path)] if _leads_outside(path, root) else []
    return []


def _missed_network(text: bytes, *, known: bool) -> bool:
    """Judge by the text. If attempts were counted and there was none, only a refused kind of socket is left."""
    return (_NO_SOCKET if known else _NO_NETWORK).search(text) is not None


def _named(match: "re.Match[bytes]") -> str:
    """Return the path in an error message: programs print it before the reason, interpreters after it."""
    before, after = (_NAME.findall(part) for part in match.groups())
    quoted, bare = after[0] if after else before[-1] if before else (b"", b"")
    return _decoded(quoted or bare)


def _decoded(path: bytes) -> str:
    return path.decode(errors="surrogateescape")


def _leads_outside(path: str, root: str) -> bool:
    """Judge a path by its text; the directory that a relative path starts from is not known."""
    if not path.startswith("/"):
        return path == ".." or path.startswith("../")
    return path != root and not path.startswith(root.rstrip("/") + "/")
