"""Tries, for `handrail doctor`, a few actions that the active sandbox level must refuse and a few that it must allow.

Every action is harmless where no sandbox confines it: it asks for something forbidden and does nothing with it.
"""

import os
import tempfile
from typing import NamedTuple

from handrail.kernel.process.runner import Command, Processes
from handrail.model.faults import SandboxUnavailable


class Canary(NamedTuple):
    """Holds the result of one action: `passed` says whether the sandbox behaved as its level promises."""

    name: str
    passed: bool
    detail: str = ""
    """Of the first canary, "start": the level, or why no sandbox could be started."""


# name: (shell text that succeeds if the sandbox fails, levels that promise to refuse it)
_REFUSED = {
    "write_outside": (
        'probe="$1/probe"; (: > "$probe") 2>/dev/null && rm -f "$probe"',
        ("strict", "hosts", "network", "reduced"),
    ),
    "read_home": (
        'test -e "$2/.ssh" || test -e "$2/.aws" || test -e "$3"',
        ("strict", "hosts", "network"),
    ),
    "change_system_settings": (
        "test -w /proc/sys/kernel/hostname && : >> /proc/sys/kernel/hostname",
        ("strict", "hosts", "network"),
    ),
    "see_processes_outside": ("test -d /proc/$4/fd && kill -0 $4", ("strict", "hosts", "network")),
    "use_network": ("grep -qv -e lo: -e Inter -e face /proc/net/dev", ("strict", "hosts")),
    "hold_capabilities": ("! grep -q 'CapEff:.0*$' /proc/self/status", ("strict", "hosts", "network", "reduced")),
    "call_unfiltered": (
        "! grep -q 'Seccomp:.2' /proc/self/status",
        ("strict", "hosts", "network", "reduced"),
    ),
}
_ALLOWED = {
    "write_workspace": 'f=$(mktemp ./.handrail-canary-XXXXXX) && rm "$f"',
    "make_temporary_files": 'f=$(mktemp) && rm "$f"',
    "run_system_programs": "ls / >/dev/null || ls /usr >/dev/null",
}


def check(processes: Processes) -> list[Canary]:
    """Start the sandbox, and run every canary about which the active level makes a promise."""
    try:
        level = processes.sandbox.start().level
    except SandboxUnavailable as fault:
        return [Canary("start", passed=False, detail="; ".join(fault.why))]
    results = [Canary("start", passed=True, detail=level)]
    home = os.path.expanduser("~")
    with tempfile.TemporaryDirectory(prefix="handrail-canary-") as outside:
        os.chmod(outside, 0o777)  # noqa: S103  only the sandbox must prevent the write
        secret = os.path.join(outside, "secret")
        with open(secret, "w", encoding="utf-8"):
            pass
        arguments = [outside, home, secret, str(os.getpid())]
        for name, (text, levels) in _REFUSED.items():
            if level in levels:
                code = _exit_code(processes, text, arguments)
                results.append(Canary(name, passed=code not in (0, None)))
    for name, text in _ALLOWED.items():
        results.append(Canary(name, passed=_exit_code(processes, text, []) == 0))
    return results


def _exit_code(processes: Processes, text: str, arguments: list[str]) -> int | None:
    return processes.run(Command(["/bin/sh", "-c", text, "sh", *arguments], timeout_seconds=10)).exit_code
