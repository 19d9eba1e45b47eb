"""From the person's settings and this machine to a program that becomes the sandbox."""

import errno
import os
import platform
import resource
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from handrail.kernel.fs.trusted_paths import agents_directories, resolved
from handrail.kernel.sandbox import bwrap_args, find_bwrap, interpreter, seccomp
from handrail.kernel.sandbox.levels import Level, SandboxSettings
from handrail.kernel.sandbox.supervisor_link import Launch, entering, memory_file
from handrail.kernel.sandbox.view import visible_paths
from handrail.kernel.sandbox.view.occupied_names import OccupiedNames
from handrail.kernel.sandbox.view.toolchains import Toolchains
from handrail.model.limits import KIB

INSIDE_UID = 1000

# Start the first command and become the supervisor, so that the command need not wait for an interpreter. It
# waits for the shell to be gone, though: a shell would collect its status. (A shell also gives a background
# command an empty input before anything else, so handle 0 is kept as 3, and lets it ignore interrupts: that is
# undone by `env`, where it can.) Every user of the machine sees arguments, so the command comes in a variable.
SHELL, SETSID, ENV = "/bin/sh", "/usr/bin/setsid", "/usr/bin/env"
FIRST = "first_command"
ALONGSIDE = """eval "set -- ${first}"; unset {first}
exec 3>&0 </dev/null
{{
echo forked >&2
ulimit -d {memory_kib}; ulimit -f {file_blocks}; ulimit -n {open_files}
while read name </proc/1/comm; [ "$name" = sh ]; do :; done
exec {env} --default-signal {setsid} "$@" 2>&3 3>&-
}} &
exec {supervisor} $! >&2 3>&-"""


@dataclass(frozen=True, slots=True)
class WorkspaceView:
    """The workspace, whose it is, and who asks."""

    root: str
    root_fd: int
    settings: SandboxSettings
    person: dict[str, str]
    """The person's environment."""

    @property
    def home(self) -> str:
        return self.person.get("HOME", "/")

    @property
    def agents(self) -> tuple[str, ...]:
        """Directories that commands can write."""
        return agents_directories(self.root, self.settings.writable)

    def led(self, paths: Iterable[str]) -> list[tuple[str, str]]:
        """Paths with where they lead, without those that commands can lead elsewhere."""
        return [(path, real) for path in paths if (real := resolved(path, self.agents)) is not None]

    def toolchains(self) -> list[tuple[str, str]]:
        home = visible_paths.private_home(self.home)
        return Toolchains(self.person, home, self.root, self.agents).shown()

    @property
    def network(self) -> bool:
        return self.settings.level == "network"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who commands are outside (None: who we are) and which number they see inside."""

    drop_to: tuple[int, int] | None
    uid: int
    gid: int


def identity(root_fd: int) -> Identity:
    """Never root's own number inside; outside, the workspace's owner where we may become it.

    A workspace that belongs to root can be written by nobody else: then commands keep root's number outside,
    without a capability, inside a user namespace, with /proc and all else of root's read-only or absent.
    """
    if os.geteuid() != 0:
        return Identity(None, os.geteuid(), os.getegid())
    owner = os.fstat(root_fd)
    if owner.st_uid:
        return Identity((owner.st_uid, owner.st_gid), owner.st_uid, owner.st_gid)
    return Identity((0, 0) if set(os.getgroups()) - {0} else None, INSIDE_UID, INSIDE_UID)


@dataclass
class _Handles:
    """Handles that the launched program inherits; closed here as soon as it runs."""

    open: list[int] = field(default_factory=list)

    def path(self, name: str) -> int:
        return self.keep(os.open(name, os.O_PATH | os.O_CLOEXEC))

    def content(self, name: str) -> int:
        return self.keep(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))

    def data(self, content: bytes) -> int:
        return self.keep(memory_file(content))

    def copy(self, name: str) -> int:
        """A copy that everyone may execute: its only handle cannot write it."""
        with open(name, "rb") as file:
            writable = memory_file(file.read())
        try:
            return self.content(f"/proc/self/fd/{writable}")
        finally:
            os.close(writable)

    def keep(self, fd: int) -> int:
        self.open.append(fd)
        return fd

    def close(self) -> None:
        for fd in self.open:
            os.close(fd)
        self.open = []


@dataclass
class Building:
    """A launch and the handles to close once it runs."""

    launch: Launch
    info: int | None
    """Where bubblewrap says which process is the sandbox's first, if a command starts along with it."""
    handles: _Handles

    def done(self) -> None:
        self.handles.close()


