"""Tests terminals: a real PTY with everything that programs expect, and its end."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.sandboxes import PYTHON, Level, gone, level_of, open_handles, sh, sleeping, workspace

from handrail.kernel.process.runner import Processes
from handrail.kernel.process.terminals import Terminal, Terminals
from handrail.model.faults import CommandNotStarted
from handrail.model.terminal_faults import TerminalBusy, TooManyTerminals, UnknownTerminal

pytestmark = pytest.mark.sandbox

PATIENCE = 300
ECHO = [PYTHON, "-I", "-u", "-c", "import sys\nfor line in sys.stdin: print('got', line, end='', flush=True)"]
BACK = (
    "import os, tty\ntty.setraw(0)\nos.write(1, b'ready\\n')\n"
    "while True:\n data = os.read(0, 4096)\n"
    " if b'\\x04' in data: os.write(1, data[:data.index(b'\\x04')]); break\n"
    " while data: data = data[os.write(1, data):]"
)
RAW = [PYTHON, "-I", "-c", BACK]


@pytest.fixture
def processes(tmp_path: Path, level: Level) -> Iterator[Processes]:
    with workspace(tmp_path / "ws", level_of(level, terminals=3, terminal_bytes=20_000)) as opened:
        yield opened


@pytest.fixture
def terminals(processes: Processes) -> Iterator[Terminals]:
    opened = Terminals(processes.sandbox)
    yield opened
    opened.close()


def ask(terminal: Terminal, typed: bytes, until: bytes) -> bytes:
    written = terminal.write(typed, PATIENCE)
    assert written == len(typed)
    reading = terminal.read(PATIENCE, 0.1, until)
    assert reading.because in ("seen", "ended"), reading
    return reading.data


def test_terminal_has_name_size_and_type_and_is_controlling(terminals: Terminals) -> None:
    terminal = terminals.start("t", ["/bin/sh", "-c", "tty; stty size; echo $TERM; ps -o tty= -p $$"], size=(30, 100))
    reading = terminal.read(PATIENCE, 0.2, b"never")
    name, size, kind, control = reading.data.decode().split("\n")[:4]
    assert name == f"/dev/{control.strip()}"
    assert name.startswith("/dev/pts/")
    assert (size, kind) == ("30 100", os.environ.get("TERM", "xterm-256color"))


def test_terminal_passes_input_and_returns_plain_line_ends(terminals: Terminals) -> None:
    terminal = terminals.start("t", ECHO)
    assert ask(terminal, b"hello\n", b"got hello\n") == b"hello\ngot hello\n"


def test_terminal_keeps_exit_code_after_its_end(terminals: Terminals) -> None:
    terminal = terminals.start("t", ["/bin/sh", "-c", "echo bye; exit 5"])
    reading = terminal.read(PATIENCE, 0.2, b"never")
    assert (reading.data, reading.because, reading.alive, reading.exit_code) == (b"bye\n", "ended", False, 5)
    again = terminals.get("t").read(PATIENCE, 0.2)
    assert (again.data, again.because, again.exit_code, again.signal) == (b"", "ended", 5, None)
    assert terminal.write(b"x", 0.1) == 0


def test_terminal_reports_end_by_signal(terminals: Terminals) -> None:
    reading = terminals.start("t", ["/bin/sh", "-c", "kill -KILL $$"]).read(PATIENCE, 0.2)
    assert (reading.exit_code, reading.signal) == (None, "SIGKILL")


@pytest.mark.parametrize(("key", "name"), [(b"\x03", "SIGINT"), (b"\x1c", "SIGQUIT")])
def test_control_characters_send_signals_to_program(terminals: Terminals, marker: str, key: bytes, name: str) -> None:
    terminal = terminals.start("t", ["sleep", marker])
    while not sleeping(marker):
        time.sleep(0.005)
    terminal.write(key, 1)
    assert terminal.read(PATIENCE, 0.2, b"never").signal == name


def test_end_of_input_ends_reading_program(terminals: Terminals) -> None:
    terminal = terminals.start("t", ["cat"])
    terminal.write(b"a\n\x04", 1)
    reading = terminal.read(PATIENCE, 0.2, b"never")
    assert (reading.because, reading.exit_code) == ("ended", 0)


def test_job_control_works_in_terminal(terminals: Terminals, marker: str) -> None:
    terminal = terminals.start("t", ["/bin/bash", "--norc", "--noprofile", "-i"], environment={"PS1": "> "})
    ask(terminal, b"sleep " + marker.encode() + b" &\n", b"[1]")
    ask(terminal, b"fg\n", b"sleep " + marker.encode() + b"\n")
    while terminal.write(b"\x1a", 1) and terminal.read(0.2, 0.1, b"Stopped").because != "seen":
        pass  # the shell had not yet given the terminal to the job
    assert b"0\n" in ask(terminal, b"kill -9 %1; wait; echo $?\n", b"0\n")


def test_read_waits_until_terminal_is_quiet(terminals: Terminals) -> None:
    terminal = terminals.start("t", ["/bin/sh", "-c", "echo one; echo two; sleep 600"])
    reading = terminal.read(PATIENCE, 1)
    assert (reading.data, reading.because, reading.alive) == (b"one\ntwo\n", "quiet", True)


def test_read_of_silent_terminal_ends_at_timeout(terminals: Terminals) -> None:
    terminal = terminals.start("t", ["sleep", "600"])
    reading = terminal.read(0.2, 0.05)
    assert (reading.data, reading.because, reading.alive) == (b"", "timeout", True)


def test_read_holds_back_trailing_carriage_return(terminals: Terminals) -> None:
    terminal = terminals.start("t", RAW)
    terminal.read(PATIENCE, 0.1, b"ready\n")
    assert ask(terminal, b"a\r!", b"!") == b"a\r!"
    terminal.write(b"b\r", 1)
    assert terminal.read(PATIENCE, 0.2).data == b"b"
    assert ask(terminal, b"\n.", b".") == b"\n."


def test_unread_output_is_limited_and_program_continues(terminals: Terminals) -> None:
    terminal = terminals.start("t", ["/bin/sh", "-c", "seq 1 20000; echo end"])
    while terminal.alive:
        time.sleep(0.005)
    reading = terminal.read(PATIENCE, 0.1)
    lines = [f"{n}\r\n".encode() for n in range(1, 20_001)] + [b"end\r\n"]
    whole = b"".join(lines)
    assert reading.dropped_bytes == len(whole) - 20_000
    assert reading.data == whole[-20_000:].replace(b"\r\n", b"\n")


def test_terminals_are_limited_and_running_name_is_busy(terminals: Terminals) -> None:
    for name in "abc":
        terminals.start(name, ["sleep", "60"])
    with pytest.raises(TerminalBusy):
        terminals.start("a", ["true"])
    with pytest.raises(TooManyTerminals) as caught:
        terminals.start("d", ["true"])
    assert caught.value.facts() == {"terminal": "d", "limit": 3}
    terminals.end("a")
    terminals.start("d", ["true"])
    with pytest.raises(UnknownTerminal):
        terminals.get("a")


def test_name_of_ended_terminal_can_be_used_again(terminals: Terminals) -> None:
    assert terminals.start("t", ["true"]).read(PATIENCE, 0.1).exit_code == 0
    assert terminals.start("t", ["false"]).read(PATIENCE, 0.1).exit_code == 1


@pytest.mark.parametrize(("argv", "cwd", "why"), [(["no-such-program"], "", "ENOENT"), (["true"], "gone", "ENOENT")])
def test_terminal_that_cannot_start_gives_reason(terminals: Terminals, argv: list[str], cwd: str, why: str) -> None:
    with pytest.raises(CommandNotStarted) as caught:
        terminals.start("t", argv, cwd=cwd)
    assert caught.value.why == why
    assert terminals.start("t", ["true"]).read(PATIENCE, 0.1).exit_code == 0


def test_ending_terminal_ends_all_its_processes(terminals: Terminals, marker: str) -> None:
    text = f"trap '' HUP TERM; setsid sleep {marker} & nohup sleep {marker} & sleep {marker}; sleep {marker}"
    terminals.start("t", ["/bin/sh", "-c", text])
    while len(sleeping(marker)) < 3:
        time.sleep(0.005)
    terminals.end("t")
    assert sleeping(marker) == []


def test_terminals_end_with_workspace(processes: Processes, terminals: Terminals, marker: str) -> None:
    terminals.start("t", ["/bin/sh", "-c", f"trap '' HUP TERM; setsid sleep {marker} & sleep {marker}"])
    while len(sleeping(marker)) < 2:
        time.sleep(0.005)
    terminals.close()
    processes.close()
    assert gone(marker)


def test_terminal_ends_when_its_program_leaves_child(terminals: Terminals, marker: str) -> None:
    terminal = terminals.start("t", ["/bin/sh", "-c", f"setsid sleep {marker} & exit 3"])
    reading = terminal.read(PATIENCE, 0.2, b"never")
    assert (reading.because, reading.exit_code, sleeping(marker)) == ("ended", 3, [])


def test_terminal_ends_when_its_sandbox_dies(processes: Processes, terminals: Terminals) -> None:
    terminal = terminals.start("t", ["sleep", "60"])
    link = processes.sandbox._link
    assert link is not None
    link.kill()
    reading = terminal.read(PATIENCE, 0.2, b"never")
    assert (reading.because, reading.exit_code, reading.signal) == ("ended", None, None)


def test_server_in_terminal_answers_command(tmp_path: Path) -> None:
    with workspace(tmp_path / "ws") as processes:
        terminals = Terminals(processes.sandbox)
        serve = ["-m", "http.server", "--bind", "127.0.0.1", "8123"]
        terminals.start("server", [PYTHON, "-I", "-u", *serve]).read(PATIENCE, 0.1, b"Serving")
        fetch = (
            "import time, urllib.request as u\n"
            "for _ in range(200):\n"
            " try: print(u.urlopen('http://127.0.0.1:8123/').status); break\n"
            " except OSError: time.sleep(0.02)\n"
        )
        assert sh(processes, f'"{PYTHON}" -I -c "$1"', fetch).stdout.head == b"200\n"
        terminals.close()


def test_many_terminals_leave_no_process_handle_or_thread(processes: Processes, marker: str) -> None:
    terminals = Terminals(processes.sandbox)
    terminals.start("t", ["sleep", marker])
    terminals.end("t")
    before = open_handles(), threading.active_count()
    for number in range(100):
        terminals.start(f"t{number}", ["sleep", marker])
        terminals.end(f"t{number}")
    assert sleeping(marker) == []
    assert (open_handles(), threading.active_count()) == before
    terminals.close()


def test_oldest_ended_terminals_are_forgotten(processes: Processes) -> None:
    terminals = Terminals(processes.sandbox)
    for number in range(80):
        terminals.start(f"t{number}", ["true"]).read(PATIENCE, 0.1, b"never")
    with pytest.raises(UnknownTerminal):
        terminals.get("t0")
    assert terminals.get("t79").read(1, 0.1).exit_code == 0
    terminals.close()


Step = tuple[str, bytes]
# The typed bytes do not contain \x04, which ends the program.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("type"), st.binary(min_size=1, max_size=3000).map(lambda b: b.replace(b"\x04", b"."))),
        st.tuples(st.sampled_from(["read", "wait"]), st.just(b"")),
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def shared_terminals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminals]:
    with workspace(tmp_path_factory.mktemp("pty") / "ws") as processes:
        opened = Terminals(processes.sandbox)
        yield opened
        opened.close()


@pytest.mark.slow
@settings(
    max_examples=int(os.environ.get("HANDRAIL_INTERLEAVINGS", "100")),
    deadline=None,
    derandomize="HANDRAIL_INTERLEAVINGS" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_terminal_loses_no_byte_in_any_interleaving(shared_terminals: Terminals, steps: list[Step]) -> None:
    terminal = shared_terminals.start("t", RAW)
    assert terminal.read(PATIENCE, 0.1, b"ready\n").data == b"ready\n"
    typed, seen = bytearray(), bytearray()
    for kind, data in steps:
        if kind == "type":
            assert terminal.write(data, PATIENCE) == len(data)
            typed += data
        else:
            seen += terminal.read(0.02 if kind == "wait" else 0, 0.005).data
    assert terminal.write(b"\x04", PATIENCE) == 1
    last = terminal.read(PATIENCE, 0.1, b"\x04 never")
    seen += last.data
    assert (last.because, last.exit_code) == ("ended", 0)
    assert _plain(bytes(seen)) == _plain(bytes(typed))


def _plain(data: bytes) -> bytes:
    """Remove carriage returns before line feeds: their number depends on where a read ended."""
    while b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    return data
