"""Runs thousands of workspaces in hosts on this machine or on a cluster: `with Fleet("local") as fleet: …`."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail.fleet.episode import EpisodeWorkspace
    from handrail.fleet.episode_runs import Done
    from handrail.fleet.fleet import Fleet
    from handrail.fleet.fleet_errors import DivergedError, EpisodeError, FleetError, HostDiedError
    from handrail.fleet.fleet_workspace import FleetSnapshot, FleetWorkspace

__all__ = [
    "DivergedError",
    "Done",
    "EpisodeError",
    "EpisodeWorkspace",
    "Fleet",
    "FleetError",
    "FleetSnapshot",
    "FleetWorkspace",
    "HostDiedError",
]

_HOMES = {
    "DivergedError": "fleet_errors",
    "Done": "mapping",
    "EpisodeError": "fleet_errors",
    "EpisodeWorkspace": "episode",
    "Fleet": "fleet",
    "FleetError": "fleet_errors",
    "FleetSnapshot": "fleet_workspace",
    "FleetWorkspace": "fleet_workspace",
    "HostDiedError": "fleet_errors",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'handrail.fleet' has no attribute {name!r}")
    return getattr(import_module(f"handrail.fleet.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
