"""Prepares the program that becomes the sandbox, from the user's settings and this machine."""

import errno
import os
import platform
import resource
from collections.abc import Iterable
from dataclasses import field
from pathlib import PurePath
from typing import Any

from handrail.kernel.git.repositories import kind_at
from handrail.kernel.sandbox import bwrap_args, find_bwrap, first_command, interpreter, seccomp
from handrail.kernel.sandbox.helpers.owner_mark import owner_mark
from handrail.kernel.sandbox.levels import Level, SandboxSettings
from handrail.kernel.sandbox.network_attempts import LOCAL_HOSTS, NAME_SERVER
from handrail.kernel.sandbox.supervisor_link import Launch, entering, memory_file
from handrail.kernel.sandbox.view import visible_paths
from handrail.kernel.sandbox.view.command_user import Identity, identity
from handrail.kernel.sandbox.view.image_root import IMAGE_PATH, ImageRoot, checked, write_etc
from handrail.kernel.sandbox.view.image_tools import image_tools
from handrail.kernel.sandbox.view.occupied_names import OccupiedNames
from handrail.kernel.sandbox.view.workspace_view import Paths, WorkspaceView
from handrail.model.job_faults import RightsNotGranted
from handrail.model.limits import KIB, MIB
from handrail.model.record import record

NO_VERSION_CHECK = {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
"""Keeps pip from looking for a new version of itself where there is no network: that is no attempt of the command."""


@record
class _Handles:
    """Holds the handles that the launched program inherits; to be closed as soon as the program runs."""

    open: list[int] = field(default_factory=list)

    def path(self, name: str, right: str = "") -> int:
        """Open a path to mount it. Raises RightsNotGranted if it is not the place of a right that a question showed."""
        fd = self.keep(os.open(name, os.O_PATH | os.O_CLOEXEC))
        if right and os.readlink(f"/proc/self/fd/{fd}") != right.partition(" ")[2]:
            raise RightsNotGranted([right])
        return fd

    def content(self, name: str) -> int:
        """Open a file to read it."""
        return self.keep(os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))

    def data(self, content: bytes) -> int:
        """Open a file in memory with this content."""
        return self.keep(memory_file(content))

    def copy(self, name: str) -> int:
        """Open a copy of a program in memory that every user can run, and that no handle can write."""
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


@record
class PreparedLaunch:
    """Holds a launch and the handles to close once its program runs."""

    launch: Launch
    info: int | None
    """The pipe on which bubblewrap names the first process, if a command starts along; None otherwise."""
    handles: _Handles

    def close(self) -> None:
        self.handles.close()


def strict(view: WorkspaceView, program: str, occupied: OccupiedNames, alongside: str | None) -> PreparedLaunch:
    """Prepare bubblewrap. `alongside` is the quoted text of a first command that starts along with the sandbox."""
    handles = _Handles()
    try:
        prepared = _strict(view, program, occupied, alongside, handles)
    except (OSError, RightsNotGranted):
        handles.close()
        raise
    _enter_view(prepared.launch, view.settings)
    return prepared


def _strict(
    view: WorkspaceView, program: str, occupied: OccupiedNames, alongside: str | None, handles: _Handles
) -> PreparedLaunch:
    user, image = identity(view.root_fd), view.settings.image
    if image is not None:
        user = user._replace(uid=image.uid, gid=image.gid)
    if view.settings.user is not None:
        user = user._replace(uid=view.settings.user, gid=view.settings.user)
    mounts = _mounts(view, user, handles, occupied) if image is None else _image_mounts(view, image, user)
    supervisor, copies = interpreter.inside(user.drop_to) if image is None else (image_tools()[1], {})
    mounts.copies.extend((path, handles.content(source)) for path, source in copies.items())
    inside = [*entering(supervisor), "0"]
    if alongside is not None:
        mounts.environment[first_command.VARIABLE] = alongside
        inside = _first_process(view.settings, entering(supervisor))
    launch = Launch([program, *owner_mark(), "--args", "", "--", *inside], user=user.drop_to)
    if user.drop_to is not None and not visible_paths.reachable(program, *user.drop_to):
        _run_by_handle(launch, program, mounts, handles)
    filter_fd = handles.data(seccomp.assemble(platform.machine()))
    info, info_writer = os.pipe2(os.O_CLOEXEC) if alongside is not None else (None, None)
    if info_writer is not None:
        handles.keep(info_writer)
    arguments = bwrap_args.arguments(mounts, filter_fd, info_writer)
    packed = handles.data(b"".join(os.fsencode(word) + b"\0" for word in arguments))
    launch.argv[launch.argv.index("--args") + 1] = str(packed)
    guards = [fd for _, fd, _ in occupied.ordered()]
    launch.handles = [*handles.open, *guards, *([view.root_fd] if image is None else [])]
    return PreparedLaunch(launch, info, handles)


