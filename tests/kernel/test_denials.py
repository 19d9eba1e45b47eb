"""Explains error texts of programs by what the sandbox probably refused."""

import time

import pytest

from handrail.kernel.sandbox.denials import READ_BYTES, Denial, explain
from handrail.kernel.sandbox.levels import Confinement, Level


def told(text: str, level: Level = "strict", *, failed: bool = True, limit: str | None = None) -> list[Denial]:
    return explain(text.encode(), failed=failed, limit=limit, root="/ws", confinement=Confinement(level, "it"))


@pytest.mark.parametrize(
    ("text", "kind", "path"),
    [
        ("/bin/bash: line 1: /usr/y: Read-only file system", "write_outside", "/usr/y"),
        ("touch: cannot touch '/usr/a b': Read-only file system", "write_outside", "/usr/a b"),
        ("OSError: [Errno 30] Read-only file system: '/etc/x'", "write_outside", "/etc/x"),
        ("Error: EROFS: read-only file system, open '/usr/x'", "write_outside", "/usr/x"),
        ("bash: ../y: Read-only file system", "write_outside", "../y"),
        ("bash: /ws-evil/y: Read-only file system", "write_outside", "/ws-evil/y"),
        ("touch: cannot touch '.git/hooks/x': Read-only file system", "guarded", ".git/hooks/x"),
        ("cp: cannot create regular file '/ws/.git/config': Read-only file system", "guarded", "/ws/.git/config"),
        ("Read-only file system", "guarded", ""),
    ],
)
def test_read_only_path_is_explained_with_kind_and_path(text: str, kind: str, path: str) -> None:
    (denial,) = told(f"before\n{text}\nafter\n")
    assert (denial.kind, denial.path) == (kind, path)


@pytest.mark.parametrize(
    "text",
    [
        "curl: (6) Could not resolve host: example.org",
        "connect: Network is unreachable",
        "Temporary failure in name resolution",
        "getaddrinfo EAI_AGAIN registry",
    ],
)
def test_missing_network_is_explained_only_at_level_without_network(text: str) -> None:
    assert told(text) == [Denial("network")]
    assert told(text, "network") == []


def test_permission_denied_outside_is_explained_at_reduced_level() -> None:
    assert told("sh: 1: cannot create /etc/x: Permission denied", "reduced") == [Denial("write_outside", "/etc/x")]
    assert told("sh: 1: cannot create /ws/x: Permission denied", "reduced") == []
    assert told("sh: 1: cannot create /etc/x: Permission denied", "strict") == []


@pytest.mark.parametrize("limit", ["processes", "memory", "disk"])
def test_explain_names_the_limit_that_was_hit(limit: str) -> None:
    assert told("", limit=limit, failed=False) == [Denial(limit)]  # type: ignore[arg-type]


def test_successful_or_unconfined_command_is_not_explained() -> None:
    assert told("Read-only file system", failed=False) == []
    assert told("Read-only file system", "off") == []


@pytest.mark.parametrize("piece", ["a", "a=", ":", "'", "/", "a/=", " '", "Read-only file system/"])
def test_explain_is_fast_for_any_text(piece: str) -> None:
    text = (piece * READ_BYTES)[:READ_BYTES] + "Read-only file system"
    began = time.process_time()
    told(text)
    assert time.process_time() - began < 2
