"""Confines the commands of one session, or refuses to run them.

`Sandbox` starts a sandbox for the first command, hands commands and terminals to it, and starts a new one if it died.
It ends with `close()`, or when this process ends in any way. The modules around it: `confinement_choice.py` chooses how
commands are confined, `launch.py` prepares the program that becomes the sandbox, `supervisor_link.py` talks to the
supervisor inside, and `first_command.py` explains how the first command starts along with the sandbox.
"""

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.kernel.fs.placeholder import is_placeholder
from handrail.kernel.fs.trusted_paths import in_any, resolved
from handrail.kernel.sandbox import first_command, landlock_rules, launch
from handrail.kernel.sandbox.confinement_choice import ConfinementChoice
from handrail.kernel.sandbox.denials import Refusal
from handrail.kernel.sandbox.levels import Confinement, Level, SandboxSettings
from handrail.kernel.sandbox.network_attempts import Attempts, NetworkAttempts
from handrail.kernel.sandbox.supervisor_link import Channel, Link, refuse_nul
from handrail.kernel.sandbox.view import visible_paths
from handrail.kernel.sandbox.view.command_user import identity
from handrail.kernel.sandbox.view.occupied_names import OccupiedNames
from handrail.kernel.sandbox.view.workspace_view import WorkspaceView
from handrail.model.faults import SandboxUnavailable

if TYPE_CHECKING:
    from handrail.kernel.network.connection_log import ConnectionLog
    from handrail.kernel.network.proxy import Proxy

__all__ = ["Channel", "Confinement", "Sandbox", "SandboxSettings", "StartedCommand"]

_SYSTEMS = ("/proc", "/dev", "/sys", "/run")
"""Places of which the sandbox has its own; those of the machine would be a way out."""
_LONGEST_MASK = 4000
"""The longest path that can be covered: the system allows 4095 bytes, and bubblewrap prepends a directory."""


