"""Says what the sandbox refused to a command: what it counted, and what the output or the text of the command tells.

A limit that ended the command is certain, and so is an attempt to reach the network, which the sandbox counts. The rest
is read from error texts of the system, which a program may also print for other reasons, and, if the command discards
error texts, from the paths that it names. So a denial is a hint for the model, and no code decides anything by it.

A command that succeeded needs no hint. Its exit status is believed, unless the command goes on after parts that fail.
"""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from handrail.kernel.sandbox.levels import Confinement
from handrail.ops.shell.hidden_failures import changes_git_config, discards_errors, hides_failure, named_changes

_READ_ONLY = re.compile(rb"^(.*)(?:Read-only file system|EROFS)(.*)$", re.MULTILINE)
_MOUNTED = re.compile(rb"^(.*)(?:Device or resource busy|EBUSY)(.*)$", re.MULTILINE)
"""Inside the workspace, only the sandbox mounts something: on a guarded name, which nothing can replace or remove."""
_NOT_WRITABLE = re.compile(rb"^(.*) (?:isn't|is not) writable(.*)$", re.MULTILINE)
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
_HANDLED = re.compile(
    rb"^(?:[^\n]* config file [^\n]*\nwarning: Update of config-file failed|(?:warning:|[^\n]*/info/)[^\n]*)\n?",
    re.MULTILINE,
)
"""Lines about refusals after which a program goes on: its warnings, what git cannot change in its directory, and what
it cannot remove from its configuration about a branch that it has deleted."""
_CONFIG_LINE = re.compile(rb"^[^\n]*config file [^\n]*\n?", re.MULTILINE)
"""A refused change of git's configuration; git goes on if it does not need it."""
READ_BYTES = 64 * 1024
"""The number of bytes at the end of the error output that are read."""


class Denial(NamedTuple):
    """Names one thing that the sandbox probably refused."""

    kind: Literal[
        "write_outside",
        "guarded",
        "git_config",
        "packages",
        "network",
        "network_tried",
        "direct",
        "processes",
        "memory",
        "disk",
    ]
    path: str = ""


Refusal = Literal["write_outside", "guarded"]


class Printed(NamedTuple):
    """Holds what a command printed, and the text of the command, which tells where its errors went."""

    stderr: bytes
    stdout: bytes = b""
    command: str = ""
    merged: bool = False
    """True if `stderr` holds both streams."""

    @property
    def errors(self) -> bytes:
        """The end of the error output; of both streams if the command joins them."""
        streams = (self.stdout, self.stderr) if _ERRORS_IN_OUTPUT.search(self.command) else (self.stderr,)
        return b"\n".join(stream[-READ_BYTES:] for stream in streams)


def explain(
    printed: Printed,
    *,
    failed: bool | None,
    limit: str | None = None,
    tried_network: bool | None = None,
    root: str,
    confinement: Confinement,
    refuses: Callable[[str], Refusal | None] = lambda _: None,
) -> list[Denial]:
    """Return what the sandbox probably refused: first the limit that ended the command, then the guesses.

    `failed` is None while the program still runs. `refuses` tells why commands cannot change a path, None if they can.
    """
    found: list[Denial] = []
    if limit in ("processes", "memory", "disk"):
        found.append(Denial(limit))  # type: ignore[arg-type]  # narrowed by the line above
    if confinement.level == "off":
        return found
    succeeded = failed is False and not hides_failure(printed.command)
    text = b"" if succeeded and printed.merged else printed.errors
    blamed = text if failed else _HANDLED.sub(b"", text)
    if succeeded:
        blamed = _CONFIG_LINE.sub(b"", blamed)
    files = _files(blamed, root, uncertain=failed is True and confinement.level == "reduced")
    if not files and not succeeded and discards_errors(printed.command):
        files = _unseen(printed.command, refuses)
    return found + files + _network(text, tried_network, succeeded=succeeded, level=confinement.level)


def _network(text: bytes, tried: bool | None, *, succeeded: bool, level: str) -> list[Denial]:
    """Judge by the count; by the text if attempts were not counted, or for a kind of socket that is refused."""
    if level == "network":
        return []
    if tried and succeeded:
        return [Denial("direct" if level == "hosts" else "network_tried")]
    signs = _NO_NETWORK if tried is None else _NO_SOCKET
    kind: Literal["direct", "network"] = "direct" if level == "hosts" else "network"
    return [Denial(kind)] if tried or signs.search(text) else []


def _unseen(command: str, refuses: Callable[[str], Refusal | None]) -> list[Denial]:
    """Return what a command names that it cannot change; its error messages were discarded."""
    if changes_git_config(command) and refuses(".git/config"):
        return [Denial("git_config", ".git/config")]
    refused = ((path, refuses(path)) for path in named_changes(command))
    return [Denial(kind, path) for path, kind in refused if kind is not None][:1]


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
    for pattern, outside in ((_MOUNTED, False), (_NOT_WRITABLE, True)):
        if (match := pattern.search(text)) and (path := _named(match)) and _leads_outside(path, root) is outside:
            return [Denial("write_outside" if outside else "guarded", path)]
    if _NO_PACKAGES.search(text):
        return [Denial("packages")]
    if uncertain and (match := _NOT_PERMITTED.search(text)):
        path = _named(match)
        return [Denial("write_outside", path)] if _leads_outside(path, root) else []
    return []


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
