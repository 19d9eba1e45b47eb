"""Opens real sandboxes for tests and looks at the process table."""

import contextlib
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from handrail.kernel.process.runner import Command, CommandOutcome, Processes
from handrail.kernel.sandbox import find_bwrap
from handrail.kernel.sandbox.sandbox import Sandbox, SandboxSettings
from handrail.model.limits import Limits

PYTHON = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
X86 = platform.machine() == "x86_64"

Level = Literal["strict", "off", "reduced"]
"""How commands are confined: by bubblewrap, by nothing, or, without bubblewrap, by Landlock."""


def level_of(level: Level, **limits: float) -> SandboxSettings:
    """Return the settings for a level, with other limits."""
    chosen: Literal["off", "strict"] = "off" if level == "off" else "strict"
    return SandboxSettings(chosen, allow_reduced=level == "reduced", limits=Limits()._replace(**limits))  # type: ignore[arg-type]


@contextlib.contextmanager
def workspace(
    root: Path, settings: SandboxSettings | None = None, asked_user: Mapping[str, str] | None = None
) -> Iterator[Processes]:
    root.mkdir(exist_ok=True)
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    sandbox = Sandbox(fd, str(root), settings or SandboxSettings(allow_reduced=True), asked_user)
    processes = Processes(sandbox, str(root.parent / f"{root.name}-spool"))
    try:
        yield processes
    finally:
        processes.close()
        os.close(fd)


def sh(processes: Processes, text: str, *given: str, **options: Any) -> CommandOutcome:
    return processes.run(Command(["/bin/bash", "-c", text, "bash", *given], **options))


def python(processes: Processes, text: str, *given: str, **options: Any) -> CommandOutcome:
    return processes.run(Command([PYTHON, "-I", "-c", text, *given], **options))


def said(outcome: CommandOutcome) -> str:
    return (outcome.stdout.joined(b"[cut]") + outcome.stderr.joined(b"[cut]")).decode(errors="replace")


def await_word(fifo: Path) -> None:
    """Wait until a process writes to the FIFO."""
    with open(fifo, "rb") as reader:
        assert reader.read(1)


def running(marker: str) -> list[int]:
    """Return the processes with `marker` in their command line."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                command_line = Path(f"/proc/{name}/cmdline").read_bytes()
                if marker.encode() in command_line:
                    found.append(int(name))
    return found


def sleeping(marker: str) -> list[int]:
    """Return the processes whose command is `sleep MARKER`."""
    return running(f"sleep\0{marker}")


def gone(marker: str) -> bool:
    """Wait until no process is `sleep MARKER`."""
    return none_left(lambda: sleeping(marker))


def none_left(look: Callable[[], list[int]], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while look():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def begun(marker: str, count: int = 1) -> bool:
    """Wait until that many processes are `sleep MARKER`."""
    return none_left(lambda: [] if len(sleeping(marker)) >= count else [0])


def cancelled_when_begun(marker: str) -> threading.Event:
    """Return an event that is set as soon as a process is `sleep MARKER`."""
    event = threading.Event()

    def wait() -> None:
        begun(marker)
        event.set()

    threading.Thread(target=wait, daemon=True).start()
    return event


def open_handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def has_bubblewrap(root: Path) -> bool:
    """Tell whether the strict level works on this machine."""
    with workspace(root) as processes:
        return bool(find_bwrap.candidates(str(root))) and processes.sandbox.start().level == "strict"
