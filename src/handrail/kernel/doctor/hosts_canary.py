"""Tries, for `handrail doctor`, whether commands reach a host that is named, and no other.

The host is a server of this process on loopback; the list of the trial names its address and port.
"""

import contextlib
import socket
import threading
from typing import NamedTuple

from handrail.kernel.process.runner import Command, Processes
from handrail.kernel.process.shells import BASH
from handrail.model.faults import SandboxUnavailable

_GREETING = b"handrail"
_SECONDS = 10.0
_REACHED, _NOT_NAMED = 0, 3
_ASK = """
exec 3<>"/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}" || exit 9
printf 'CONNECT %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' "$1" "$1" >&3
read -r _ status _ <&3
test "$status" = 200 || exit 3
read -r _ <&3
read -r -N 8 greeting <&3
test "$greeting" = handrail
"""


class HostsTrial(NamedTuple):
    """Says whether commands reach named hosts, and only those."""

    works: bool
    why_not: str = ""


def try_hosts(processes: Processes) -> HostsTrial:
    """Start a second sandbox, and connect from it to a server that is named and to a name that is not."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(_SECONDS)
        named = f"127.0.0.1:{server.getsockname()[1]}"
        threading.Thread(target=_greet, args=(server,), daemon=True).start()
        level = processes.sandbox.settings._replace(level="hosts", hosts=(named,), allow_reduced=False)
        trial = processes.beside(level)
        try:
            reached, refused = (_exit_code(trial, site) for site in (named, "handrail.invalid:443"))
        except SandboxUnavailable as fault:
            return HostsTrial(works=False, why_not="; ".join(fault.why))
        finally:
            trial.close()
    if reached != _REACHED:
        return HostsTrial(works=False, why_not="a host that is named was not reached")
    return HostsTrial(
        refused == _NOT_NAMED, "" if refused == _NOT_NAMED else "a host that is not named was not refused"
    )


def _greet(server: socket.socket) -> None:
    """Greet one client; the body of a thread."""
    with contextlib.suppress(OSError), server.accept()[0] as client:  # the trial has ended without a client
        client.sendall(_GREETING)


def _exit_code(processes: Processes, site: str) -> int | None:
    return processes.run(Command([BASH, "-c", _ASK, "bash", site], timeout_seconds=_SECONDS)).exit_code
