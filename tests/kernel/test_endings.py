"""Checks that no process outlives its command, its sandbox or Handrail."""

import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sandboxes import (
    PYTHON,
    await_word,
    begun,
    gone,
    level_of,
    none_left,
    open_handles,
    python,
    running,
    sh,
    sleeping,
    workspace,
)

from handrail.kernel.process.runner import Command, Processes
from handrail.model.faults import SandboxUnavailable

pytestmark = pytest.mark.sandbox

MANY = int(os.environ.get("HANDRAIL_MANY", "200"))
SURVIVAL = {
    "background": "sleep {m} &",
    "new session": "setsid sleep {m} &",
    "double fork": "( (setsid sleep {m} &) & )",
    "ignores TERM": "(trap '' TERM HUP INT; sleep {m}; sleep {m}) &",
    "nohup": "nohup sleep {m} >/dev/null 2>&1 &",
    "no environment": "env -i setsid /bin/sleep {m} &",
    "stopped": "sleep {m} & kill -STOP $!",
    "closed pipes": "setsid sleep {m} >&- 2>&- <&- &",
    "disowned": "sleep {m} & disown",
    "lowered limits": "(ulimit -t 5; setsid sleep {m}) &",
}


@pytest.mark.parametrize("trick", SURVIVAL)
def test_no_process_outlives_finished_command(processes: Processes, marker: str, trick: str) -> None:
    outcome = sh(processes, SURVIVAL[trick].format(m=marker) + "\n echo done", timeout_seconds=300)
    assert (outcome.stdout.head, outcome.timed_out, outcome.background) == (b"done\n", False, ())
    assert sleeping(marker) == []


@pytest.mark.parametrize("trick", SURVIVAL)
def test_no_process_outlives_command_timeout(processes: Processes, marker: str, trick: str) -> None:
    text = SURVIVAL[trick].format(m=marker)
    outcome = sh(processes, f"{text}\n trap '' TERM; while :; do sleep {marker}; done", timeout_seconds=0.4)
    assert outcome.timed_out
    assert sleeping(marker) == []


HIDES_ITS_MARK = """
import os, resource, sys, time
if os.fork(): sys.exit()
os.setsid()
if os.fork(): os._exit(0)
resource.setrlimit(resource.RLIMIT_RTTIME, (12345, 12345))
os.execv("/bin/sleep", ["sleep", sys.argv[1]])
"""

