"""Tests one command: its output, its end, and that no process is left."""

import os
import pwd
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sandboxes import Level, await_word, begun, level_of, python, sh, sleeping, workspace

from handrail.kernel.process.runner import Command, CommandOutcome, Processes, ending_of
from handrail.kernel.sandbox import find_bwrap, landlock_rules
from handrail.kernel.sandbox.network_attempts import Attempts, NetworkAttempts, unrouted
from handrail.kernel.sandbox.supervisor_link import Link
from handrail.kernel.sandbox.view.visible_paths import private_home
from handrail.model.faults import CommandNotStarted, SandboxUnavailable

pytestmark = pytest.mark.sandbox


def test_command_returns_output_error_and_exit_code(processes: Processes) -> None:
    outcome = sh(processes, "echo out; echo err >&2; exit 7")
    assert (outcome.stdout.head, outcome.stderr.head, outcome.exit_code) == (b"out\n", b"err\n", 7)
    assert (outcome.signal, outcome.timed_out, outcome.cancelled, outcome.background) == (
        None,
        False,
        False,
        (),
    )


def test_first_command_behaves_like_second(strict: Processes) -> None:
    first = sh(strict, "echo out; echo err >&2; read line || echo no input; exit 130")
    second = sh(strict, "echo out; echo err >&2; read line || echo no input; exit 130")
    for outcome in (first, second):
        assert outcome.stdout.head == b"out\nno input\n"
        assert outcome.stderr.head == b"err\n"
        assert (outcome.exit_code, outcome.signal) == (130, None)
        assert outcome.pgid is not None
    assert not second.restarted


