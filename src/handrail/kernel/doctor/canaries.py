"""What `handrail doctor` tries: a few things that the active level must refuse, and a few that it must allow.

Each is harmless where nothing confines it: it asks for what it must not get and does nothing with it.
"""

import os
import tempfile
from dataclasses import dataclass

from handrail.kernel.process.runner import Command, Processes
from handrail.model.faults import SandboxUnavailable


@dataclass(frozen=True, slots=True)
class Canary:
    name: str
    passed: bool
    detail: str = ""


# name: (shell text that succeeds when the sandbox fails, levels that promise to refuse it)
_REFUSED = {
    "writes outside the workspace are refused": (
        'probe="$1/probe"; (: > "$probe") 2>/dev/null && rm -f "$probe"',
        ("strict", "network", "reduced"),
    ),
    "the home directory is not there": (
        'test -e "$2/.ssh" || test -e "$2/.aws" || test -e "$3"',
        ("strict", "network"),
    ),
    "system settings cannot be changed": (
        "test -w /proc/sys/kernel/hostname && : >> /proc/sys/kernel/hostname",
        ("strict", "network"),
    ),
    "no process outside is seen": ("test -d /proc/$4/fd && kill -0 $4", ("strict", "network")),
    "the network is not there": ("grep -qv -e lo: -e Inter -e face /proc/net/dev", ("strict",)),
    "no capability is held": ("! grep -q 'CapEff:.0*$' /proc/self/status", ("strict", "network", "reduced")),
    "system calls are filtered": (
        "! grep -q 'Seccomp:.2' /proc/self/status",
        ("strict", "network", "reduced"),
    ),
}
_ALLOWED = {
    "the workspace can be written": 'f=$(mktemp ./.handrail-canary-XXXXXX) && rm "$f"',
    "temporary files work": 'f=$(mktemp) && rm "$f"',
    "system programs run": "ls / >/dev/null || ls /usr >/dev/null",
}


def check(processes: Processes) -> list[Canary]:
    """Run every canary that the active level makes a promise about."""
    try:
        level = processes.sandbox.start().level
    except SandboxUnavailable as fault:
        return [Canary("a sandbox can be started", passed=False, detail="; ".join(fault.why))]
    results = [Canary("a sandbox can be started", passed=True, detail=level)]
    home = os.path.expanduser("~")
    with tempfile.TemporaryDirectory(prefix="handrail-canary-") as outside:
        os.chmod(outside, 0o777)  # noqa: S103  only the sandbox must be in the way
        secret = os.path.join(outside, "secret")
        with open(secret, "w", encoding="utf-8"):
            pass
        given = [outside, home, secret, str(os.getpid())]
        for name, (text, levels) in _REFUSED.items():
            if level in levels:
                code = _exit_code(processes, text, given)
                results.append(Canary(name, passed=code not in (0, None)))
    for name, text in _ALLOWED.items():
        results.append(Canary(name, passed=_exit_code(processes, text, []) == 0))
    return results


def _exit_code(processes: Processes, text: str, given: list[str]) -> int | None:
    return processes.run(Command(["/bin/sh", "-c", text, "sh", *given], timeout_seconds=10)).exit_code