def _enter_view(launch: Launch, settings: SandboxSettings) -> None:
    """Make a launch enter the view of a layered workspace first; the user changes there, because root may enter it."""
    if settings.enter is None:
        return
    if launch.program is not None:
        launch.argv[0], launch.program = f"/proc/self/fd/{launch.program}", None
    launch.argv = [*settings.enter(launch.user), *launch.argv]
    launch.user = None


def _first_process(settings: SandboxSettings, supervisor: list[str]) -> list[str]:
    return first_command.script(
        supervisor,
        memory_kib=memory_limit(settings) // KIB,
        file_blocks=settings.limits.sandbox_file_bytes // 512,
        open_files=settings.limits.sandbox_open_files,
    )


def _run_by_handle(launch: Launch, program: str, mounts: bwrap_args.Mounts, handles: _Handles) -> None:
    """Run copies of the program and its libraries, because the user that runs them cannot reach the originals.

    Commands would inherit these handles. Bubblewrap closes the handles of files that it copies, so the arguments make
    it copy these files, to a directory that a later mount covers.
    """
    launch.program, *libraries = [handles.copy(part) for part in find_bwrap.parts(program)]
    launch.environment["LD_PRELOAD"] = " ".join(f"/proc/self/fd/{fd}" for fd in libraries)
    mounts.data.extend((f"/tmp/{fd}", fd) for fd in (launch.program, *libraries))  # noqa: S108  a mount covers it


def _mounts(view: WorkspaceView, user: Identity, handles: _Handles, occupied: OccupiedNames) -> bwrap_args.Mounts:
    """Return the mounts that make up the sandbox, with handles of what they show."""
    settings, root, home = view.settings, view.root, visible_paths.private_home(view.home)
    etc_directories, etc_files = visible_paths.etc_names(network=view.network)
    rights = {right.partition(" ")[2]: right for right in settings.granted}
    readable = _readable(view, user, etc_directories)
    writable = visible_paths.within_reach(view.trusted(settings.writable), user.drop_to)
    hidden = _hidden(view, [root, *(path for path, _ in (*readable, *writable))])
    writable += _held(view, hidden, writable)
    return bwrap_args.Mounts(
        root=root,
        root_fd=view.root_fd,
        home=home,
        uid=user.uid,
        gid=user.gid,
        network=view.network,
        environment=_variables(view, home),
        limits=settings.limits,
        system=visible_paths.system_directories(),
        read_only=[(path, handles.path(real, rights.get(path, ""))) for path, real in readable],
        writable=[(path, handles.path(real, rights.get(path, ""))) for path, real in writable],
        guards=[(f"{root}/{name}", fd, writable) for name, fd, writable in occupied.ordered()],
        hidden_files=[(path, handles.data(b"")) for path, is_directory in hidden.items() if not is_directory],
        hidden_directories=[path for path, is_directory in hidden.items() if is_directory],
        data=_etc_data(view, user, home, etc_files, handles, occupied.ignore_rules),
    )


def _image_mounts(view: WorkspaceView, image: ImageRoot, user: Identity) -> bwrap_args.Mounts:
    """Check an image, write what depends on the network, and return its mounts. Raises ImageRefused."""
    checked(image.fd, view.root)
    own = {"hosts": LOCAL_HOSTS, "resolv.conf": NAME_SERVER}
    write_etc(image.fd, {name: _of_machine(name) for name in own} if view.network else own)
    return bwrap_args.Mounts(
        root=view.root,
        root_fd=view.root_fd,
        home="",
        uid=user.uid,
        gid=user.gid,
        network=view.network,
        environment={},
        limits=view.settings.limits,
        image=image.at,
        tools=image_tools()[0],
    )


def _of_machine(name: str) -> bytes:
    try:
        with open(f"/etc/{name}", "rb") as file:
            return file.read(MIB)
    except OSError:
        return b""


def _held(view: WorkspaceView, hidden: Iterable[str], writable: Paths) -> Paths:
    """Return the directories between writable ones and hidden paths: each is mounted, so no command can rename it."""
    outside = [path for path in hidden if not visible_paths.is_inside(path, view.root)]
    parents = {str(parent) for path in outside for parent in PurePath(path).parents} - dict(writable).keys()
    return [(each, each) for each in sorted(parents) if any(visible_paths.is_inside(each, top) for top, _ in writable)]


def _readable(view: WorkspaceView, user: Identity, etc_directories: list[str]) -> Paths:
    """Return the paths that commands may read and that their user can reach."""
    etc = [(path, path) for path in etc_directories]
    return visible_paths.within_reach([*etc, *view.toolchains(), *view.trusted(view.settings.readable)], user.drop_to)


