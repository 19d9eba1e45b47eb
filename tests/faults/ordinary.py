"""Run a function as a user without privileges, whoever runs the tests."""

import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

from processes import processes, start

_NOBODY = 65534


def as_ordinary_user(function: Callable[[str], Any]) -> Any:
    """Call it with a workspace root of its own, in which there is one file of somebody else, writable for all."""
    top = tempfile.mkdtemp()
    try:
        os.chmod(top, 0o755)
        for name in ("workspace", "state", "config"):
            os.mkdir(f"{top}/{name}")
            if os.geteuid() == 0:
                os.chown(f"{top}/{name}", _NOBODY, _NOBODY)
        with open(f"{top}/workspace/strangers.txt", "w") as file:
            file.write("old\n")
        os.chmod(f"{top}/workspace/strangers.txt", 0o666)
        return _in_another_process(function, top)
    finally:
        shutil.rmtree(top)


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
    import handrail.dialects.file
    import handrail.workspace  # noqa: F401  all is loaded before the right to read it may be gone

    os.environ.update(HANDRAIL_STATE_DIR=f"{top}/state", HANDRAIL_CONFIG_DIR=f"{top}/config")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    send.send(function(f"{top}/workspace"))