MAIN_THREAD_ENDS = """
import ctypes, os, sys, threading, time
if os.fork(): sys.exit()
os.setsid()
threading.Thread(target=lambda: os.system("sleep " + sys.argv[1])).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_process_that_hides_its_mark_is_ended_by_next_command(strict: Processes, marker: str) -> None:
    python(strict, HIDES_ITS_MARK, marker)
    sh(strict, "true")
    assert gone(marker)


def test_process_whose_main_thread_ended_is_found(processes: Processes, marker: str) -> None:
    python(processes, MAIN_THREAD_ENDS, marker)
    assert gone(marker)


@pytest.fixture
def busy() -> Iterator[None]:
    """Keep all processors busy, so that other processes run between two steps of the scan."""
    spinners = [subprocess.Popen([PYTHON, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    yield
    for spinner in spinners:
        spinner.kill()
        spinner.wait()


@pytest.mark.serial
@pytest.mark.slow
@pytest.mark.usefixtures("busy")
def test_child_reparented_during_scan_is_found(tmp_path: Path, marker: str) -> None:
    for _ in range(60):  # its parent dies under the look about one time in thirty
        with workspace(tmp_path / "ws", level_of("off")) as processes:
            python(processes, MAIN_THREAD_ENDS, marker)
            assert sleeping(marker) == []


def test_background_processes_live_on_if_kept(processes: Processes, marker: str) -> None:
    outcome = sh(processes, f"sleep {marker} & setsid sleep {marker} & echo done", keep_background=True)
    assert (outcome.stdout.head, len(outcome.background), outcome.exit_code) == (b"done\n", 2, 0)
    assert outcome.background == tuple(sorted(outcome.background))
    assert begun(marker, 2)
    again = sh(processes, f"kill {outcome.background[0]}; kill -0 {outcome.background[1]} && echo alive")
    assert again.stdout.head == b"alive\n"
    assert none_left(lambda: sleeping(marker)[1:])
    assert len(sleeping(marker)) == 1
    processes.close()
    assert gone(marker)


def test_background_process_can_continue_printing(processes: Processes, tmp_path: Path) -> None:
    text = "(for i in $(seq 200); do head -c 4096 /dev/zero; done; echo > finished) & echo started"
    os.mkfifo(tmp_path / "ws" / "finished")
    outcome = sh(processes, text, keep_background=True)
    assert len(outcome.background) > 0
    await_word(tmp_path / "ws" / "finished")


def test_parallel_commands_end_only_their_own_processes(processes: Processes, marker: str) -> None:
    server = sh(processes, f"sleep {marker} & echo", keep_background=True)
    results: list[bytes] = []

    def one(number: int) -> None:
        outcome = sh(processes, f"sleep 0.05 & sleep 0.1; echo {number}")
        results.append(outcome.stdout.head)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == sorted(f"{n}\n".encode() for n in range(8))
    assert begun(marker)
    assert len(sleeping(marker)) == len(server.background) == 1


def test_server_left_by_one_command_answers_next_command(strict: Processes) -> None:
    serve = (
        "import socket\n"
        "s = socket.create_server(('127.0.0.1', 8765))\n"
        "open('ready', 'w').close()\n"
        "while True:\n c, _ = s.accept(); c.sendall(b'hello'); c.close()\n"
    )
    outcome = sh(
        strict,
        f'"{PYTHON}" -I -c "$1" & until test -e ready; do sleep 0.01; done',
        serve,
        keep_background=True,
    )
    assert len(outcome.background) == 1
    ask = "import socket; print(socket.create_connection(('127.0.0.1', 8765)).recv(9).decode())"
    assert python(strict, ask).stdout.head == b"hello\n"


def test_dead_sandbox_is_replaced_and_answer_says_so(strict: Processes, marker: str) -> None:
    sh(strict, f"sleep {marker} & echo", keep_background=True)
    link = strict.sandbox._link
    assert link is not None
    link.kill()
    assert gone(marker)
    assert link._ended.wait(300)
    outcome = sh(strict, "echo new")
    assert (outcome.stdout.head, outcome.restarted) == (b"new\n", True)
    assert not sh(strict, "true").restarted


def test_sandbox_with_unnoticed_death_is_replaced(strict: Processes) -> None:
    sh(strict, "true")
    link = strict.sandbox._link
    assert link is not None
    link.kill()
    assert link._ended.wait(300)
    hung_up = select.poll()
    hung_up.register(link.control, 0)
    hung_up.poll()
    link._ended.clear()
    outcome = sh(strict, "echo new")
    assert (outcome.stdout.head, outcome.restarted) == (b"new\n", True)


def test_command_ends_when_its_sandbox_dies(strict: Processes, marker: str, tmp_path: Path) -> None:
    sh(strict, "true")
    link = strict.sandbox._link
    assert link is not None
    os.mkfifo(tmp_path / "ws" / "runs")

    def when_it_runs() -> None:
        await_word(tmp_path / "ws" / "runs")
        link.kill()

    watcher = threading.Thread(target=when_it_runs)
    watcher.start()
    outcome = sh(strict, f"echo early; sleep {marker} & echo > runs; wait")
    watcher.join()
    assert (outcome.sandbox_died, outcome.exit_code, outcome.stdout.head) == (True, None, b"early\n")
    assert gone(marker)


def test_supervisor_without_answer_is_replaced_and_call_returns(tmp_path: Path, marker: str) -> None:
    with workspace(tmp_path / "ws", level_of("strict", end_patience_seconds=0.3)) as processes:
        sh(processes, "true")
        init = [pid for pid in running("control.recvmsg") if _is_first(pid)]
        for pid in init:
            os.kill(pid, signal.SIGSTOP)
        outcome = sh(processes, f"sleep {marker}", timeout_seconds=0.2)
        assert (outcome.timed_out, outcome.sandbox_died) == (True, True)
        assert sh(processes, "echo new").restarted
    assert gone(marker)


def _is_first(pid: int) -> bool:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    parent = next(line.split()[1] for line in lines if line.startswith("PPid:"))
    numbers = next(line.split()[1:] for line in lines if line.startswith("NSpid:"))
    ours = Path(f"/proc/{parent}/status").read_text().split("PPid:")[1].split()[0] == str(os.getpid())
    return ours and numbers[-1] == "1"


@pytest.mark.parametrize("kind", ["strict", "off"])
def test_no_process_outlives_killed_handrail(tmp_path: Path, marker: str, kind: str) -> None:
    program = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from handrail.kernel.sandbox.sandbox import SandboxSettings
        from handrail.kernel.process.terminals import Terminals
        from support.sandboxes import sh, workspace
        with workspace(Path({str(tmp_path / "ws")!r}), SandboxSettings(level={kind!r})) as p:
            t = Terminals(p.sandbox)
            t.start("a", ["/bin/sh", "-c", "trap '' HUP TERM; sleep {marker}; sleep {marker}"])
            sh(p, "setsid sleep {marker} & trap '' TERM; (sleep {marker}; true) &", keep_background=True)
            print("ready", flush=True)
            sh(p, "sleep {marker}")
    """)
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=_our_environment())
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    while len(sleeping(marker)) < 4:
        time.sleep(0.005)
    child.kill()
    child.wait()
    child.stdout.close()
    assert gone(marker)


def _our_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def test_sandbox_outlives_thread_that_started_it(strict: Processes) -> None:
    thread = threading.Thread(target=lambda: sh(strict, "touch /tmp/here"))
    thread.start()
    thread.join()
    outcome = sh(strict, "test -e /tmp/here && echo same")
    assert (outcome.stdout.head, outcome.restarted) == (b"same\n", False)


@pytest.mark.slow
def test_many_commands_leak_no_handle(processes: Processes) -> None:
    sh(processes, "true")
    before = open_handles()
    for _ in range(MANY):
        processes.run(Command(["true"]))
    assert open_handles() == before
    inside = python(processes, "import os; print(len(os.listdir('/proc/self/fd')))")
    assert inside.stdout.head == b"4\n"


def test_opening_and_closing_many_sandboxes_leaves_nothing(tmp_path: Path, marker: str) -> None:
    with workspace(tmp_path / "ws") as processes:
        sh(processes, "true")
    before = open_handles(), threading.active_count()
    for number in range(20):
        with workspace(tmp_path / "ws") as processes:
            sh(processes, f"sleep {marker} &", keep_background=bool(number % 2))
    assert gone(marker)
    assert (open_handles(), threading.active_count()) == before
    assert list((tmp_path / "ws").iterdir()) == []


def test_closed_sandbox_starts_no_command(tmp_path: Path) -> None:
    with workspace(tmp_path / "ws") as processes:
        sh(processes, "true")
    with pytest.raises(SandboxUnavailable):
        sh(processes, "true")