@cache
def can_reset_signals() -> bool:
    """Whether `env` knows how (coreutils 8.31). Read off the program, which is faster than to ask it."""
    try:
        with open(ENV, "rb") as file:
            return b"default-signal" in file.read()
    except OSError:
        return False


def words(argv: list[bytes]) -> str:
    """A command as text that a shell takes apart again."""
    return shlex.join(map(os.fsdecode, argv))


def strict(place: WorkspaceView, program: str, guard: OccupiedNames, alongside: str | None) -> Building:
    """Bubblewrap's command line; `alongside` is a first command, as `words`, that starts with it."""
    handles = _Handles()
    try:
        return _strict(place, program, guard, alongside, handles)
    except OSError:
        handles.close()
        raise


def _strict(
    place: WorkspaceView, program: str, guard: OccupiedNames, alongside: str | None, handles: _Handles
) -> Building:
    who = identity(place.root_fd)
    view = _view(place, who, handles, guard)
    supervisor, copies = interpreter.inside(who.drop_to)
    view.copies.extend((path, handles.content(source)) for path, source in copies.items())
    inside = [*entering(supervisor), "0"]
    if alongside is not None:
        view.environment[FIRST] = alongside
        inside = [SHELL, "-c", _script(place.settings, entering(supervisor))]
    launch = Launch([program, "--args", "", "--", *inside], user=who.drop_to)
    if who.drop_to is not None and not visible_paths.reachable(program, *who.drop_to):
        _run_by_handle(launch, program, view, handles)
    filter_fd = handles.data(seccomp.assemble(platform.machine()))
    info, info_in = os.pipe2(os.O_CLOEXEC) if alongside is not None else (None, None)
    if info_in is not None:
        handles.keep(info_in)
    arguments = bwrap_args.arguments(view, filter_fd, info_in)
    launch.argv[2] = str(handles.data(b"".join(os.fsencode(word) + b"\0" for word in arguments)))
    guards = [fd for _, fd, _ in guard.ordered()]
    launch.handles = [*handles.open, *guards, place.root_fd]
    return Building(launch, info, handles)


def _script(settings: SandboxSettings, supervisor: list[str]) -> str:
    return ALONGSIDE.format(
        first=FIRST,
        env=ENV,
        setsid=SETSID,
        supervisor=shlex.join(supervisor),
        memory_kib=memory_limit(settings) // KIB,
        file_blocks=settings.limits.sandbox_file_bytes // 512,
        open_files=settings.limits.sandbox_open_files,
    )


def _run_by_handle(launch: Launch, program: str, view: bwrap_args.Mounts, handles: _Handles) -> None:
    """Start a copy: the user that runs it cannot reach the program itself, nor the libraries beside it.

    Bubblewrap would pass the handles on. It closes what it was told to copy, so it is told to copy them to where a
    mount of the sandbox's covers them.
    """
    launch.program, *libraries = [handles.copy(part) for part in find_bwrap.parts(program)]
    launch.environment["LD_PRELOAD"] = " ".join(f"/proc/self/fd/{fd}" for fd in libraries)
    view.data.extend((f"/tmp/{fd}", fd) for fd in (launch.program, *libraries))  # noqa: S108  covered


