"""Chooses how commands are confined: the strongest way that works on this machine.

The ways, strongest first: every usable bubblewrap, at the level that the user wants; then Landlock, at the level
`reduced`, if the settings allow that. The level `off` has a single way, which confines nothing.

A way can fail for two reasons. Either the machine does not support it: then the next way is tried. Or something in this
workspace makes it fail: then no command runs, because the agent that put it there must not get a weaker sandbox. The
same bubblewrap, tried on an empty directory (`probe.py`), tells the two apart.
"""

import os

from handrail.kernel.sandbox import find_bwrap, probe
from handrail.kernel.sandbox.levels import (
    HOSTS_CANNOT_STOP,
    NETWORK_CANNOT_STOP,
    REDUCED_CANNOT_STOP,
    Confinement,
    Level,
)
from handrail.kernel.sandbox.view.workspace_view import WorkspaceView
from handrail.model.faults import SandboxUnavailable


class ConfinementChoice:
    """Holds the ways that were not given up yet; the first one is in use."""

    def __init__(self, view: WorkspaceView) -> None:
        self._view = view
        self._why_not: list[str] = []
        self._ways = self._possible_ways()
        self._works: bool | None = None
        """True if bubblewrap works on this machine; None before a question needed to know."""

    def _possible_ways(self) -> list[Confinement]:
        settings = self._view.settings
        if settings.level == "off":
            return [Confinement("off", "nothing", ("everything",))]
        cannot = {"network": NETWORK_CANNOT_STOP, "hosts": HOSTS_CANNOT_STOP}.get(settings.level, ())
        root = self._view.root if settings.image is None else os.devnull  # an image holds no program of the host
        ways = [Confinement(settings.level, path, cannot) for path in find_bwrap.candidates(root)]
        if not ways:
            self._why_not.append("bubblewrap: none outside the workspace")
        if not settings.allow_reduced or settings.image is not None:
            return ways
        shared = NETWORK_CANNOT_STOP if settings.level == "network" else ()
        return [*ways, Confinement("reduced", "landlock", (*REDUCED_CANNOT_STOP, *shared), tuple(self._why_not))]

    @property
    def current(self) -> Confinement:
        """The way in use. Raises SandboxUnavailable if no way is left."""
        if not self._ways:
            raise SandboxUnavailable(self._view.settings.level, self._why_not)
        return self._ways[0]

    @property
    def uses_bubblewrap(self) -> bool:
        """True if a way is left and bubblewrap is the next to be used."""
        return bool(self._ways) and self._ways[0].by_bubblewrap

    def settle(self, *, running: bool) -> Level:
        """Return the level at which the next command runs; afterwards, never use a weaker one.

        `running` says that the way in use works now. Otherwise the first call tries whether bubblewrap works on this
        machine, if that decides the level.
        """
        if not self._ways:
            return self._view.settings.level
        stronger = [way for way in self._ways if way.level != "reduced"]
        if not stronger or len(stronger) == len(self._ways):
            return self._ways[0].level
        if self._works is None:
            self._works = running or any(probe.works(self._view, way.by) for way in stronger)
        if not (running or self._works):
            return "reduced"
        self._ways = stronger
        return stronger[0].level

    def set_unguarded(self, names: list[str]) -> None:
        """Record the guarded names that the way in use cannot guard."""
        self._ways[0] = self._ways[0]._replace(unguarded=tuple(names))

    def give_up_current(self, why: str) -> None:
        """Continue with the next way. Raises SandboxUnavailable if the way in use fails in this workspace only."""
        failed = self._ways[0]
        reason = f"{failed.by}: {why or 'ended at once'}"
        if failed.by_bubblewrap and probe.works(self._view, failed.by):
            raise SandboxUnavailable(self._view.settings.level, [reason])
        self._why_not.append(reason)
        del self._ways[0]
        if self._ways:
            self._ways[0] = self._ways[0]._replace(why=tuple(self._why_not))
