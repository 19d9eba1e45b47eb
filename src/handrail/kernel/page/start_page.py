"""Starts the page's server as a process of its own, which outlives the command that wants the page."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable

_START_SECONDS = 20.0


def start_in_background() -> str:
    """Start a server that runs on after this process, and return its address. Raises OSError."""
    command = [sys.executable, "-P", "-m", "handrail", "page", "--background"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_START_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise OSError(110, "the page's server does not start") from None
    address = done.stdout.decode().strip()
    if done.returncode or not address:
        why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise OSError(5, why or "the page's server does not start")
    return address


def run_detached(serve: Callable[[Callable[[str], None]], None]) -> None:
    """Run `serve` in a child that leaves the terminal and the process group; return when it has printed its address.

    Prints the address. `serve` gets the function that tells it. The exit code is 1 if it ends without.
    """
    told, tell = os.pipe2(os.O_CLOEXEC)
    if os.fork():
        os.close(tell)
        with open(told, encoding="utf-8") as pipe:
            address = pipe.read()
        sys.stdout.write(address)
        sys.stdout.flush()
        if not address:
            raise SystemExit(1)
        return
    os.close(told)
    os.setsid()
    os.chdir("/")
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    code = 1
    try:
        serve(lambda address: _tell(tell, address))
        code = 0
    except Exception as error:  # noqa: BLE001  the process that waits for the address shows it
        os.write(2, f"{error}\n".encode())
    finally:
        os._exit(code)


def _tell(pipe: int, address: str) -> None:
    """Hand the address on, and leave the streams of the command that wanted it."""
    os.write(pipe, f"{address}\n".encode())
    os.close(pipe)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    os.close(nowhere)
