"""Commands and terminals against the physical limit: the same thing done bare, in the same run."""

import contextlib
import os
import pty
import select
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measure import Row, row
from handrail.kernel.process.remembered_shell import Shells
from handrail.kernel.process.runner import Command, Processes
from handrail.kernel.process.shells import BASH
from handrail.kernel.process.terminals import Terminals
from handrail.kernel.sandbox import find_bwrap, launch
from handrail.kernel.sandbox.sandbox import Sandbox, SandboxSettings
from handrail.kernel.sandbox.view.occupied_names import OccupiedNames
from handrail.kernel.sandbox.view.workspace_view import WorkspaceView

TRUE = "/usr/bin/true"
MEGABYTES = 100
IDLE_SECONDS = 3.0


def run() -> list[Row]:
    return [
        first_command(),
        next_command(),
        remembered_shell(),
        much_output(),
        terminal_echo(),
        terminal_prompt(),
        idle(),
    ]


def first_command() -> Row:
    with tempfile.TemporaryDirectory() as root:
        ours, bare = interleaved(30, lambda: _first(root), lambda: _bare_sandbox(root))
    return row("first sandboxed true, of the same bwrap line bare", ours, bare, 1.5)


def next_command() -> Row:
    with workspace() as processes:
        command = Command([TRUE])
        processes.run(command)
        ours, bare = interleaved(200, lambda: timed(lambda: processes.run(command)), _bare_true)
    return row("following sandboxed true, of a bare spawn", ours, bare, 4.0)


def remembered_shell() -> Row:
    """What a call does around the command, `look`, counts too."""
    with workspace() as processes, contextlib.closing(Shells(processes)) as shells:
        shell = shells.get("main", merged=True)
        fresh = Command([BASH, "-c", TRUE])

        def ours() -> None:
            shell.look()
            assert shell.run(TRUE, 60).exit_code == 0

        ours()
        processes.run(fresh)
        ours_ms, fresh_ms = interleaved(200, lambda: timed(ours), lambda: timed(lambda: processes.run(fresh)))
    return row("true in the shell that remembers, of a new shell in the same sandbox", ours_ms, fresh_ms, 1.2)


def much_output() -> Row:
    argv = ["/usr/bin/head", "-c", str(MEGABYTES * 10**6), "/dev/zero"]
    with workspace() as processes:
        processes.run(Command([TRUE]))

        def ours() -> float:
            began = time.perf_counter()
            outcome = processes.run(Command(argv))
            seconds = time.perf_counter() - began
            os.unlink(outcome.stdout.spool)  # or the next would wait for the disk
            return seconds

        ours_ms, bare_ms = interleaved(21, ours, lambda: _read_pipe(argv))
    return row(f"{MEGABYTES} MB of output, of reading the pipe", ours_ms, bare_ms, 2.0)


def terminal_echo() -> Row:
    with workspace() as processes, contextlib.closing(Terminals(processes.sandbox)) as terminals:
        terminal = terminals.start("echo", ["cat"])

        def ours() -> None:
            terminal.write(b"x\n", 5)
            terminal.read(5, 0.1, b"x\nx\n")

        child, master = pty.fork()
        if child == 0:
            os.execv("/usr/bin/cat", ["cat"])

        def bare() -> None:
            os.write(master, b"x\n")
            seen = b""
            while seen.count(b"x") < 2:
                select.select([master], [], [])
                seen += os.read(master, 100)

        ours_ms, bare_ms = interleaved(100, lambda: timed(ours), lambda: timed(bare))
        os.close(master)
        os.waitpid(child, 0)
    return row("terminal echo, of a bare PTY's and 5 ms", ours_ms, bare_ms + 5, 1.0)


