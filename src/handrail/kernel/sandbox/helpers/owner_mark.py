"""Marks each bubblewrap with the state directory of its owner, and ends those whose owner was killed.

Bubblewrap dies with its owner, but its child, the first process of the sandbox, ignores that until it has started: it
waits for bubblewrap to set up its user. If bubblewrap is killed just then, the child waits for ever.
"""

import os
import select
import signal

from handrail.kernel.host.state_dir import state_home

_VARIABLE = "handrail_owner"
_TRIES = 50
_PAUSE_MILLISECONDS = 100
_MOST_BYTES = 65536


def owner_mark() -> list[str]:
    """Return options of bubblewrap that change nothing, and that show in the list of processes whose sandbox it is.

    Its child has the same command line until it starts a program. Other than variables and handles, a process can read
    it of every user.
    """
    return ["--setenv", _VARIABLE, state_home(), "--unsetenv", _VARIABLE]


def end_sandboxes(directory: str) -> None:
    """End every bubblewrap with a state directory below this one, and its children. Their owners have ended."""
    mark = b"".join(os.fsencode(word) + b"\0" for word in owner_mark()[:2]) + os.fsencode(directory) + b"/"
    for _ in range(_TRIES):  # a bubblewrap that was about to die may have made a child meanwhile
        killed = [handle for name in os.listdir("/proc") if name.isdigit() for handle in _kill(int(name), mark)]
        for handle in killed:
            poller = select.poll()
            poller.register(handle, select.POLLIN)
            poller.poll(_PAUSE_MILLISECONDS)
            os.close(handle)
        if not killed:
            return


def _kill(process: int, mark: bytes) -> list[int]:
    """Kill a process with this mark and return a handle of it, which the caller closes; leave any other alone."""
    if mark not in _command_line(process):
        return []
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return []
    try:
        if mark in _command_line(process):  # otherwise another process has got its number
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return [handle]
    except (ProcessLookupError, PermissionError):  # it has ended; or another user imitates the mark
        pass
    os.close(handle)
    return []


def _command_line(process: int) -> bytes:
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return file.read(_MOST_BYTES)
    except OSError:  # it has ended
        return b""
