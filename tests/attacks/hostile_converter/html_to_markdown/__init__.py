"""Replaces the HTML converter by one that a page has taken over.

The page names the attack to try, and the converted text reports the outcome of the attack.

The worker imports this module instead of the real converter. This module imports everything before the worker reads a
page, because an attack by native code needs no import either.
"""

import contextlib
import ctypes
import errno
import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

libc = ctypes.CDLL(None, use_errno=True)
# Calls that a filter of open() and socket() would miss.
OTHERS = {"openat2": 437, "io_uring_setup": 425, "memfd_create": 319, "open_by_handle_at": 304, "process_vm_readv": 310}


def options(**_: Any) -> None:
    return None


ConversionOptions = PreprocessingOptions = options


def convert(html: str, _: object) -> SimpleNamespace:
    if not html.startswith("{"):
        return SimpleNamespace(content=html)
    order = json.loads(html)
    if order["attempt"] == "everything":
        return SimpleNamespace(content=json.dumps({name: outcome(act) for name, act in attacks(order).items()}))
    return SimpleNamespace(content=ENDLESS[order["attempt"]]())


def outcome(act: Callable[[], object]) -> str:
    """Return `ok: …` if the attack succeeded, else the name of the error."""
    try:
        return f"ok: {act()!r}"[:200]
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    except Exception as error:  # every error means that the attack failed
        return type(error).__name__


def attacks(order: dict[str, Any]) -> dict[str, Callable[[], object]]:
    return {
        "read a file": lambda: open("/etc/passwd").read(),
        "read its own environment": lambda: open("/proc/self/environ").read(),
        "list a directory": lambda: os.listdir("/"),
        "look at a file": lambda: os.stat("/etc/passwd"),
        "write a file": lambda: open(order["file"], "w").write("x"),
        "make a directory": lambda: os.mkdir(order["file"]),
        "remove a file": lambda: os.unlink(order["precious"]),
        "rename a file": lambda: os.rename(order["precious"], order["file"]),
        "change a mode": lambda: os.chmod(order["precious"], 0o777),
        "make a link": lambda: os.symlink("/", order["file"]),
        "grow the page": lambda: os.pwrite(0, b"x", 1 << 20),
        "connect": lambda: socket.socket().connect(("127.0.0.1", order["port"])),
        "send a datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)),
        "make a UNIX socket": lambda: socket.socket(socket.AF_UNIX),
        "make a pair of sockets": socket.socketpair,
        "make a pipe": os.pipe,
        "fork": fork,
        "run a program": lambda: subprocess.run(["/bin/true"], check=True),
        "become a program": lambda: os.execv("/bin/true", ["true"]),
        "signal its parent": lambda: os.kill(os.getppid(), 0),
        "signal itself": lambda: os.kill(os.getpid(), 0),
        "raise a limit": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (9, 9)),
        "live longer": lambda: signal.alarm(0) and signal.signal(signal.SIGALRM, signal.SIG_IGN),
        "take much memory": lambda: len(bytearray(4 << 30)),
        "use another handle": other_handles,
        **{f"call {name}": partial(called, number) for name, number in OTHERS.items()},
    }


def fork() -> str:
    if not os.fork():
        os._exit(0)
    return "forked"


def called(number: int) -> int:
    answer = int(libc.syscall(number, 0, 0, 0, 0, 0, 0))
    if answer < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return answer


def other_handles() -> list[int]:
    """Return the open handles above the three standard streams; a read of zero bytes finds each of them."""
    found = []
    for fd in range(3, 1024):
        with contextlib.suppress(OSError):
            os.read(fd, 0)
            found.append(fd)
    if not found:
        raise OSError(errno.EBADF, "none")
    return found


def secrets() -> str:
    return json.dumps(dict(os.environ))


def run_for_ever() -> str:
    while True:
        pass


def sleep_for_ever() -> str:
    select.select([], [], [])
    while True:
        libc.syscall(202, ctypes.byref(ctypes.c_int(0)), 0, 0, None)  # FUTEX_WAIT


def write_for_ever() -> str:
    while True:
        sys.stdout.buffer.write(b"x" * 65536)


ENDLESS = {"run": run_for_ever, "sleep": sleep_for_ever, "write": write_for_ever, "secrets": secrets}
