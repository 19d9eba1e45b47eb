"""Examines what this machine can enforce and which programs it has. Returns facts; the surface words them."""

import os
import platform
from typing import NamedTuple

from handrail.kernel.doctor.canaries import Canary, check
from handrail.kernel.doctor.hosts_canary import HostsTrial, try_hosts
from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.host.state_dir import config_home, state_home
from handrail.kernel.layers.overlay import refusal
from handrail.kernel.process.runner import Processes
from handrail.kernel.process.shells import BASH, users_shell
from handrail.kernel.sandbox import find_bwrap, landlock_rules
from handrail.kernel.sandbox.helpers.landlock_exec import abi, can_filter
from handrail.kernel.sandbox.levels import Confinement, Level
from handrail.kernel.search.rg_process import FoundProgram, find_program, lies_in


class ProgramFacts(NamedTuple):
    """Says whether a program can be run."""

    path: str
    executable: bool


class DirectoryFacts(NamedTuple):
    """Says whether one of Handrail's own directories can be written."""

    path: str
    writable: bool


class MachineFacts(NamedTuple):
    """Holds what this machine offers to a workspace."""

    system: str
    release: str
    python: str
    openat2: bool
    landlock_version: int
    """0 if the kernel has no Landlock."""
    landlock_needed: int
    """The lowest version of Landlock that the level `reduced` needs."""
    can_filter_calls: bool
    """True if a system call filter can confine the HTML converter, which reads hostile pages."""
    bubblewraps: dict[str, find_bwrap.BwrapProblem]
    """Every bubblewrap that was found, best first, with the reason why it is not used; "" for a usable one."""
    ripgrep: FoundProgram
    ripgrep_in_workspace: bool
    no_layers: str
    """Why there are no layers; empty if there are."""
    """True if ripgrep is not run because an agent could have put it there."""
    shell: ProgramFacts
    bash: ProgramFacts
    state: DirectoryFacts
    configuration: DirectoryFacts


class SandboxFacts(NamedTuple):
    """Holds what happened when the sandbox was started and tried."""

    wanted: Level
    confinement: Confinement | None
    """None if no sandbox could be started."""
    why_not: str
    """Why no sandbox could be started."""
    reduced_possible: bool
    """True if no sandbox was started, but the level `reduced` could be, if the settings allowed it."""
    canaries: list[Canary]
    hosts: HostsTrial | None
    """Whether commands reach hosts by name; None at levels that do not offer that."""


def examine(root: str) -> MachineFacts:
    """Examine the machine for the workspace at `root`."""
    boundary = FsBoundary(root)
    openat2 = boundary.resolver == "openat2"
    boundary.close()
    ripgrep = find_program()
    return MachineFacts(
        system=platform.system(),
        release=platform.release(),
        python=platform.python_version(),
        openat2=openat2,
        landlock_version=abi(),
        landlock_needed=landlock_rules.LOWEST_ABI,
        can_filter_calls=can_filter(),
        bubblewraps=find_bwrap.examined(root),
        ripgrep=ripgrep,
        no_layers=refusal(),
        ripgrep_in_workspace=ripgrep.path is not None and lies_in(os.path.realpath(root), ripgrep.path),
        shell=_program(users_shell()),
        bash=_program(BASH),
        state=DirectoryFacts(state_home(), _can_write(state_home())),
        configuration=DirectoryFacts(config_home(), _can_write(config_home())),
    )


def try_sandbox(processes: Processes) -> SandboxFacts:
    """Start the sandbox and run its canaries."""
    first, *canaries = check(processes)
    settings, confinement = processes.sandbox.settings, processes.sandbox.confinement
    reduced_possible = confinement is None and abi() >= landlock_rules.LOWEST_ABI and not settings.allow_reduced
    why_not = first.detail if confinement is None else ""
    offered = confinement is not None and confinement.by_bubblewrap and confinement.level != "network"
    hosts = try_hosts(processes) if offered else None
    return SandboxFacts(settings.level, confinement, why_not, reduced_possible, canaries, hosts)


def _program(path: str) -> ProgramFacts:
    return ProgramFacts(path, os.access(path, os.X_OK))


def _can_write(home: str) -> bool:
    """Return True if the directory can be written, or made."""
    while not os.path.exists(home):
        home = os.path.dirname(home)
    return os.access(home, os.W_OK)
