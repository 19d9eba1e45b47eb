"""Runs a function as a user without privileges, also if root runs the tests."""

import ctypes
import os
import pkgutil
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import handrail
from support.forked_processes import processes, start

_NOBODY = 65534
_DROP_FROM_BOUNDING_SET, _CAPABILITIES_3 = 24, 0x20080522
_READ_EVERYTHING = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
_LIBRARIES = ("regex", "tree_sitter", "tree_sitter_bash")
_NOT_LOADED = ("handrail.__main__", "handrail.agent", "handrail.chat", "handrail.fleet", "handrail.surfaces")


def as_ordinary_user(function: Callable[[str], Any], strangers_file: str = "") -> Any:
    """Call a function with a new workspace root. `strangers_file` is a file in it of another user, writable for all."""
    top = tempfile.mkdtemp()
    try:
        os.chmod(top, 0o755)
        for name in ("workspace", "state", "config"):
            os.mkdir(f"{top}/{name}")
            if os.geteuid() == 0:
                os.chown(f"{top}/{name}", _NOBODY, _NOBODY)
        if strangers_file:
            with open(f"{top}/workspace/{strangers_file}", "w") as file:
                file.write("old\n")
            os.chmod(f"{top}/workspace/{strangers_file}", 0o666)
        return _in_another_process(function, top)
    finally:
        subprocess.run(["chmod", "-R", "u+rwx", top], check=True)
        shutil.rmtree(top)


def bound_by_permissions(function: Callable[[], Any]) -> Any:
    """Call a function in a thread without root's right to ignore file permissions."""
    with ThreadPoolExecutor(1, initializer=_give_up_capabilities) as pool:
        return pool.submit(function).result()


def _give_up_capabilities() -> None:
    """Drop the capabilities of this thread and, by the bounding set, of the programs that it starts."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = struct.pack("=Ii", _CAPABILITIES_3, 0)
    data = ctypes.create_string_buffer(24)
    done = [libc.prctl(_DROP_FROM_BOUNDING_SET, each, 0, 0, 0) for each in _READ_EVERYTHING]
    done.append(libc.capget(header, data))
    lost = sum(1 << each for each in _READ_EVERYTHING)
    effective, permitted, *rest = struct.unpack("=6I", data.raw)
    done.append(libc.capset(header, struct.pack("=6I", effective & ~lost, permitted & ~lost, *rest)))
    if any(done):
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")


def _in_another_process(function: Callable[[str], Any], top: str) -> Any:
    receive, send = processes.Pipe(duplex=False)
    process = start(_run, function, top, send)
    send.close()
    try:
        answer = receive.recv()
    except EOFError:
        raise AssertionError("the ordinary user's process failed; its traceback is above") from None
    finally:
        process.join()
    return answer


def _run(function: Callable[[str], Any], top: str, send: Any) -> None:
    own = [each.name for each in pkgutil.walk_packages(handrail.__path__, "handrail.")]
    for name in (*_LIBRARIES, *(name for name in own if not name.startswith(_NOT_LOADED))):
        import_module(name)  # later this process may not read these files
    os.environ.update(HANDRAIL_STATE_DIR=f"{top}/state", HANDRAIL_CONFIG_DIR=f"{top}/config")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    send.send(function(f"{top}/workspace"))
