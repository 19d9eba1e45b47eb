"""From the person's settings and this machine to a program that becomes the sandbox."""

import os
import platform
import resource
import shlex
import stat
from dataclasses import dataclass, field
from typing import Any

from handrail.kernel.sandbox import places, profile, seccomp
from handrail.kernel.sandbox.guard import Guard
from handrail.kernel.sandbox.link import Launch, entering, memory_file
from handrail.kernel.sandbox.settings import Level, SandboxSettings

INSIDE_UID = 1000

# Start the first command, then become the supervisor: the command need not wait for an interpreter.
SHELL, SETSID = "/bin/sh", "/usr/bin/setsid"
ALONGSIDE = 'echo begun >&2; {setsid} "$@" 2>&0 </dev/null & echo forked >&2; exec {supervisor} $! >&2 </dev/null'


@dataclass(frozen=True, slots=True)
class Place:
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

    def keep(self, fd: int) -> int:
        self.open.append(fd)
        return fd


@dataclass
class Building:
    """A launch and the handles to close once it runs."""

    launch: Launch
    info: int
    """Read end: bubblewrap says here which process is the sandbox's first."""
    handles: list[int]

    def done(self) -> None:
        for fd in self.handles:
            os.close(fd)
        self.handles = []


def strict(place: Place, bwrap: str, guard: Guard, alongside: list[str] | None) -> Building:
    """Bubblewrap's command line; `alongside` is a first command that starts with it."""
    who, handles = identity(place.root_fd), _Handles()
    info, info_in = os.pipe2(os.O_CLOEXEC)
    handles.keep(info_in)
    view = _view(place, who, handles, guard)
    filter_fd = handles.data(seccomp.assemble(platform.machine()))
    supervisor = entering()
    inside = [*supervisor, "0"]
    if alongside is not None:
        script = ALONGSIDE.format(setsid=SETSID, supervisor=shlex.join(supervisor))
        inside = [SHELL, "-c", script, "sh", *alongside]
    argv = [bwrap, *profile.arguments(view, filter_fd, info_in), "--", *inside]
    guards = [fd for _, fd in (*guard.writable, *guard.read_only)]
    launch = Launch(argv, [*handles.open, *guards, place.root_fd], who.drop_to)
    return Building(launch, info, handles.open)


def _view(place: Place, who: Identity, handles: _Handles, guard: Guard) -> profile.View:
    settings, root, home = place.settings, place.root, places.private_home(place.home, place.root)
    etc = places.etc_names(network=place.network)
    shown = [
        *(n for n in etc if os.path.isdir(n)),
        *places.toolchains(place.person.get("PATH", ""), home, root),
    ]
    readable = [*shown, *settings.readable]
    visible = [root, *readable, *settings.writable]
    hidden = [os.path.realpath(path) for path in settings.hidden if os.path.exists(path)]
    hidden = [path for path in hidden if any(places.is_inside(path, there) for there in visible)]
    return profile.View(
        root=root,
        root_fd=place.root_fd,
        home=home,
        uid=who.uid,
        gid=who.gid,
        network=place.network,
        environment=places.environment(place.person, home, settings.environment),
        limits=settings.limits,
        system=places.system_directories(),
        read_only=[(path, handles.path(path)) for path in readable],
        writable=[(path, handles.path(path)) for path in settings.writable],
        guard_writable=[(f"{root}/{name}", fd) for name, fd in guard.writable],
        guard_read_only=[(f"{root}/{name}", fd) for name, fd in guard.read_only],
        hidden_files=[(path, handles.data(b"")) for path in hidden if not os.path.isdir(path)],
        hidden_directories=[path for path in hidden if os.path.isdir(path)],
        data=[
            *((name, handles.content(name)) for name in etc if _is_plain(name)),
            *((name, handles.data(text.encode())) for name, text in places.accounts(who.uid, who.gid, home).items()),
            *([] if place.network else [("/etc/hosts", handles.data(b"127.0.0.1 localhost\n::1 localhost\n"))]),
        ],
    )


def environment(place: Place, private: str | None) -> dict[bytes, bytes]:
    """What every command finds; `private` is its home where no mount can hide the real one."""
    home = place.home if place.settings.level == "off" else places.private_home(place.home, place.root)
    variables = places.environment(place.person, private or home, place.settings.environment)
    if private is not None:
        variables["TMPDIR"] = private
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}


def _is_plain(name: str) -> bool:
    return stat.S_ISREG(os.stat(name).st_mode) and os.access(name, os.R_OK)


def unconfined(place: Place, *, reduced: bool) -> Launch:
    """The supervisor itself, which confines itself where it is told to."""
    if not reduced:
        return Launch([*entering(), "0"])
    return Launch([*entering(), "0"], [place.root_fd], identity(place.root_fd).drop_to)


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


def watch(place: Place) -> dict[str, Any]:
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
