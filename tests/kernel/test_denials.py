"""Explains error texts of programs by what the sandbox probably refused."""

import time

import pytest

from handrail.kernel.sandbox.denials import READ_BYTES, Denial, Printed, explain
from handrail.kernel.sandbox.levels import Confinement, Level


def told(
    text: str,
    level: Level = "strict",
    *,
    failed: bool | None = True,
    limit: str | None = None,
    tried: bool | None = None,
    command: str = "",
) -> list[Denial]:
    printed = Printed(b"", text.encode(), command) if command else Printed(text.encode())
    how = Confinement(level, "it")
    return explain(printed, failed=failed, limit=limit, tried_network=tried, root="/ws", confinement=how)


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


def test_unconfined_command_is_not_explained() -> None:
    assert told("/x: Read-only file system; Network is unreachable", "off") == []


def test_successful_command_is_explained_by_its_error_output() -> None:
    assert told("touch: cannot touch '/usr/x': Read-only file system", failed=False) == [
        Denial("write_outside", "/usr/x")
    ]


@pytest.mark.parametrize("command", ["x 2>&1 | head", "x &> log; cat log", "x |& tail"])
def test_joined_streams_are_both_explained(command: str) -> None:
    assert told("touch: /usr/x: Read-only file system", command=command) == [Denial("write_outside", "/usr/x")]


def test_plain_output_is_not_explained() -> None:
    assert told("docs: Read-only file system, Network is unreachable", command="grep -r x") == []


def test_counted_attempts_decide_about_network() -> None:
    assert told("", failed=True, tried=True) == [Denial("network")]
    assert told("", failed=None, tried=True) == [Denial("network")]
    assert told("", failed=False, tried=True, command="a | b") == [Denial("network")]
    assert told("", failed=False, tried=True) == [Denial("network_tried")]
    assert told("Could not resolve host: a test prints this", tried=False) == []
    assert told("socket: Address family not supported by protocol", tried=False) == [Denial("network")]
    assert told("", "network", tried=True) == []


@pytest.mark.parametrize("reason", ["Device or resource busy", "Read-only file system"])
@pytest.mark.parametrize("doing", ["lock", "write"])
def test_git_configuration_is_explained(doing: str, reason: str) -> None:
    said = f"error: could not {doing} config file .git/config: {reason}"
    assert told(said) == [Denial("git_config", ".git/config")]


def test_configuration_of_a_deleted_branch_is_explained_only_on_failure() -> None:
    said = "error: could not write config file .git/config: Device or resource busy\n"
    deleted = f"{said}warning: Update of config-file failed\nDeleted branch x\n"
    assert told(deleted, failed=False, command="cd a; git branch -D x 2>&1") == []
    assert told(deleted + said, failed=False, command="git branch -D x 2>&1; git config a b 2>&1; true") == [
        Denial("git_config", ".git/config")
    ]
    assert told(deleted, command="git branch -D x 2>&1 && false") == [Denial("git_config", ".git/config")]


def test_guarded_mount_is_explained_only_inside_workspace() -> None:
    assert told("rm: cannot remove '.git/modules': Device or resource busy") == [Denial("guarded", ".git/modules")]
    assert told("umount: /mnt: Device or resource busy") == []


def test_package_manager_of_system_is_explained() -> None:
    said = "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (2: No such file or directory)"
    assert told(said) == [Denial("packages")]


@pytest.mark.parametrize("piece", ["a", "a=", ":", "'", "/", "a/=", " '", "Read-only file system/"])
def test_explain_is_fast_for_any_text(piece: str) -> None:
    text = (piece * READ_BYTES)[:READ_BYTES] + "Read-only file system"
    began = time.process_time()
    told(text)
    assert time.process_time() - began < 2