def _hidden(view: WorkspaceView, visible: list[str]) -> dict[str, bool]:
    """Return the outermost hidden paths that exist and would be visible otherwise; never one that holds the root.

    Each says whether it is a directory.
    """
    kinds = {place: kind for path in view.settings.hidden for place, kind in [_real(view, path)] if kind is not None}
    hidden = [path for path in kinds if any(visible_paths.is_inside(path, there) for there in visible)]
    outer = visible_paths.outermost(path for path in hidden if not visible_paths.is_inside(view.root, path))
    return {path: bool(kinds[path]) for path in outer}


def _real(view: WorkspaceView, path: str) -> tuple[str, bool | None]:
    """Return the real path of a hidden one, and whether it is a directory; None if it does not exist.

    A path in a layered workspace is looked up in its view: under its name lies the root alone.
    """
    if view.settings.enter is not None and visible_paths.is_inside(path, view.root) and path != view.root:
        kind = kind_at(view.root_fd, os.path.relpath(path, view.root))
        return path, None if kind == "absent" else kind == "directory"
    return os.path.realpath(path), os.path.isdir(path) if os.path.exists(path) else None


def _etc_data(
    view: WorkspaceView, user: Identity, home: str, etc_files: list[str], handles: _Handles, ignore_rules: str
) -> list[tuple[str, int]]:
    """Open the files to copy into /etc: the machine's, and our own for accounts, hosts and git."""
    own = {name: text.encode() for name, text in visible_paths.accounts(user.uid, user.gid, home).items()}
    own |= visible_paths.git_files(ignore_rules, view.git_identity())
    if not view.network:
        own |= {"/etc/hosts": LOCAL_HOSTS, "/etc/resolv.conf": NAME_SERVER}
    return [
        *((name, handles.content(name)) for name in etc_files if name not in own),
        *((name, handles.data(content)) for name, content in own.items()),
    ]


def _variables(view: WorkspaceView, home: str) -> dict[str, str]:
    image = view.settings.image
    variables = visible_paths.environment(view.user_environment, home, view.settings.environment)
    if image is not None:
        kept = {name: value for name, value in variables.items() if name not in ("SHELL", "USER", "LOGNAME")}
        variables = {**kept, "PATH": IMAGE_PATH, "HOME": "/" if image.uid else "/root", **image.variables}
    return variables if view.settings.level in ("network", "off") else NO_VERSION_CHECK | variables


def environment(view: WorkspaceView, private: str | None) -> dict[bytes, bytes]:
    """Return the variables of every command. `private` is its home at levels where no mount can hide the real one."""
    home = view.home if view.settings.level == "off" else visible_paths.private_home(view.home)
    variables = _variables(view, private or home)
    if private is not None:
        variables["TMPDIR"] = private
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}


def unconfined(view: WorkspaceView, *, reduced: bool) -> Launch:
    """Return a launch of the supervisor without bubblewrap. At level `reduced` the supervisor confines itself."""
    user = identity(view.root_fd) if reduced else Identity(None, 0, 0)
    handles = [view.root_fd] if reduced else []
    path = interpreter.find(user.drop_to)
    if path is None:
        raise PermissionError(
            errno.EACCES, f"the workspace's owner ({user.uid}) can reach no interpreter of our version"
        )
    launch = Launch([*entering([path]), "0"], handles, user.drop_to)
    _enter_view(launch, view.settings)
    return launch


def command_limits(settings: SandboxSettings, level: Level) -> list[tuple[int, int]]:
    """Return the resource limits of each process. A core limit of 1 byte also prevents cores piped to a program."""
    limits = settings.limits
    if level == "off":
        return []
    common = [
        (resource.RLIMIT_CORE, 1),
        (resource.RLIMIT_NOFILE, limits.sandbox_open_files),
        (resource.RLIMIT_FSIZE, limits.sandbox_file_bytes),
        (resource.RLIMIT_DATA, memory_limit(settings)),
    ]
    # Without a user namespace the kernel would count the user's other processes too; there the supervisor counts.
    return common if level == "reduced" else [*common, (resource.RLIMIT_NPROC, limits.sandbox_processes)]


def memory_limit(settings: SandboxSettings) -> int:
    """Return the memory that commands may use: at most three quarters of the machine's."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(settings.limits.sandbox_memory_bytes, machine * 3 // 4)


def watch(view: WorkspaceView) -> dict[str, Any]:
    """Return the limits that the supervisor enforces because the kernel does not."""
    limits = view.settings.limits
    room = os.fstatvfs(view.root_fd)
    free = room.f_bavail * room.f_frsize
    return {
        "root": view.root,
        "processes": limits.sandbox_processes,
        "memory": memory_limit(view.settings),
        "disk_reserve": min(limits.sandbox_disk_reserve_bytes, free // 2),
        "pause": 0.05,
        "longest_pause": 2.0,
    }
