"""Confines the commands of one session, or refuses to run them.

`Sandbox` starts a sandbox for the first command, hands commands and terminals to it, and starts a new one if it died.
It ends with `close()`, or when this process ends in any way. The modules around it: `confinement_choice.py` chooses how
commands are confined, `launch.py` prepares the program that becomes the sandbox, `supervisor_link.py` talks to the
supervisor inside, and `first_command.py` explains how the first command starts along with the sandbox.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from handrail.kernel.sandbox import first_command, landlock_rules, launch
from handrail.kernel.sandbox.confinement_choice import ConfinementChoice
from handrail.kernel.sandbox.levels import Confinement, Level, SandboxSettings
from handrail.kernel.sandbox.network_attempts import NetworkAttempts, unrouted
from handrail.kernel.sandbox.supervisor_link import Channel, Link
from handrail.kernel.sandbox.view.occupied_names import OccupiedNames
from handrail.model.faults import CommandNotStarted, SandboxUnavailable

__all__ = ["Channel", "Confinement", "Sandbox", "SandboxSettings", "StartedCommand"]

_LONGEST_MASK = 4000
"""The longest path that can be covered: the system allows 4095 bytes, and bubblewrap prepends a directory."""


class StartedCommand(NamedTuple):
    """Holds the channel of a command that was started, and what confines the command."""

    channel: Channel
    confinement: Confinement
    restarted: bool
    """True if an earlier sandbox of this session had died, and all its processes with it."""
    network: NetworkAttempts | None = None
    """Counts the attempts to reach the network; None at levels that have one, or that share the machine's."""
    info: int | None = None
    """For a first command that started along: the pipe on which bubblewrap names the first process. To be closed."""


