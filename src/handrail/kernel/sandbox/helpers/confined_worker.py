"""Runs a program that only computes: hostile input in, a result out; its failure does no harm.

The program is a Python file. It loads the native code that it needs, calls `give_up_rights`, and only then reads the
input, which may attack that code.
"""

import contextlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from handrail.kernel.deadline import Deadline
from handrail.kernel.sandbox.helpers.landlock_exec import filter_calls, give_up_files
from handrail.kernel.sandbox.seccomp import assemble_for_computing

_FINDS_PYTHON = ("HOME", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE", "SYSTEMROOT")
"""Variables that the worker's interpreter may need to find its modules; every other variable may be a secret."""


class WorkerFailed(Exception):  # noqa: N818  the caller turns it into a fault
    """Says that the worker ended with an error."""


def compute(script: str, arguments: Sequence[object], data: bytes, deadline: Deadline) -> bytes:
    """Return what a script writes when it reads `data`; its last argument is the filter of system calls, in hex.

    Raises WorkerFailed, Cancelled and DeadlineExceeded.
    """
    refused = assemble_for_computing(platform.machine()).hex()
    # -P: import no module from the directory of the script.
    argv = [sys.executable, "-P", os.path.abspath(script), *map(str, arguments), refused]
    environment = {name: os.environ[name] for name in _FINDS_PYTHON if name in os.environ}
    # A file, not a pipe: communicate() loses unsent input when it times out and is called again.
    with tempfile.TemporaryFile() as given:
        given.write(data)
        given.seek(0)
        out, errors = subprocess.PIPE, subprocess.DEVNULL
        with subprocess.Popen(argv, env=environment, stdin=given, stdout=out, stderr=errors) as worker:
            try:
                output = _output(worker, deadline)
            finally:
                worker.kill()
    if worker.returncode:
        raise WorkerFailed
    return output


def _output(worker: subprocess.Popen[bytes], deadline: Deadline) -> bytes:
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):  # check the deadline again
            return worker.communicate(timeout=deadline.wait_seconds())[0]


# ── inside the worker ──


def bound(memory: int, seconds: int) -> None:
    """Bound the memory and the time of this process. Call it before native code allocates memory."""
    _limit(AS=memory, CPU=seconds, CORE=0)
    if hasattr(signal, "alarm"):  # ends this process even if the process that started it is gone
        signal.alarm(seconds)


def give_up_rights(refused: str) -> None:
    """Give up everything but memory and the open streams."""
    give_up_files()
    _limit(FSIZE=0, NOFILE=0, NPROC=0)
    filter_calls(bytes.fromhex(refused))


def _limit(**most: int) -> None:
    """Lower the resource limits of this process, where the system has them. Never raise one."""
    try:
        import resource  # noqa: PLC0415  POSIX only
    except ImportError:
        return  # the process that started this one enforces a deadline on every system
    for name, wanted in most.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            least = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(number, (least, least))
