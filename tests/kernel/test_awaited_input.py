"""Tests that a read returns as soon as the program waits for input, and not before.

Where the answer must come from the system, the quiet time is longer than the time limit of the read.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.sandboxes import PYTHON, Level, level_of, workspace

from handrail.kernel.process import awaited_input
from handrail.kernel.process.runner import Processes
from handrail.kernel.process.shells import BASH
from handrail.kernel.process.terminals import Reading, Terminal, Terminals

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(os.uname().machine not in awaited_input._BY_MACHINE, reason="unknown system call numbers"),
]
PATIENCE, NEVER = 120, 1000


@pytest.fixture
def processes(tmp_path: Path, level: Level) -> Iterator[Processes]:
    with workspace(tmp_path / "ws", level_of(level)) as opened:
        yield opened


@pytest.fixture
def start(processes: Processes) -> Iterator[Callable[..., Terminal]]:
    opened = Terminals(processes.sandbox)
    yield lambda *argv: opened.start("t", argv)
    opened.close()


def python(text: str) -> tuple[str, ...]:
    return PYTHON, "-I", "-c", text


def asked(terminal: Terminal, typed: bytes = b"") -> Reading:
    if typed:
        assert terminal.write(typed, PATIENCE) == len(typed)
    reading = terminal.read(PATIENCE, NEVER)
    assert reading.because == "quiet", reading
    return reading


def test_read_returns_at_prompt_of_shell(start: Callable[..., Terminal]) -> None:
    shell = start(BASH, "--norc", "--noediting", "-i")
    asked(shell)
    for number in range(20):
        assert f"\n{number * 7}\n" in asked(shell, b"sleep 0.01; echo $((%d*7))\n" % number).data.decode()


def test_read_returns_at_prompt_of_shell_with_readline(start: Callable[..., Terminal]) -> None:
    shell = start(BASH, "--norc", "-i")
    asked(shell)
    assert b"42\n" in asked(shell, b"echo $((6*7))\n").data


@pytest.mark.parametrize(
    "argv",
    [
        ("cat",),
        ("/bin/sh", "-c", "while read -r line; do echo $line; done"),
        ("/bin/sh", "-c", "cat; exit 3"),
        python("import sys\nfor line in iter(sys.stdin.readline, ''): print(line, end='', flush=True)"),
        python(
            "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
            "while True: print(input(), flush=True)"
        ),
        ("/bin/sh", "-c", "while read -r line < /dev/tty; do echo $line; done < /dev/null"),
    ],
)
def test_read_returns_when_program_reads_the_next_line(start: Callable[..., Terminal], argv: tuple[str, ...]) -> None:
    terminal = start(*argv)
    for number in range(10):
        assert asked(terminal, b"line %d\n" % number).data == b"line %d\nline %d\n" % (number, number)


@pytest.mark.parametrize(
    "work",
    [
        "time.sleep(0.3)",
        "end = time.monotonic() + 0.3\n while time.monotonic() < end: pass",
        "select.select([], [], [], 0.3)",
        "subprocess.run(['sleep', '0.3'])",
        "thread = threading.Thread(target=time.sleep, args=(0.3,)); thread.start(); thread.join()",
        "os.read(os.popen('sleep 0.3; echo x').fileno(), 9)",
    ],
)
def test_read_does_not_return_while_program_works(start: Callable[..., Terminal], work: str) -> None:
    loop = f"while True:\n print('begin')\n {work}\n print('end')\n input()"
    terminal = start(*python(f"import os, select, subprocess, threading, time\n{loop}"))
    assert asked(terminal).data == b"begin\nend\n"
    assert asked(terminal, b"\n").data == b"\nbegin\nend\n"


def test_read_does_not_return_while_another_thread_works(start: Callable[..., Terminal]) -> None:
    text = (
        "import threading, time\n"
        "def work():\n for n in range(3): time.sleep(0.1); print(n, flush=True)\n"
        "threading.Thread(target=work).start()\nprint('begin', flush=True)\ninput()"
    )
    assert asked(start(*python(text))).data == b"begin\n0\n1\n2\n"


def test_read_does_not_return_before_typed_lines_are_read(start: Callable[..., Terminal]) -> None:
    terminal = start("/bin/sh", "-c", "echo begin; sleep 0.3; read -r a; read -r b; echo $a $b; read -r c")
    assert asked(terminal, b"one\ntwo\n").data.endswith(b"one two\n")


def test_read_waits_for_quiet_where_program_waits_in_another_way(start: Callable[..., Terminal]) -> None:
    """A program that waits for several events may print without input."""
    terminal = start(
        *python("import select\nprint('begin', flush=True)\np = select.epoll()\np.register(0, 1)\np.poll()")
    )
    reading = terminal.read(PATIENCE, 0.2)
    assert (reading.because, reading.data) == ("quiet", b"begin\n")
    began = time.monotonic()
    assert terminal.write(b"\n", PATIENCE) == 1
    assert terminal.read(PATIENCE, 0.2).because in ("quiet", "ended")
    assert time.monotonic() - began < PATIENCE


def test_read_waits_for_quiet_if_the_system_tells_nothing(
    start: Callable[..., Terminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaited_input, "_BY_MACHINE", {})
    terminal = start("cat")
    terminal.write(b"x\n", PATIENCE)
    assert terminal.read(1, NEVER).because == "timeout"


def test_program_that_pretends_to_wait_only_moves_its_output_to_a_later_read(start: Callable[..., Terminal]) -> None:
    text = (
        "import os, time\n"
        "if os.fork():\n print('prompt> ', end='', flush=True); input()\n"
        "else:\n os.setsid(); time.sleep(0.3); os.write(1, b'late')"
    )
    terminal = start(*python(text))
    first = asked(terminal).data
    rest = terminal.read(PATIENCE, NEVER, b"late").data if b"late" not in first else b""
    assert first + rest == b"prompt> late"


def test_much_output_before_a_prompt_is_in_one_reading(start: Callable[..., Terminal]) -> None:
    terminal = start("/bin/sh", "-c", "while :; do seq 20000; printf done; read -r line; done")
    for typed in (b"", b"\n", b"\n"):
        lines = asked(terminal, typed).data.split(b"\n")
        assert lines[-1] == b"done"
        assert lines[-20001:-1] == [b"%d" % number for number in range(1, 20001)]