class StartedCommand(NamedTuple):
    """Holds the channel of a command that was started, and what confines the command."""

    channel: Channel
    confinement: Confinement
    restarted: bool
    """True if an earlier sandbox of this session had died, and all its processes with it."""
    network: Attempts | None = None
    """Tells the attempts to reach the network; None at levels that have one, or that share the machine's."""
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
        connections: "ConnectionLog | None" = None,
    ) -> None:
        """`masks` returns the paths that must not exist for commands, with their identities; called before each one.

        `connections` collects what the proxy reports at level `hosts`.
        """
        environment = dict(os.environ if user_environment is None else user_environment)
        self.settings = settings
        self._view = WorkspaceView(root, root_fd, settings, environment)
        self._choice = ConfinementChoice(self._view)
        self._occupied = OccupiedNames(root_fd, root, settings.limits)
        self._masks, self._masked = masks, dict[str, tuple[int, int]]()
        self._lock, self._names = threading.Lock(), threading.Lock()
        """The second lock is shared with sandboxes beside this one: none removes a name that another occupies now."""
        self._network = NetworkAttempts()
        self._link: Link | None = None
        self._started = self._closed = False
        self._private: str | None = None
        self._connections = connections
        self._proxy: Proxy | None = None
        self.background: list[Channel] = []
        """Channels of finished commands whose children are still running; to close a channel ends them."""

    def beside(self, settings: SandboxSettings) -> "Sandbox":
        """Return a second sandbox of the same workspace, with other settings; the caller closes it."""
        view = self._view
        made = Sandbox(view.root_fd, view.root, settings, view.user_environment, self._masks, self._connections)
        made._names = self._names
        return made

    @property
    def written(self) -> tuple[str, ...]:
        """The directories outside the workspace that processes of this sandbox may change now."""
        with self._lock:
            return () if self._closed else self.settings.writable

    def place_to_grant(self, path: str, written: tuple[str, ...] = ()) -> str | None:
        """Return where a path leads; None if no command may be given it: it is missing, or the sandbox needs it.

        Nothing below `written`, the directories that other sandboxes may change now, is given.
        """
        view = self._view
        real = resolved(path, (*view.agent_directories, *written)) if path.startswith("/") else None
        unfit = real is None or in_any(view.root, (real,)) or in_any(real, (*_SYSTEMS, *self.settings.hidden))
        return None if unfit else real

    def free(self, names: tuple[str, ...]) -> None:
        """Remove the placeholders of guarded names that a command may make now; the next sandbox guards them again."""
        for name in names:
            if is_placeholder(self._view.root_fd, name):
                with contextlib.suppress(OSError):  # something is in it: the command sees that
                    os.rmdir(name, dir_fd=self._view.root_fd)

    @property
    def root(self) -> str:
        return self._view.root

    @property
    def owner(self) -> tuple[int, int] | None:
        """The user and group that commands run as; None if they are those of this process."""
        return None if self.settings.level == "off" else identity(self._view.root_fd).drop_to

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
            refuse_nul(request)
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

    def refuses(self, path: str, directory: str = "") -> Refusal | None:
        """Tell by its text why commands in a directory below the root cannot change a path; None if they can."""
        if self.settings.image is not None:
            return None
        full = os.path.normpath(os.path.join(self.root, directory, path))
        if visible_paths.is_inside(full, self.root):
            return "guarded" if self._occupied.guards(os.path.relpath(full, self.root)) else None
        private = ("/tmp", "/var/tmp", "/dev", "/proc", visible_paths.private_home(self._view.home))  # noqa: S108
        writable = any(visible_paths.is_inside(full, place) for place in (*private, *self.settings.writable))
        return None if writable or path.startswith("~") else "write_outside"

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
            self._end_proxy()
            if self._link is not None:
                self._link.close(self.settings.limits.end_patience_seconds)
            for channel in self.background:
                channel.close()
            with self._names:
                self._occupied.remove()
            if self._private is not None:
                shutil.rmtree(self._private, ignore_errors=True)

    # handing commands over

    def _hand_over(self, request: dict[str, Any], streams: tuple[int, ...], *, restarted: bool) -> StartedCommand:
        """Send a request to the supervisor; start a new sandbox if the supervisor is gone."""
        while True:
            link = self._living_link()
            network = self._attempts(link)
            try:
                channel = link.request(self._completed(request), *streams)
            except ConnectionError:
                link.mark_lost()
                restarted = True
            else:
                if network is not None:
                    network.channel = channel
                return StartedCommand(channel, self._choice.current, restarted, network)

    def _completed(self, request: dict[str, Any]) -> dict[str, Any]:
        """Add the environment and the resource limits of the way in use to a request."""
        usual = {} if request.get("only_additions") else self._environment()
        return {
            "adopt": False,
            **request,
            "environment": {**usual, **request["additions"]},
            "limits": launch.command_limits(self.settings, self._choice.current.level),
        }

    def _environment(self) -> dict[bytes, bytes]:
        """Return the variables of every command, with those that lead to the proxy."""
        proxy = {} if self._proxy is None else self._proxy.environment
        found = {os.fsencode(name): os.fsencode(value) for name, value in proxy.items()}
        return launch.environment(self._view, self._private) | found

    def _can_start_along(self, request: dict[str, Any], streams: tuple[int, ...]) -> bool:
        on_host = self.settings.image is None
        alone = on_host and self._choice.uses_bubblewrap and not self._choice.current.needs_proxy
        return alone and first_command.can_start_along(request, len(streams), self.root)

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
        network = self._attempts(link)
        try:
            channel = link.request({**request, "adopt": True})
        except ConnectionError:  # the sandbox has ended; the closed channel leads the caller to `start_failed`
            channel = link.closed_channel()
        if network is not None:
            network.channel = channel
        return StartedCommand(channel, self._choice.current, restarted=False, network=network, info=info)

    def _attempts(self, link: Link) -> Attempts | None:
        return self._network.enter(link) if self._choice.current.level in ("strict", "hosts") else None

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
                else:
                    self._start_proxy(link)
        assert self._link is not None  # noqa: S101  _alive() is true
        return self._link

    def _start_proxy(self, link: Link) -> None:
        """Let the proxy serve the port in the network of a new sandbox, at level `hosts`."""
        from handrail.kernel.network.proxy import start_proxy  # noqa: PLC0415  few sessions name hosts

        self._end_proxy()
        port, settings = link.take_port(), self.settings
        if port is not None:
            self._proxy = start_proxy(port, settings.hosts, settings.private_hosts, settings.limits, self._connections)

    def _end_proxy(self) -> None:
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None

    def _new_link(self, way: Confinement) -> Link:
        """Close the old link and make one for a new sandbox."""
        self._end_proxy()
        if self._link is not None:
            self._link.close(0)
        options: dict[str, Any] = {
            "alone": way.by_bubblewrap,
            "watch": launch.watch(self._view),
            "confine": None,
        }
        if way.level == "reduced":
            options["confine"] = landlock_rules.options(self._view, self._private_directory())
        self._link, self._started = Link(options, confine=not way.by_bubblewrap, listens=way.needs_proxy), True
        return self._link

    def _spawn_way(self, way: Confinement, link: Link) -> None:
        if way.by_bubblewrap:
            self._spawn(link, self._prepare(None))
        else:
            link.spawn(launch.unconfined(self._view, reduced=way.level == "reduced"))

    def _prepare(self, alongside: str | None) -> launch.PreparedLaunch:
        """Occupy the guarded names and prepare bubblewrap. Raises SandboxUnavailable if a name cannot be guarded."""
        try:
            with self._names:
                self._occupied.remove()
                if self.settings.image is None:  # no program of the host runs files of an image
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
        self._end_proxy()
        if self._link is not None:
            self._link.close(0)
        self._link, self._started = None, False

    def _private_directory(self) -> str:
        """Return the directory for home and temporary files at levels without private mounts; make it once."""
        if self._private is None:
            self._private = tempfile.mkdtemp(prefix="handrail-")
            with open(f"{self._private}/.gitconfig", "wb") as file:
                file.write(self._view.git_identity())
            owner = identity(self._view.root_fd).drop_to
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