def test_first_command_that_tries_network_at_once_is_noticed(
    strict: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter = NetworkAttempts.enter

    def enter_late(self: NetworkAttempts, link: Link) -> Attempts:
        """Adds the program after its first attempt, as on a machine that is busy."""
        while not unrouted(link):
            time.sleep(0.001)
        return enter(self, link)

    monkeypatch.setattr(NetworkAttempts, "enter", enter_late)
    assert sh(strict, "(exec 3<>/dev/tcp/192.0.2.7/80) 2>/dev/null; echo done").tried_network is True


def test_first_command_killed_by_signal_reports_signal(strict: Processes) -> None:
    outcome = sh(strict, "kill -KILL $$")
    assert (outcome.exit_code, outcome.signal) == (None, "SIGKILL")


def test_first_command_leaves_no_process(strict: Processes, marker: str) -> None:
    outcome = sh(strict, f"setsid sleep {marker} >/dev/null 2>&1 & echo $!")
    assert outcome.background == ()
    assert sleeping(marker) == []


def test_first_command_can_leave_background_process(strict: Processes, marker: str) -> None:
    outcome = sh(strict, f"sleep {marker} >/dev/null 2>&1 & echo $!", keep_background=True)
    assert outcome.stdout.head.split() == [str(pid).encode() for pid in outcome.background]
    assert begun(marker)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV", "SIGABRT"])
def test_end_by_signal_is_reported_by_name(processes: Processes, name: str) -> None:
    outcome = sh(processes, f"kill -{name[3:]} $$")
    assert (outcome.exit_code, outcome.signal) == (None, name)


def test_signal_without_name_is_reported_by_number() -> None:
    assert ending_of(40) == (None, "SIG40")
    assert ending_of(None) == (None, None)


@pytest.fixture
def deaf() -> Iterator[None]:
    """Ignore these signals, as a process does that a script started in the background, or `nohup`."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("deaf")
def test_command_ignores_no_signal(level: Level, tmp_path: Path) -> None:
    with workspace(tmp_path / "ws", level_of(level)) as processes:
        for _ in ("the first", "the next"):
            outcome = processes.run(Command(["/bin/grep", "SigIgn", "/proc/self/status"]))
            ignored = int(outcome.stdout.head.removeprefix(b"SigIgn:"), 16)
            # valid_signals() leaves out two signals of the C library, which no program can change.
            assert [number for number in signal.valid_signals() if ignored >> (number - 1) & 1] == []


def test_command_input_is_empty(processes: Processes) -> None:
    assert sh(processes, "cat; echo end").stdout.head == b"end\n"


def test_command_has_its_own_session_and_group(processes: Processes) -> None:
    outcome = sh(processes, "ps -o pid=,pgid=,sid= -p $$")
    pid, group, session = outcome.stdout.head.split()
    assert pid == group == session == str(outcome.pgid).encode()


def test_command_runs_in_requested_directory(processes: Processes, tmp_path: Path) -> None:
    (tmp_path / "ws" / "sub dir").mkdir()
    assert sh(processes, "pwd", cwd="sub dir").stdout.head.decode() == f"{tmp_path}/ws/sub dir\n"


def test_command_gets_added_variables(processes: Processes) -> None:
    assert sh(processes, 'echo "$NAME"', environment={"NAME": "a b"}).stdout.head == b"a b\n"


@pytest.mark.parametrize("level", ["off", "strict"])
@pytest.mark.parametrize("named", [{}, {"HOME": ""}])
def test_user_without_home_variable_has_home_of_account(level: Level, named: dict[str, str], tmp_path: Path) -> None:
    homes = [each.pw_dir for each in pwd.getpwall() if each.pw_uid == os.getuid()]
    known = {"PATH": os.defpath, **named}
    with workspace(tmp_path / "ws", level_of(level), known) as processes:
        home = sh(processes, 'echo "$HOME"').stdout.head.decode().strip()
    account = homes[0] if homes else "/"
    assert home == (account if level == "off" else private_home(account))


@pytest.mark.parametrize(
    ("argv", "cwd", "why"),
    [
        (["/nowhere/program"], "", "ENOENT"),
        (["no-such-program"], "", "ENOENT"),
        (["/etc/passwd"], "", "EACCES"),
        (["true"], "missing", "ENOENT"),
        (["true", "x" * 200_000], "", "E2BIG"),
    ],
)
def test_command_that_cannot_start_gives_reason(processes: Processes, argv: list[str], cwd: str, why: str) -> None:
    with pytest.raises(CommandNotStarted) as caught:
        processes.run(Command(argv, cwd=cwd))
    assert caught.value.facts() == {"program": argv[0], "directory": cwd, "why": why}
    assert sh(processes, "echo still here").stdout.head == b"still here\n"


def test_program_is_found_behind_places_that_hold_none(processes: Processes, tmp_path: Path) -> None:
    """Test PATH as shells read it: what is no program there, or cannot be searched, hides nothing that comes later."""
    ws = tmp_path / "ws"
    for place in ("closed", "odd/tool", "good"):
        (ws / place).mkdir(parents=True)
    (ws / "odd/text").write_text("no program")
    (ws / "good/tool").write_text("#!/bin/sh\necho found")
    (ws / "good/tool").chmod(0o755)
    (ws / "closed").chmod(0)  # root can search it nevertheless
    path = ":".join(str(ws / place) for place in ("closed", "missing", "odd/text", "odd", "good"))
    for name, why in (("absent", "ENOENT"), ("text", "EACCES")):
        with pytest.raises(CommandNotStarted) as caught:
            processes.run(Command([name], environment={"PATH": path}))
        assert caught.value.why == why
    assert processes.run(Command(["tool"], environment={"PATH": path})).stdout.head == b"found\n"


def test_undecodable_output_is_unchanged(processes: Processes) -> None:
    assert sh(processes, r"printf '\xff\xfe\x00\x80'").stdout.head == b"\xff\xfe\x00\x80"


def test_undecodable_argument_is_unchanged(processes: Processes) -> None:
    outcome = sh(processes, 'printf %s "$1"', "a\udcff")
    assert outcome.stdout.head == b"a\xff"


def test_long_output_keeps_head_and_tail_and_whole_file(processes: Processes) -> None:
    outcome = sh(processes, "seq 1 100000", output_bytes=2002)
    whole = "".join(f"{n}\n" for n in range(1, 100_001)).encode()
    out = outcome.stdout
    assert out.head == whole[:1001]
    assert out.tail == whole[-1001:]
    assert out.cut_bytes == len(whole) - 2002
    assert out.joined(b"[cut]") == whole[:1001] + b"\n[cut]\n" + whole[-1001:]
    assert Path(out.spool).read_bytes() == whole


def test_long_output_is_cut_between_characters(processes: Processes) -> None:
    outcome = python(processes, "print('€' * 5000, end='')", output_bytes=1000, environment={"PYTHONUTF8": "1"})
    out = outcome.stdout
    assert out.head.decode() == "€" * 166
    assert out.tail.decode() == "€" * 166
    assert out.cut_bytes == 15000 - 2 * 166 * 3


def test_output_of_exactly_the_limit_is_not_cut(processes: Processes) -> None:
    outcome = sh(processes, "head -c 2000 /dev/zero", output_bytes=2000)
    assert (len(outcome.stdout.head), outcome.stdout.cut_bytes, outcome.stdout.spool) == (2000, 0, "")


def test_endless_output_is_limited_in_memory_and_on_disk(tmp_path: Path) -> None:
    with workspace(tmp_path / "ws", level_of("strict", spool_bytes=1_000_000)) as processes:
        outcome = sh(processes, "head -c 30000000 /dev/zero; echo end", output_bytes=1000)
        assert Path(outcome.stdout.spool).stat().st_size == 1_000_000
        assert outcome.stdout.tail.endswith(b"end\n")
        assert outcome.stdout.cut_bytes == 30_000_004 - 1000
        assert outcome.stdout.spooled_bytes == 1_000_000


def meets_deadline(processes: Processes, marker: str) -> CommandOutcome:
    """Run a command until its timeout; try a longer timeout if the command had no time to print."""
    for seconds in (0.3, 1, 4, 16, 64):
        outcome = sh(processes, f"echo early; sleep {marker}", timeout_seconds=seconds)
        assert (outcome.timed_out, sleeping(marker)) == (True, [])
        if outcome.stdout.head:
            break
    return outcome


def test_timeout_returns_output_and_leaves_no_process(processes: Processes, marker: str) -> None:
    outcome = meets_deadline(processes, marker)
    assert (outcome.cancelled, outcome.stdout.head) == (False, b"early\n")


def test_first_command_timeout_returns_output(strict: Processes, marker: str) -> None:
    assert meets_deadline(strict, marker).stdout.head == b"early\n"


def test_cancel_returns_output_and_leaves_no_process(processes: Processes, marker: str, tmp_path: Path) -> None:
    cancel = threading.Event()
    os.mkfifo(tmp_path / "ws" / "runs")

    def when_it_runs() -> None:
        await_word(tmp_path / "ws" / "runs")
        cancel.set()

    watcher = threading.Thread(target=when_it_runs)
    watcher.start()
    outcome = sh(processes, f"echo early; sleep {marker} & echo > runs; wait", cancel=cancel)
    watcher.join()
    assert (outcome.cancelled, outcome.timed_out, outcome.stdout.head) == (True, False, b"early\n")
    assert sleeping(marker) == []


def test_command_is_not_run_if_nothing_can_confine_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    monkeypatch.setattr(landlock_rules, "abi", lambda: 0)
    with workspace(tmp_path / "ws") as processes:
        with pytest.raises(SandboxUnavailable) as caught:
            sh(processes, "touch ran")
        assert caught.value.facts() == {
            "level": "strict",
            "why": ["bubblewrap: none outside the workspace", "landlock: the kernel has no Landlock, or too old a one"],
            "reason": "machine",
        }
        assert processes.sandbox.confinement is None
    assert not (tmp_path / "ws" / "ran").exists()


def test_failing_bubblewrap_is_skipped_and_command_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no user namespaces here' >&2\nexit 1\n")
    broken.chmod(0o755)
    real = find_bwrap.candidates(str(tmp_path / "ws"))
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [str(broken), *real])
    with workspace(tmp_path / "ws") as processes:
        outcome = sh(processes, "echo once >> log; cat log")
        assert outcome.stdout.head == b"once\n"
        assert (outcome.confinement.level, outcome.restarted) == ("strict", False)
        assert outcome.confinement.why == (f"{broken}: bwrap: no user namespaces here",)


def test_missing_bubblewrap_is_reported_as_reduced_level(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_bwrap, "candidates", lambda _root: [])
    with workspace(tmp_path / "ws") as processes:
        confinement = sh(processes, "true").confinement
    assert (confinement.level, confinement.by) == ("reduced", "landlock")
    assert len(confinement.cannot_stop) >= 4
