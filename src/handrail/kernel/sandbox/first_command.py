"""The end of a command that started along with its sandbox, seen from outside before the supervisor is up.

Every orphan in a sandbox becomes a child of its first process. So if that has no child but the ended command,
which nobody has collected yet, then the command is over, its status is known and nothing of it lives.
"""

import json
import os

from handrail.kernel.sandbox.supervisor_link import Link

# Fields of /proc/PID/stat, counted from the state.
STATE, START_OF_CODE, EXIT_CODE = 0, 23, 49


class FirstProcess:
    def __init__(self, info: int, link: Link) -> None:
        self._info, self._link = info, link
        self._init = self._command = 0
        self._handle: int | None = None
        self.inner_pid: int | None = None

    def watch(self) -> int | None:
        """A handle that becomes readable when the command ends; None if it cannot be told from here (yet)."""
        if not self._link.forked():
            return None
        try:
            self._init = int(json.loads(os.read(self._info, 4096))["child-pid"])
            children = self._children()
            if len(children) != 1:
                return None  # it has ended and the supervisor took it, or it left something
            self._command = children[0]
            self._handle = os.pidfd_open(self._command)
        except (OSError, ValueError, KeyError):  # the supervisor was faster, or the kernel does not say
            return None
        return self._handle

    def status(self) -> int | None:
        """The wait status, if the command ended by itself and left nothing; else the supervisor will tell."""
        if self._link.ready:
            return None
        try:
            init, ended = self._fields(self._init), self._fields(self._command)
            if self._children() != [self._command] or ended[STATE] != b"Z" or int(init[START_OF_CODE]) <= 1:
                return None
            with open(f"/proc/{self._command}/status", "rb") as file:
                lines = [line for line in file if line.startswith(b"NSpid:")]
            self.inner_pid = int(lines[0].split()[-1])
            return int(ended[EXIT_CODE])
        except (OSError, IndexError):
            return None

    def fileno(self) -> int:
        """Readable when it may be time to `watch`."""
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
