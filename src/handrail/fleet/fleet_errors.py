"""Defines the exceptions of fleets. Those that a host reports have a `kind`, from which the fleet makes them again."""

from typing import Any

from handrail.errors import HandrailError


class FleetError(HandrailError):
    """The fleet cannot do what was asked."""

    kind = "fleet"


class HostDiedError(FleetError):
    """A host died, or cannot be reached. The fleet restores its workspaces elsewhere."""

    kind = "died"


class BusyError(FleetError):
    """A host has no room for another workspace now."""

    kind = "busy"


class StaleEpochError(FleetError):
    """The workspace has another host by now."""

    kind = "stale"


class CallIdError(FleetError):
    """A call id was used again for another call."""

    kind = "call_id"


class EpisodeError(FleetError):
    """An episode raised an exception, or its result is not JSON."""

    kind = "episode"


class UnsavableError(FleetError):
    """A workspace cannot be saved now."""

    kind = "unsavable"


class DivergedError(FleetError):
    """A call that was made again on a restored workspace had another result, or an episode made another call."""

    kind = "diverged"

    def __init__(self, message: str, suggestion: str = "", differences: list[Any] | None = None) -> None:
        super().__init__(message, suggestion)
        self.differences = differences or []
        """What differs: the id of the call, the place in its result, the old and the new value."""


_KINDS: dict[str, type[FleetError]] = {
    each.kind: each
    for each in (
        FleetError,
        HostDiedError,
        BusyError,
        StaleEpochError,
        CallIdError,
        EpisodeError,
        UnsavableError,
        DivergedError,
    )
}


def to_json(error: HandrailError) -> dict[str, Any]:
    """Return an error as a host reports it."""
    kind = error.kind if isinstance(error, FleetError) else "fleet"
    about: dict[str, Any] = {"kind": kind, "message": error.message, "suggestion": error.suggestion}
    return about | ({"differences": error.differences} if isinstance(error, DivergedError) else {})


def from_json(about: dict[str, Any]) -> FleetError:
    """Return the error that a host reported."""
    message, suggestion = str(about.get("message", "")), str(about.get("suggestion", ""))
    if about.get("kind") == DivergedError.kind:
        return DivergedError(message, suggestion, about.get("differences"))
    return _KINDS.get(str(about.get("kind")), FleetError)(message, suggestion)