def terminal_prompt() -> Row:
    """A command in a shell, until its next prompt: no text is awaited, the end of the output must be found out."""
    shell = [BASH, "--norc", "--noprofile", "--noediting", "-i"]
    with workspace() as processes, contextlib.closing(Terminals(processes.sandbox)) as terminals:
        limits = processes.sandbox.settings.limits
        terminal = terminals.start("shell", shell)
        terminal.read(limits.terminal_wait_seconds, limits.terminal_quiet_seconds)

        def ours() -> None:
            terminal.write(b"echo x\n", 5)
            reading = terminal.read(limits.terminal_wait_seconds, limits.terminal_quiet_seconds)
            assert reading.data.count(b"x\n") == 2, reading

        child, master = pty.fork()
        if child == 0:
            os.execve(BASH, shell, {**os.environ, "PS1": "prompt> "})
        seen = os.read(master, 100)

        def bare() -> None:
            nonlocal seen
            seen = b""
            os.write(master, b"echo x\n")
            while not (seen.count(b"x\r\n") == 2 and seen.endswith(b"prompt> ")):
                select.select([master], [], [])
                seen += os.read(master, 100)

        ours_ms, bare_ms = interleaved(60, lambda: timed(ours), lambda: timed(bare))
        os.close(master)
        os.waitpid(child, 0)
    return row("terminal: a command until the next prompt, of a bare PTY's and 20 ms", ours_ms, bare_ms + 20, 1.0)


def idle() -> Row:
    """CPU time of this process and the supervisor, with an idle terminal and a background job."""
    with workspace() as processes, contextlib.closing(Terminals(processes.sandbox)) as terminals:
        terminals.start("idle", ["cat"])
        processes.run(Command(["/bin/sh", "-c", "sleep 100 &"], keep_background=True))
        watched = [os.getpid(), *_inside()]
        time.sleep(2 * IDLE_SECONDS)  # the supervisor looks less and less often
        before = sum(map(_cpu_seconds, watched))
        time.sleep(IDLE_SECONDS)
        used = sum(map(_cpu_seconds, watched)) - before
    return row("CPU of an idle session, of 1 % of a core", used * 1000, IDLE_SECONDS * 10, 1.0)


def interleaved(count: int, ours: Callable[[], float], bare: Callable[[], float]) -> tuple[float, float]:
    """Medians in milliseconds, taken turn by turn so that a busy machine is unfair to both."""
    pairs = [(ours(), bare()) for _ in range(count)]
    return statistics.median(p[0] for p in pairs) * 1000, statistics.median(p[1] for p in pairs) * 1000


def timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


@contextlib.contextmanager
def workspace() -> Iterator[Processes]:
    with tempfile.TemporaryDirectory() as directory:
        root = os.path.join(directory, "ws")
        os.mkdir(root)
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        processes = Processes(Sandbox(fd, root, SandboxSettings()), os.path.join(directory, "spool"))
        try:
            yield processes
        finally:
            processes.close()
            os.close(fd)


def _first(root: str) -> float:
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    processes = Processes(Sandbox(fd, root, SandboxSettings()), f"{root}-spool")
    seconds = timed(lambda: processes.run(Command([TRUE])))
    processes.close()
    os.close(fd)
    return seconds


def _bare_sandbox(root: str) -> float:
    """The very command line of the sandbox, its mounts and all, with nothing of ours inside."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    guard = OccupiedNames(fd)
    guard.occupy(SandboxSettings().guarded)
    place = WorkspaceView(root, fd, SandboxSettings(), dict(os.environ))
    building = launch.strict(place, find_bwrap.candidates(root)[0], guard, None)
    argv = [*building.launch.argv[: building.launch.argv.index("--") + 1], TRUE]
    seconds = timed(
        lambda: subprocess.run(
            argv,
            pass_fds=building.launch.handles,
            stdin=subprocess.DEVNULL,
            env={},
            check=True,
            capture_output=True,
        )
    )
    building.close()
    guard.remove()
    os.close(fd)
    return seconds


def _bare_true() -> float:
    return timed(lambda: subprocess.run([TRUE], stdin=subprocess.DEVNULL, capture_output=True, check=True))


def _read_pipe(argv: list[str]) -> float:
    def read() -> None:
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            while os.read(process.stdout.fileno(), 65536):
                pass

    return timed(read)


def _inside() -> list[int]:
    """The supervisor: our child's child."""
    children = [child for task in _tasks(os.getpid()) for child in task]
    return [grandchild for child in children for task in _tasks(child) for grandchild in task]


def _tasks(pid: int) -> list[list[int]]:
    places = Path(f"/proc/{pid}/task").iterdir()
    return [[int(child) for child in (place / "children").read_text().split()] for place in places]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
