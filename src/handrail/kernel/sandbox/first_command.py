"""Starts the first command of a session along with its sandbox, and sees its end before the supervisor runs.

The supervisor needs an interpreter, whose start takes longer than many commands. So the first command does not wait for
it. The sequence:

1. `Sandbox.begin` finds no running sandbox. If bubblewrap is to be used and `can_start_along` agrees, it prepares a
   launch whose first process is a shell with `script()`, not the supervisor. Every user of the machine can see the
   arguments of a process, so the text of the command is passed in a variable.
2. The shell forks. The child sends `forked` on the control socket, lowers its limits, waits until the first process is
   no longer the shell (a shell would collect its exit status), and becomes the command. The shell itself becomes the
   interpreter, which receives the supervisor's code through the control socket.
3. `Sandbox._start_along` sends the request with `adopt`. Once the supervisor runs, it adopts the child: from then on
   the first command is like every other command (`Supervisor.adopt`).
4. A short command ends before that. Bubblewrap writes the number of the first process to a pipe (`info`), and every
   orphan in a sandbox becomes a child of the first process. So if the first process has no child but the ended command,
   and has not collected it yet, then the command is over and left nothing running. `FirstProcess` sees that from
   outside, and `kernel/process/runner.py` reports the exit status without waiting for the supervisor.
5. If bubblewrap cannot start, the channel ends without a message. `Sandbox.start_failed` then gives this way of
   confining up, and the caller begins again.
"""

import json
import os
import shlex
from functools import cache
from typing import Any

from handrail.kernel.sandbox.supervisor_link import Link

SHELL, SETSID, ENV = "/bin/sh", "/usr/bin/setsid", "/usr/bin/env"
VARIABLE = "first_command"
"""The variable that holds the text of the command."""
_LONGEST = 1 << 16
"""Longer commands wait for the supervisor, which reports what is wrong with them."""

# A shell gives a background command an empty input, so handle 0 (the command's standard error) is kept as handle 3.
# A shell also lets a background command ignore interrupts; `env --default-signal` undoes that.
_SCRIPT = """eval "set -- ${variable}"; unset {variable}
exec 3>&0 </dev/null
{{
echo forked >&2
ulimit -d {memory_kib}; ulimit -f {file_blocks}; ulimit -n {open_files}
while read name </proc/1/comm; [ "$name" = sh ]; do :; done
exec {env} --default-signal {setsid} "$@" 2>&3 3>&-
}} &
exec {supervisor} $! >&2 3>&-"""

# Fields of /proc/PID/stat, counted from the state.
_STATE, _START_OF_CODE, _EXIT_CODE = 0, 23, 49


def can_start_along(request: dict[str, Any], streams: int, root: str) -> bool:
    """Return True for a plain command that a shell can start: a system program, in the root, with no variables."""
    program = os.fsdecode(request["argv"][0])
    return (
        streams == 2
        and request["cwd"] == os.fsencode(root)
        and not request["additions"]
        and program.startswith(("/bin/", "/usr/bin/"))
        and len(os.fsencode(as_shell_text(request["argv"]))) < _LONGEST
        and all(os.access(name, os.X_OK) for name in (program, SHELL, SETSID))
        and _can_reset_signals()
    )


def as_shell_text(argv: list[bytes]) -> str:
    """Quote a command so that a shell splits it into the same words."""
    return shlex.join(map(os.fsdecode, argv))


def script(supervisor: list[str], *, memory_kib: int, file_blocks: int, open_files: int) -> list[str]:
    """Return the first process: a shell that starts the command in VARIABLE and becomes the supervisor."""
    text = _SCRIPT.format(
        variable=VARIABLE,
        env=ENV,
        setsid=SETSID,
        supervisor=shlex.join(supervisor),
        memory_kib=memory_kib,
        file_blocks=file_blocks,
        open_files=open_files,
    )
    return [SHELL, "-c", text]


@cache
def _can_reset_signals() -> bool:
    """Return True if `env` has --default-signal (coreutils 8.31). To search its binary is faster than to run it."""
    try:
        with open(ENV, "rb") as file:
            return b"default-signal" in file.read()
    except OSError:
        return False


class FirstProcess:
    """Sees, from outside the sandbox, the end of the command that started along."""

    def __init__(self, info: int, link: Link) -> None:
        self._info, self._link = info, link
        self._init = self._command = 0
        self._handle: int | None = None
        self.inner_pid: int | None = None

    def watch(self) -> int | None:
        """Return a handle that becomes readable when the command ends; None if that cannot be seen (yet)."""
        if not self._link.forked():
            return None
        try:
            self._init = int(json.loads(os.read(self._info, 4096))["child-pid"])
            children = self._children()
            if len(children) != 1:
                return None  # the supervisor collected the command, or the command left children
            self._command = children[0]
            self._handle = os.pidfd_open(self._command)
        except (OSError, ValueError, KeyError):  # the supervisor was faster, or the kernel does not list children
            return None
        return self._handle

    def status(self) -> int | None:
        """Return the wait status if the command ended by itself and left nothing; else the supervisor reports it."""
        if self._link.ready:
            return None
        try:
            init, command = self._fields(self._init), self._fields(self._command)
            # Without the right to inspect the process, the kernel shows 0 or 1 as its code's address, and no exit code.
            readable = int(init[_START_OF_CODE]) > 1
            if self._children() != [self._command] or command[_STATE] != b"Z" or not readable:
                return None
            with open(f"/proc/{self._command}/status", "rb") as file:
                lines = [line for line in file if line.startswith(b"NSpid:")]
            self.inner_pid = int(lines[0].split()[-1])
            return int(command[_EXIT_CODE])
        except (OSError, IndexError):
            return None

    def fileno(self) -> int:
        """Return the control socket, which is readable when `watch` should be called."""
        return self._link.control

    def close(self) -> None:
        os.close(self._info)
        if self._handle is not None:
            os.close(self._handle)

    def _children(self) -> list[int]:
        with open(f"/proc/{self._init}/task/{self._init}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]

    @staticmethod
    def _fields(pid: int) -> list[bytes]:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2].split()
