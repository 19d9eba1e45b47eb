"""A process that is spoken to in JSON lines, with a clock on every answer."""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any


class TooSlow(Exception):  # noqa: N818  a result, not a mistake
    pass


class Refused(Exception):  # noqa: N818  the same
    """The contender answered with an error."""


class Lines:
    def __init__(self, argv: list[str], *, cwd: str, env: dict[str, str]) -> None:
        self._buffer, self._lines = b"", list[bytes]()
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=os.environ | env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def next(self, deadline: float) -> dict[str, Any]:
        """The next line that is an object; what else a server prints is passed over."""
        while True:
            with contextlib.suppress(ValueError):
                message = json.loads(self.line(deadline))
                if isinstance(message, dict):
                    return message

    def line(self, deadline: float) -> bytes:
        while not self._lines:
            self._fill(deadline)
        return self._lines.pop(0)

    def _fill(self, deadline: float) -> None:
        assert self.process.stdout
        chunks, fd = [self._buffer], self.process.stdout.fileno()
        while b"\n" not in chunks[-1]:
            if not select.select([fd], [], [], max(deadline - time.perf_counter(), 0))[0]:
                raise TooSlow
            chunk = os.read(fd, 1 << 20)
            if not chunk:
                raise Refused("the process ended")
            chunks.append(chunk)
        *self._lines, self._buffer = b"".join(chunks).split(b"\n")

    def close(self) -> None:
        """Ends it and whatever it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                if stream:
                    stream.close()


def memory(pid: int, field: str) -> float:
    """`VmRSS` or `VmHWM` of a process and its living descendants together, in MB."""
    total = 0.0
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                total += int(line.split()[1]) / 1024
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += sum(memory(int(child), field) for child in (task / "children").read_text().split())
    return total