class Sandbox:
    """Starts commands in one sandbox for a whole session. All methods may be called from any thread."""

    def __init__(
        self,
        root_fd: int,
        root: str,
        settings: SandboxSettings,
        user_environment: Mapping[str, str] | None = None,
        masks: Callable[[], dict[str, tuple[int, int]]] = dict,
    ) -> None:
        """`masks` returns the paths that must not exist for commands, with their identities; called before each one."""
        environment = dict(os.environ if user_environment is None else user_environment)
        self.settings = settings
        self._view = launch.WorkspaceView(root, root_fd, settings, environment)
        self._choice = ConfinementChoice(self._view)
        self._occupied = OccupiedNames(root_fd, root, settings.limits)
        self._masks, self._masked = masks, dict[str, tuple[int, int]]()
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._started = self._closed = False
        self._private: str | None = None
        self.background: list[Channel] = []
        """Channels of finished commands whose children are still running; to close a channel ends them."""

    @property
    def root(self) -> str:
        return self._view.root

    @property
    def owner(self) -> tuple[int, int] | None:
        """The user and group that commands run as; None if they are those of this process."""
        return None if self.settings.level == "off" else launch.identity(self._view.root_fd).drop_to

    @property
    def has_background(self) -> bool:
        """True if children of a finished command may still be running."""
        return any(channel.link.alive and not channel.has_news for channel in self.background)

    @property
    def confinement(self) -> Confinement | None:
        """Return the confinement of commands; None before the first command."""
        return self._choice.current if self._started else None

    def settle_level(self) -> Level:
        """Return the level at which the next command runs, for a question; the command never gets a weaker one."""
        with self._lock:
            return self._choice.settle(running=self._started and self._alive())

    def start(self) -> Confinement:
        """Start the sandbox, or raise SandboxUnavailable. Commands and terminals start it by themselves."""
        with self._lock:
            self._renew_masks()
            self._living_link()
            return self._choice.current

    def begin(self, request: dict[str, Any], *streams: int) -> StartedCommand:
        """Start a command or terminal. If its channel ends without a message, call `start_failed`."""
        with self._lock:
            if self._closed:
                raise SandboxUnavailable(self.settings.level, ["closed"])
            _refuse_nul(request)
            self._renew_masks()
            restarted = self._started and not self._alive()
            if not self._alive() and self._can_start_along(request, streams):
                along = self._start_along(self._completed(request), streams)
                if along is not None:
                    return along._replace(restarted=restarted)
            return self._hand_over(request, streams, restarted=restarted)

    def cover(self) -> None:
        """End the sandbox if it does not cover every protected file; call this before a shell gets a command."""
        with self._lock:
            self._renew_masks()

    def start_failed(self, channel: Channel) -> bool:
        """Return True if nothing ran in the sandbox of this channel: then the caller should begin again."""
        with self._lock:
            if channel.link.ran_something:
                return False
            if self._link is channel.link:
                self._give_up(channel.link.error_text)
            return True

    def kill(self, link: Link) -> None:
        """Kill everything in a sandbox at once; the next command starts a new one."""
        link.kill()

    def close(self) -> None:
        """End everything in the sandbox and remove what it put into the workspace."""
        with self._lock:
            self._closed = True
            if self._link is not None:
                self._link.close(self.settings.limits.end_patience_seconds)
            for channel in self.background:
                channel.close()
            self._occupied.remove()
            if self._private is not None:
                shutil.rmtree(self._private, ignore_errors=True)

    # handing commands over

    def _hand_over(self, request: dict[str, Any], streams: tuple[int, ...], *, restarted: bool) -> StartedCommand:
        """Send a request to the supervisor; start a new sandbox if the supervisor is gone."""
        while True:
            link = self._living_link()
            network = self._attempts(link, unrouted(link))
            try:
                channel = link.request(self._completed(request), *streams)
            except ConnectionError:
                link.mark_lost()
                restarted = True
            else:
                return StartedCommand(channel, self._choice.current, restarted, network)

    def _completed(self, request: dict[str, Any]) -> dict[str, Any]:
        """Add the environment and the resource limits of the way in use to a request."""
        return {
            "adopt": False,
            **request,
            "environment": {**launch.environment(self._view, self._private), **request["additions"]},
            "limits": launch.command_limits(self.settings, self._choice.current.level),
        }

    def _can_start_along(self, request: dict[str, Any], streams: tuple[int, ...]) -> bool:
        return self._choice.uses_bubblewrap and first_command.can_start_along(request, len(streams), self.root)

    def _start_along(self, request: dict[str, Any], streams: tuple[int, ...]) -> StartedCommand | None:
        """Start a sandbox and its first command together (`first_command.py`); None if bubblewrap does not start."""
        link = self._new_link(self._choice.current)
        info = None
        try:
            prepared = self._prepare(first_command.as_shell_text(request["argv"]))
            prepared.launch.streams, info = (streams[0], streams[1]), prepared.info
            self._spawn(link, prepared)
        except OSError as error:
            if info is not None:
                os.close(info)
            self._give_up(error.strerror or "")
            return None
        try:
            channel = link.request({**request, "adopt": True})
        except ConnectionError:  # the sandbox has ended; the closed channel leads the caller to `start_failed`
            channel = link.closed_channel()
        return StartedCommand(
            channel, self._choice.current, restarted=False, network=self._attempts(link, 0), info=info
        )

    def _attempts(self, link: Link, before: int | None) -> NetworkAttempts | None:
        return NetworkAttempts(link, before) if self._choice.current.level == "strict" else None

    # starting a sandbox

    def _alive(self) -> bool:
        return self._link is not None and self._link.alive

    def _living_link(self) -> Link:
        """Return the link to a running sandbox; start one if necessary. Raises SandboxUnavailable."""
        while not self._alive():
            way = self._choice.current
            try:
                link = self._new_link(way)
                self._spawn_way(way, link)
            except OSError as error:
                self._give_up(error.strerror or "")
            else:
                if not link.wait_until_ready(self.settings.limits.sandbox_start_seconds):
                    self._give_up(link.error_text)
        assert self._link is not None  # noqa: S101  _alive() is true
        return self._link

    def _new_link(self, way: Confinement) -> Link:
        """Close the old link and make one for a new sandbox."""
        if self._link is not None:
            self._link.close(0)
        options: dict[str, Any] = {
            "alone": way.by_bubblewrap,
            "watch": launch.watch(self._view),
            "confine": None,
        }
        if way.level == "reduced":
            options["confine"] = landlock_rules.options(self._view, self._private_directory())
        self._link, self._started = Link(options, confine=not way.by_bubblewrap), True
        return self._link

    def _spawn_way(self, way: Confinement, link: Link) -> None:
        if way.by_bubblewrap:
            self._spawn(link, self._prepare(None))
        else:
            link.spawn(launch.unconfined(self._view, reduced=way.level == "reduced"))

    def _prepare(self, alongside: str | None) -> launch.PreparedLaunch:
        """Occupy the guarded names and prepare bubblewrap. Raises SandboxUnavailable if a name cannot be guarded."""
        self._occupied.remove()
        try:
            self._occupied.occupy(self.settings.guarded)
        except OSError as error:  # no weaker way instead: an agent could have caused this
            self._occupied.remove()  # it may hold all handles that this process is allowed
            self._drop_link()
            why = f"{error.filename} cannot be guarded: {error.strerror}"
            raise SandboxUnavailable(self.settings.level, [why]) from None
        self._choice.set_unguarded(self._occupied.unguarded)
        hidden = (*self.settings.hidden, *self._masked)
        view = self._view._replace(settings=self.settings._replace(hidden=hidden))
        return launch.strict(view, self._choice.current.by, self._occupied, alongside)

    def _spawn(self, link: Link, prepared: launch.PreparedLaunch) -> None:
        try:
            link.spawn(prepared.launch)
        finally:
            prepared.close()
            self._occupied.release_handles()

    def _give_up(self, why: str) -> None:
        """Drop the sandbox that failed and choose the next way. Raises SandboxUnavailable if that would be unsafe."""
        try:
            self._choice.give_up_current(why)
        finally:
            self._drop_link()

    def _drop_link(self) -> None:
        if self._link is not None:
            self._link.close(0)
        self._link, self._started = None, False

    def _private_directory(self) -> str:
        """Return the directory for home and temporary files at levels without private mounts; make it once."""
        if self._private is None:
            self._private = tempfile.mkdtemp(prefix="handrail-")
            with open(f"{self._private}/.gitconfig", "wb") as file:
                file.write(self._view.git_identity())
            owner = launch.identity(self._view.root_fd).drop_to
            if owner is not None:
                os.chown(file.name, *owner)
                os.chown(self._private, *owner)
        return self._private

    # protected files

    def _renew_masks(self) -> None:
        """End the sandbox if a protected file is new or was replaced: only a new sandbox can cover it."""
        if not self._choice.uses_bubblewrap:
            return
        wanted = self._masks()
        if self._link is not None and self._alive():
            if wanted.items() <= self._masked.items() and self._occupied.intact():
                return
            self._link.kill(self.settings.limits.end_patience_seconds)
            self._link.mark_lost()
            wanted = self._masks()  # processes that ran until now could move files during the first scan
        if len(wanted) > self.settings.limits.masked_files:
            why = [f"{len(wanted)} protected files are too many to cover"]
            raise SandboxUnavailable(self.settings.level, why, "too_many")
        if long := [path for path in wanted if len(os.fsencode(path)) > _LONGEST_MASK]:
            why = [f"{long[0][:200]}… lies too deep to be covered"]
            raise SandboxUnavailable(self.settings.level, why, "too_deep")
        self._masked = wanted


def _refuse_nul(request: dict[str, Any]) -> None:
    """Raise CommandNotStarted for a NUL in a word, which no program can receive."""
    words = [*request["argv"], request["cwd"], *request["additions"], *request["additions"].values()]
    if any(b"\0" in word for word in words):
        raise CommandNotStarted(os.fsdecode(request["argv"][0]), os.fsdecode(request["cwd"]), "EINVAL")
