"""What confines a process: the strongest that this machine allows, or nothing runs.

`Sandbox` is one confinement for a whole session. It starts with the first command, ends with `close` (or with us,
however we end), and is started anew when it died.
"""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from handrail.faults import SandboxUnavailable
from handrail.kernel.sandbox import build, bwrap, landlock
from handrail.kernel.sandbox.guard import Guard
from handrail.kernel.sandbox.link import Channel, Link
from handrail.kernel.sandbox.settings import (
    NETWORK_CANNOT_STOP,
    REDUCED_CANNOT_STOP,
    Confinement,
    SandboxSettings,
)

__all__ = ["Channel", "Confinement", "Sandbox", "SandboxSettings", "Started"]


@dataclass(frozen=True, slots=True)
class Started:
    channel: Channel
    confinement: Confinement
    restarted: bool
    """An earlier sandbox of this session had died, and its processes with it."""
    info: int | None = None
    """For a command that started along with the sandbox: where bubblewrap names the first process. Close it."""


class Sandbox:
    def __init__(
        self, root_fd: int, root: str, settings: SandboxSettings, person: Mapping[str, str] | None = None
    ) -> None:
        environment = dict(os.environ if person is None else person)
        self.settings = settings
        self._place = build.Place(root, root_fd, settings, environment)
        self.environment = build.environment(self._place)
        self._guard = Guard(root_fd)
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._stood = self._closed = False
        self._why: list[str] = []
        self._ways = self._possible_ways()
        self.background: list[Channel] = []
        """Commands whose children live on; closing a channel ends them."""

    def _possible_ways(self) -> list[Confinement]:
        level = self.settings.level
        if level == "off":
            return [Confinement("off", "nothing", ("everything",))]
        cannot = NETWORK_CANNOT_STOP if level == "network" else ()
        ways = [Confinement(level, found, cannot) for found in bwrap.candidates(self._place.root)]
        if not ways:
            self._why.append("bubblewrap: not found")
        return [*ways, Confinement("reduced", "landlock", (*REDUCED_CANNOT_STOP, *cannot))]

    @property
    def root(self) -> str:
        return self._place.root

    @property
    def confinement(self) -> Confinement | None:
        """What holds commands now; None before the first."""
        return self._ways[0] if self._stood else None

    def start(self) -> Confinement:
        """Stand, or raise `SandboxUnavailable`. Commands and terminals do this by themselves."""
        with self._lock:
            self._living_link()
            return self._ways[0]

    def begin(self, request: dict[str, Any], *streams: int) -> Started:
        """Start a command or terminal. If its channel ends before it says anything, ask `start_failed`."""
        request = {"adopt": False, "limits": build.command_limits(self.settings), **request}
        with self._lock:
            restarted = self._stood and not self._alive()
            if not self._alive() and self._can_start_along(request, streams):
                return replace(self._start_along(request, streams), restarted=restarted)
            link = self._living_link()
            return Started(link.request(request, *streams), self._ways[0], restarted)

    def start_failed(self, channel: Channel) -> bool:
        """Whether nothing at all ran in the sandbox of this channel: then another way is worth trying."""
        with self._lock:
            if channel.link.begun:
                return False
            self._give_up(channel.link)
            return True

    def _alive(self) -> bool:
        return self._link is not None and self._link.alive

    def _can_start_along(self, request: dict[str, Any], streams: tuple[int, ...]) -> bool:
        program = os.fsdecode(request["argv"][0])
        return (
            bool(self._ways)
            and self._ways[0].level in ("strict", "network")
            and len(streams) == 2
            and request["cwd"] == os.fsencode(self.root)
            and not request["additions"]
            and program.startswith(("/bin/", "/usr/bin/"))
            and all(os.access(name, os.X_OK) for name in (program, build.SHELL, build.SETSID))
        )

    def _start_along(self, request: dict[str, Any], streams: tuple[int, ...]) -> Started:
        way = self._ways[0]
        link = self._new_link(way)
        channel = link.request({**request, "adopt": True})
        building = self._build(way, [os.fsdecode(word) for word in request["argv"]])
        building.launch.streams = (streams[0], streams[1])
        self._spawn(link, building)
        return Started(channel, way, restarted=False, info=building.info)

    def _living_link(self) -> Link:
        while not self._alive():
            if self._closed or not self._ways:
                raise SandboxUnavailable(self.settings.level, self._why)
            way = self._ways[0]
            link = self._new_link(way)
            try:
                self._spawn_way(way, link)
                stands = link.stands(self.settings.limits.sandbox_start_seconds)
            except OSError as trouble:
                self._why.append(f"{way.by}: {trouble.strerror}")
                stands = False
            if not stands:
                self._give_up(link)
        assert self._link is not None  # noqa: S101  what the loop was for
        return self._link

    def _new_link(self, way: Confinement) -> Link:
        if self._link is not None:
            self._link.close(0)
        bubblewrap = way.level in ("strict", "network")
        options: dict[str, Any] = {"alone": bubblewrap, "watch": build.watch(self._place)}
        if not bubblewrap:
            options["confine"] = landlock.options(self._place) if way.level == "reduced" else None
        self._link, self._stood = Link(options, confine=not bubblewrap), True
        return self._link

    def _spawn_way(self, way: Confinement, link: Link) -> None:
        if way.level in ("strict", "network"):
            building = self._build(way, None)
            self._spawn(link, building)
            os.close(building.info)
        else:
            link.spawn(build.unconfined(self._place, owner=way.level == "reduced"))

    def _build(self, way: Confinement, alongside: list[str] | None) -> build.Building:
        self._guard.leave()
        self._guard.stand(self.settings.guarded)
        return build.strict(self._place, way.by, self._guard, alongside)

    def _spawn(self, link: Link, building: build.Building) -> None:
        try:
            link.spawn(building.launch)
        finally:
            building.done()
            self._guard.release_handles()

    def _give_up(self, link: Link) -> None:
        if self._link is link:
            self._link, self._stood = None, False
            self._why.append(f"{self._ways.pop(0).by}: {link.said or 'ended at once'}")
            if self._ways:
                self._ways[0] = replace(self._ways[0], why=tuple(self._why))
        link.close(0)

    def kill(self, link: Link) -> None:
        """End everything at once; the next command starts anew."""
        link.kill()

    def close(self) -> None:
        """End everything in the sandbox and leave the workspace as it was."""
        with self._lock:
            self._closed = True
            if self._link is not None:
                self._link.close(self.settings.limits.end_patience_seconds)
            for channel in self.background:
                channel.close()
            self._guard.leave()