def _view(place: WorkspaceView, who: Identity, handles: _Handles, guard: OccupiedNames) -> bwrap_args.Mounts:
    settings, root, home = place.settings, place.root, visible_paths.private_home(place.home)
    etc_directories, etc_files = visible_paths.etc_names(network=place.network)
    shown = [*((path, path) for path in etc_directories), *place.toolchains(), *place.led(settings.readable)]
    readable = visible_paths.within_reach(shown, who.drop_to)
    writable = visible_paths.within_reach(place.led(settings.writable), who.drop_to)
    visible = [root, *(path for path, _ in (*readable, *writable))]
    hidden = [os.path.realpath(path) for path in settings.hidden if os.path.exists(path)]
    hidden = [path for path in hidden if any(visible_paths.is_inside(path, there) for there in visible)]
    hidden = visible_paths.outermost(path for path in hidden if not visible_paths.is_inside(root, path))
    return bwrap_args.Mounts(
        root=root,
        root_fd=place.root_fd,
        home=home,
        uid=who.uid,
        gid=who.gid,
        network=place.network,
        environment=visible_paths.environment(place.person, home, settings.environment),
        limits=settings.limits,
        system=visible_paths.system_directories(),
        read_only=[(path, handles.path(real)) for path, real in readable],
        writable=[(path, handles.path(real)) for path, real in writable],
        guards=[(f"{root}/{name}", fd, writable) for name, fd, writable in guard.ordered()],
        hidden_files=[(path, handles.data(b"")) for path in hidden if not os.path.isdir(path)],
        hidden_directories=[path for path in hidden if os.path.isdir(path)],
        data=[
            *((name, handles.content(name)) for name in etc_files),
            *(
                (name, handles.data(text.encode()))
                for name, text in visible_paths.accounts(who.uid, who.gid, home).items()
            ),
            *([] if place.network else [("/etc/hosts", handles.data(b"127.0.0.1 localhost\n::1 localhost\n"))]),
        ],
    )


def environment(place: WorkspaceView, private: str | None) -> dict[bytes, bytes]:
    """What every command finds; `private` is its home where no mount can hide the real one."""
    home = place.home if place.settings.level == "off" else visible_paths.private_home(place.home)
    variables = visible_paths.environment(place.person, private or home, place.settings.environment)
    if private is not None:
        variables["TMPDIR"] = private
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}


def unconfined(place: WorkspaceView, *, reduced: bool) -> Launch:
    """The supervisor itself, which confines itself where it is told to."""
    who = identity(place.root_fd) if reduced else Identity(None, 0, 0)
    handles = [place.root_fd] if reduced else []
    path = interpreter.find(who.drop_to)
    if path is None:
        raise PermissionError(
            errno.EACCES, f"the workspace's owner ({who.uid}) can reach no interpreter of our version"
        )
    return Launch([*entering([path]), "0"], handles, who.drop_to)


def command_limits(settings: SandboxSettings, level: Level) -> list[tuple[int, int]]:
    """What each process may use. A core file of one byte is none, also where cores are piped to a program."""
    limits = settings.limits
    if level == "off":
        return []
    common = [
        (resource.RLIMIT_CORE, 1),
        (resource.RLIMIT_NOFILE, limits.sandbox_open_files),
        (resource.RLIMIT_FSIZE, limits.sandbox_file_bytes),
        (resource.RLIMIT_DATA, memory_limit(settings)),
    ]
    # Without a user namespace the person's own processes would count too: then only the supervisor counts.
    return common if level == "reduced" else [*common, (resource.RLIMIT_NPROC, limits.sandbox_processes)]


def memory_limit(settings: SandboxSettings) -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(settings.limits.sandbox_memory_bytes, machine * 3 // 4)


def watch(place: WorkspaceView) -> dict[str, Any]:
    """What the supervisor looks after where the kernel does not."""
    limits = place.settings.limits
    room = os.fstatvfs(place.root_fd)
    free = room.f_bavail * room.f_frsize
    return {
        "root": place.root,
        "processes": limits.sandbox_processes,
        "memory": memory_limit(place.settings),
        "disk_reserve": min(limits.sandbox_disk_reserve_bytes, free // 2),
        "pause": 0.05,
        "longest_pause": 2.0,
    }
