"""What confines a process: the strongest that this machine allows, or nothing runs.

`Sandbox` is one confinement for a whole session. It starts with the first command, ends with `close` (or with
us, however we end), and is started anew when it died.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from handrail.kernel.sandbox import find_bwrap, landlock_rules, launch, probe
from handrail.kernel.sandbox.levels import (
    NETWORK_CANNOT_STOP,
    REDUCED_CANNOT_STOP,
    Confinement,
    SandboxSettings,
)
from handrail.kernel.sandbox.supervisor_link import Channel, Link
from handrail.kernel.sandbox.view.occupied_names import OccupiedNames
from handrail.model.faults import CommandNotStarted, SandboxUnavailable

__all__ = ["Channel", "Confinement", "Sandbox", "SandboxSettings", "StartedCommand"]

_LONGEST_MASK = 4000
"""Longer paths cannot be mounted upon: the system takes 4095 bytes, and bubblewrap puts its own directory before."""
_ALONG_BYTES = 1 << 16
"""Longer commands wait for the supervisor, which says what is wrong with them."""


@dataclass(frozen=True, slots=True)
class StartedCommand:
    channel: Channel
    confinement: Confinement
    restarted: bool
    """An earlier sandbox of this session had died, and its processes with it."""
    info: int | None = None
    """Where bubblewrap names the first process, for a command that started along with it. To be closed."""


class Sandbox:
    def __init__(
        self,
        root_fd: int,
        root: str,
        settings: SandboxSettings,
        person: Mapping[str, str] | None = None,
        masks: Callable[[], dict[str, tuple[int, int]]] = dict,
    ) -> None:
        """`masks` names what must not exist for commands, and what stands there; it is asked before each of them."""
        environment = dict(os.environ if person is None else person)
        self.settings = settings
        self._place = launch.WorkspaceView(root, root_fd, settings, environment)
        self._guard = OccupiedNames(root_fd, root, settings.limits)
        self._masks, self._masked = masks, dict[str, tuple[int, int]]()
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._stood = self._closed = False
        self._why: list[str] = []
        self._private: str | None = None
        self._ways = self._possible_ways()
        self.background: list[Channel] = []
        """Commands whose children live on; closing a channel ends them."""

    def _possible_ways(self) -> list[Confinement]:
        level = self.settings.level
        if level == "off":
            return [Confinement("off", "nothing", ("everything",))]
        cannot = NETWORK_CANNOT_STOP if level == "network" else ()
        ways = [Confinement(level, found, cannot) for found in find_bwrap.candidates(self._place.root)]
        if not ways:
            self._why.append("bubblewrap: none outside the workspace")
        if not self.settings.allow_reduced:
            return ways
        return [*ways, Confinement("reduced", "landlock", (*REDUCED_CANNOT_STOP, *cannot), tuple(self._why))]

    @property
    def root(self) -> str:
        return self._place.root

    @property
    def owner(self) -> tuple[int, int] | None:
        """Who runs the commands, if not we."""
        return None if self.settings.level == "off" else launch.identity(self._place.root_fd).drop_to

    @property
    def has_background(self) -> bool:
        """Whether children of a finished command may live on."""
        return any(channel.link.alive for channel in self.background)

    @property
    def confinement(self) -> Confinement | None:
        """What holds commands now; None before the first."""
        return self._ways[0] if self._stood else None

    def start(self) -> Confinement:
        """Stand, or raise `SandboxUnavailable`. Commands and terminals do this by themselves."""
        with self._lock:
            self._renew_masks()
            self._living_link()
            return self._ways[0]

    def begin(self, request: dict[str, Any], *streams: int) -> StartedCommand:
        """Start a command or terminal. If its channel ends before it says anything, ask `start_failed`."""
        with self._lock:
            if self._closed:
                raise SandboxUnavailable(self.settings.level, ["closed"])
            _refuse_nul(request)
            self._renew_masks()
            restarted = self._stood and not self._alive()
            if not self._alive() and self._can_start_along(request, streams):
                along = self._start_along(self._whole(request), streams)
                if along is not None:
                    return replace(along, restarted=restarted)
            while True:
                link = self._living_link()
                try:
                    channel = link.request(self._whole(request), *streams)
                except ConnectionError:
                    link.lost()
                    restarted = True
                else:
                    return StartedCommand(channel, self._ways[0], restarted)

    def _renew_masks(self) -> None:
        """A name that came since, or one that was replaced, stands uncovered: only a new sandbox covers it."""
        if not (self._ways and self._ways[0].by_bubblewrap):
            return
        wanted = self._masks()
        if self._link is not None and self._alive():
            if wanted.items() <= self._masked.items() and self._guard.intact():
                return
            self._link.kill(self.settings.limits.end_patience_seconds)
            self._link.lost()
            wanted = self._masks()  # what ran until now could move them while they were looked for
        if len(wanted) > self.settings.limits.masked_files:
            raise SandboxUnavailable(self.settings.level, [f"{len(wanted)} protected files are too many to cover"])
        if long := [path for path in wanted if len(os.fsencode(path)) > _LONGEST_MASK]:
            raise SandboxUnavailable(self.settings.level, [f"{long[0][:200]}… lies too deep to be covered"])
        self._masked = wanted

    def _whole(self, request: dict[str, Any]) -> dict[str, Any]:
        way = self._ways[0]
        return {
            "adopt": False,
            **request,
            "environment": {**launch.environment(self._place, self._private), **request["additions"]},
            "limits": launch.command_limits(self.settings, way.level),
        }

    def start_failed(self, channel: Channel) -> bool:
        """Whether nothing at all ran in the sandbox of this channel: then another way is worth trying."""
        with self._lock:
            if channel.link.begun:
                return False
            if self._link is channel.link:
                self._give_up(channel.link.said)
            return True

    def _alive(self) -> bool:
        return self._link is not None and self._link.alive

    def _can_start_along(self, request: dict[str, Any], streams: tuple[int, ...]) -> bool:
        program = os.fsdecode(request["argv"][0])
        return (
            bool(self._ways)
            and self._ways[0].by_bubblewrap
            and len(streams) == 2
            and request["cwd"] == os.fsencode(self.root)
            and not request["additions"]
            and program.startswith(("/bin/", "/usr/bin/"))
            and len(os.fsencode(launch.words(request["argv"]))) < _ALONG_BYTES
            and all(os.access(name, os.X_OK) for name in (program, launch.SHELL, launch.SETSID))
            and launch.can_reset_signals()
        )

    def _start_along(self, request: dict[str, Any], streams: tuple[int, ...]) -> StartedCommand | None:
        """None where bubblewrap itself does not start."""
        way = self._ways[0]
        link = self._new_link(way)
        info = None
        try:
            building = self._build(way, launch.words(request["argv"]))
            building.launch.streams, info = (streams[0], streams[1]), building.info
            self._spawn(link, building)
        except OSError as trouble:
            if info is not None:
                os.close(info)
            self._give_up(trouble.strerror or "")
            return None
        try:
            channel = link.request({**request, "adopt": True})
        except ConnectionError:  # it has ended already; whether the command ran, its line will tell
            channel = link.ended()
        return StartedCommand(channel, self._ways[0], restarted=False, info=info)

    def _living_link(self) -> Link:
        while not self._alive():
            if not self._ways:
                raise SandboxUnavailable(self.settings.level, self._why)
            way = self._ways[0]
            try:
                link = self._new_link(way)
                self._spawn_way(way, link)
            except OSError as trouble:
                self._give_up(trouble.strerror or "")
            else:
                if not link.stands(self.settings.limits.sandbox_start_seconds):
                    self._give_up(link.said)
        assert self._link is not None  # noqa: S101  what the loop was for
        return self._link

    def _new_link(self, way: Confinement) -> Link:
        if self._link is not None:
            self._link.close(0)
        options: dict[str, Any] = {
            "alone": way.by_bubblewrap,
            "watch": launch.watch(self._place),
            "confine": None,
        }
        if way.level == "reduced":
            options["confine"] = landlock_rules.options(self._place, self._private_directory())
        self._link, self._stood = Link(options, confine=not way.by_bubblewrap), True
        return self._link

    def _spawn_way(self, way: Confinement, link: Link) -> None:
        if way.by_bubblewrap:
            self._spawn(link, self._build(way, None))
        else:
            link.spawn(launch.unconfined(self._place, reduced=way.level == "reduced"))

    def _build(self, way: Confinement, alongside: str | None) -> launch.Building:
        self._guard.leave()
        try:
            self._guard.stand(self.settings.guarded)
        except OSError as trouble:  # no reason to go on with less: whoever made it so would gain by it
            raise self._refusal(f"{trouble.filename} cannot be guarded: {trouble.strerror}") from None
        self._ways[0] = replace(self._ways[0], unguarded=tuple(self._guard.unguarded))
        hidden = (*self.settings.hidden, *self._masked)
        place = replace(self._place, settings=replace(self.settings, hidden=hidden))
        return launch.strict(place, way.by, self._guard, alongside)

    def _spawn(self, link: Link, building: launch.Building) -> None:
        try:
            link.spawn(building.launch)
        finally:
            building.done()
            self._guard.release_handles()

    def _refusal(self, why: str) -> SandboxUnavailable:
        if self._link is not None:
            self._link.close(0)
        self._link, self._stood = None, False
        return SandboxUnavailable(self.settings.level, [why])

    def _give_up(self, why: str) -> None:
        """The first way does not work: go on with the next, unless it is only in this workspace that it does not."""
        way = self._ways[0]
        if way.by_bubblewrap and probe.works(self._place, way.by):
            raise self._refusal(f"{way.by}: {why or 'ended at once'}")
        self._why.append(f"{self._ways.pop(0).by}: {why or 'ended at once'}")
        if self._ways:
            self._ways[0] = replace(self._ways[0], why=tuple(self._why))
        if self._link is not None:
            self._link.close(0)
        self._link, self._stood = None, False

    def _private_directory(self) -> str:
        """Temporary files and home, where no mount can be private."""
        if self._private is None:
            self._private = tempfile.mkdtemp(prefix="handrail-")
            who = launch.identity(self._place.root_fd).drop_to
            if who is not None:
                os.chown(self._private, *who)
        return self._private

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
            if self._private is not None:
                shutil.rmtree(self._private, ignore_errors=True)


def _refuse_nul(request: dict[str, Any]) -> None:
    """No program can be handed a NUL; to try would look like a sandbox that does not start."""
    words = [*request["argv"], request["cwd"], *request["additions"], *request["additions"].values()]
    if any(b"\0" in word for word in words):
        raise CommandNotStarted(os.fsdecode(request["argv"][0]), os.fsdecode(request["cwd"]), "EINVAL")
