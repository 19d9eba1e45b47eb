"""Holds what all clients of a workspace share (Services) and what one client has (Session), started on first use."""

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.reader import Reader
from handrail.kernel.fs.trees import Trees, in_memory
from handrail.kernel.host.own_places import (
    inside,
    make_own_directories,
    make_temporary_directory,
    own_places,
    random_token,
    remove_directory,
)
from handrail.kernel.host.state_dir import State
from handrail.kernel.journal.journal import Journal, Origin
from handrail.kernel.network.connection_log import ConnectionLog
from handrail.kernel.page.page_place import exists, page_socket
from handrail.kernel.write.writer import Writer
from handrail.model.approval import Approver
from handrail.model.faults import Closed
from handrail.model.limits import Limits
from handrail.model.paths import stem_of, unquote
from handrail.model.rights import Rights
from handrail.ops.glob.guarded_names import GUARDED, OWN_FILES, guarded_place
from handrail.runtime.open_calls import OpenCalls
from handrail.runtime.stale_files import SeenFiles
from handrail.settings import Powers

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from handrail.kernel.git.watch import GitWatch
    from handrail.kernel.journal.command_changes import CommandChanges
    from handrail.kernel.layers.copied_layer import CopiedLayer
    from handrail.kernel.layers.workspace_layer import WorkspaceLayer
    from handrail.kernel.process.job_records import JobRecord
    from handrail.kernel.process.jobs import JobFacts, Jobs
    from handrail.kernel.process.remembered_shell import Shells
    from handrail.kernel.process.runner import Processes
    from handrail.kernel.process.terminals import Terminals
    from handrail.kernel.sandbox.levels import Enter
    from handrail.kernel.sandbox.sandbox import Sandbox
    from handrail.kernel.sandbox.view.image_root import ImageRoot
    from handrail.kernel.search.searcher import Searcher
    from handrail.kernel.web.fetcher import Fetcher
    from handrail.runtime.call_hooks import CallHooks
    from handrail.runtime.command_checks import LastCommand
    from handrail.runtime.page_session import PageSession
    from handrail.runtime.spans import Spans


@dataclass(frozen=True)
class Services:
    """Holds the parts that all sessions of one open workspace share."""

    trees: Trees
    state: State
    limits: Limits
    writer: Writer
    powers: Powers
    journal: Journal
    layer: "WorkspaceLayer | None" = None
    """The layer that takes the changes; None for a plain workspace. Where there are none, `copied` takes them."""
    copied: "CopiedLayer | None" = None
    own: tuple[str, ...] = ()
    """Handrail's own files and directories, which no tool and no command may read."""

    @property
    def boundary(self) -> FsBoundary:
        """The boundary of the workspace."""
        return self.trees.workspace

    @property
    def enter(self) -> "Enter | None":
        """Returns the command that enters the view of a layer; None for a plain workspace."""
        return None if self.layer is None else self.layer.enter

    @property
    def image(self) -> "ImageRoot | None":
        """The view of a container image in which commands run; None if they run over the system of the host."""
        return None if self.layer is None else self.layer.image

    @cached_property
    def reader(self) -> Reader:
        """Reads the workspace."""
        return Reader(self.boundary, self.limits)

    @cached_property
    def memory_reader(self) -> Reader:
        """Reads the memory directory."""
        return Reader(self.trees.memory, self.limits._replace(edit_bytes=self.limits.memory_file_bytes))

    def reader_of(self, target: str) -> Reader:
        """Return what reads the tree of a resolved path."""
        return self.memory_reader if in_memory(target) else self.reader

    @cached_property
    def guarded_names(self) -> tuple[str, ...]:
        """The names that no command can change and no rule approves: usual or configured ones, and Handrail's own."""
        names = GUARDED if self.powers.guarded is None else self.powers.guarded
        return () if self.image else (*names, *own_places(self.boundary.root))  # the host runs nothing of an image

    def guarded(self, paths: Iterable[str]) -> str:
        """Return the guarded name that one of these paths is, or is inside of; empty if there is none."""
        names = self.guarded_names
        return next((found for path in paths if (found := guarded_place(unquote(path), names))), "")

    def masks(self) -> dict[str, tuple[int, int]]:
        """Return the protected paths that exist now, with their identities, for a sandbox to cover."""
        protected, root = None if self.image else self.boundary.protected, self.boundary.root
        return {} if protected is None else {stem_of(root) + name: found for name, found in protected.masks().items()}

    @cached_property
    def searcher(self) -> "Searcher":
        from handrail.kernel.search.searcher import Searcher  # noqa: PLC0415  loaded on first use

        return Searcher(self.limits, workspace=self.boundary.root, builtin=self.powers.builtin_search)

    @cached_property
    def fetcher(self) -> "Fetcher":
        from handrail.kernel.web.fetcher import Fetcher  # noqa: PLC0415  loaded on first use

        return Fetcher(self.limits, self.powers.allow_hosts)

    @cached_property
    def command_changes(self) -> "CommandChanges":
        from handrail.kernel.journal.command_changes import CommandChanges  # noqa: PLC0415  loaded on first use

        return CommandChanges(self.boundary, self.state, self.journal, self.limits, self.layer)

    def close(self) -> None:
        """Release all handles, and prune the journal once a day."""
        if "command_changes" in vars(self):
            self.command_changes.close()
        self.writer.close()
        if self.journal.wants_pruning():
            from handrail.kernel.journal.prune import prune_daily  # noqa: PLC0415  once a day

            prune_daily(self.state, self.journal, self.limits)
        self.journal.blobs.close()
        self.trees.close()
        for layer in (self.layer, self.copied):
            if layer is not None:
                layer.close(remove=layer.record.forked)


class Session:
    """Holds what belongs to one client: its approver, its sandbox with all that runs there, its last command."""

    def __init__(
        self, services: Services, approver: Approver, may_forbid: Callable[[str], bool], *, read_only: bool = False
    ) -> None:
        self.services, self.approver, self.read_only = services, approver, read_only
        self.may_forbid = may_forbid
        """Says whether a rule may forbid a tool, so that the approver must be asked before a call begins."""
        self.id = f"{time.strftime('%Y%m%d-%H%M%S')}-{random_token()}"
        self.last_command: LastCommand | None = None
        self.directory = "."
        """The directory in which the next command starts, in a dialect whose commands keep the directory."""
        self.seen = SeenFiles(services.limits.seen_bytes)
        self.open_calls = OpenCalls()
        self.hooks: CallHooks | None = None
        """The user's hooks; None if there are none."""
        self.spans: Spans | None = None
        """Describes calls as spans; None without telemetry."""
        self.note: Callable[[str, dict[str, Any]], None] = lambda _event, _facts: None
        """Writes an event to the session log."""
        self.connections = ConnectionLog(services.limits.network_logged, lambda facts: self.note("connection", facts))
        self.refused_hosts: tuple[str, ...] = ()
        """The hosts that the last command was refused because no setting names them."""
        self.next_rights = Rights()
        """What the next command may ask for beyond the sandbox, because a call has requested it."""
        self._lock, self._closing, self._ended = threading.Lock(), threading.RLock(), False
        self._sandbox: Sandbox | None = None
        self._processes: Processes | None = None
        self._terminals: Terminals | None = None
        self._shells: Shells | None = None
        self._jobs: Jobs | None = None
        self._own_spools = ""
        self.shell = "/bin/bash" if services.image is None else services.image.shell  # runs commands
        self.client = ""
        """The program that makes the calls, as the page shows it; empty for this program."""
        self._page_socket = page_socket()
        self._page: PageSession | None = None

    @property
    def page(self) -> "PageSession | None":
        """What reports this session to the page; None if no page's server runs."""
        page = self._page
        if page is None:
            if not exists(self._page_socket):
                return None
            from handrail.runtime.page_session import PageSession  # noqa: PLC0415  only if a page's server runs

            with self._lock:
                page = self._page = self._page or PageSession(self)
        return page if page.there() else None

    @property
    def sandbox(self) -> "Sandbox":
        """The sandbox of this session, made on first use. Its first command starts it. Raises Closed after close()."""
        from handrail.kernel.process.runner import Processes  # noqa: PLC0415  most sessions run no command
        from handrail.kernel.sandbox.sandbox import Sandbox, SandboxSettings  # noqa: PLC0415  loaded on first use

        with self._lock:
            if self.open_calls.closed:
                raise Closed
            if self._sandbox is None:
                services, powers = self.services, self.services.powers
                make_own_directories((services.boundary.root, *powers.writable))
                spools = self._spool_directory()
                settings = SandboxSettings(
                    powers.level,  # type: ignore[arg-type]  # the settings have checked that this is a level
                    allow_reduced=powers.allow_reduced,
                    readable=(*powers.readable, spools),
                    writable=powers.writable,
                    environment=powers.environment,
                    guarded=(*services.guarded_names, *OWN_FILES),
                    hidden=services.own,
                    image=services.image,
                    hosts=powers.network,
                    private_hosts=powers.allow_hosts,
                    enter=services.enter,
                    limits=services.limits,
                )
                self._sandbox = Sandbox(
                    services.boundary.fd,
                    services.boundary.root,
                    settings,
                    masks=services.masks,
                    connections=self.connections,
                )
                self._processes = Processes(self._sandbox, spools)  # makes the directory that the sandbox shows
            return self._sandbox

    def part(self, name: str) -> "AbstractContextManager[Span | None]":
        """Open a span for a part of a call; without telemetry nothing happens."""
        return self.spans.part(name) if self.spans else nullcontext()

    def next_level(self) -> str:
        """Return the sandbox level at which the next command runs; try once what this machine provides."""
        powers = self.services.powers
        if powers.sandbox == "off" or not powers.allow_reduced:
            return powers.level
        return self.named_level(self.sandbox.settle_level())

    def named_level(self, level: str) -> str:
        """Return the name of a level in questions and rules, which also tells whether `reduced` has a network."""
        with_network = level == "reduced" and self.services.powers.level == "network"
        return "reduced-network" if with_network else level

    @cached_property
    def git(self) -> "GitWatch":
        """Checks git directories before and after this session's commands."""
        from handrail.kernel.git.watch import GitWatch  # noqa: PLC0415  most sessions run no command

        services, record = self.services, f"{self.services.state.path}/git.json"
        on = services.powers.sandbox != "off" and services.image is None
        return GitWatch(services.boundary.fd, services.boundary.root, record, services.limits, self.is_busy, on=on)

    def is_busy(self) -> bool:
        """Return True if a process runs that a finished call has started."""
        background = self._sandbox is not None and self._sandbox.has_background
        parts = (self._terminals, self._jobs, self._shells)
        return background or any(part is not None and part.any_busy for part in parts)

    def holds_programs(self) -> bool:
        """Return True if a program runs, or may run, between calls: a copy of the files would not have it."""
        return self._terminals is not None or self._shells is not None or self.is_busy()

    def _spool_directory(self) -> str:
        """Return the directory for whole outputs: with the state, or a temporary one if commands cannot reach that."""
        from handrail.kernel.sandbox.view.command_user import identity  # noqa: PLC0415  most sessions run no command

        services, powers = self.services, self.services.powers
        visible = (services.boundary.root, *powers.readable, *powers.writable)
        covered = any(inside(directory, services.state.path) for directory in visible)
        if powers.sandbox == "off" or (identity(services.boundary.fd).drop_to is None and not covered):
            return f"{services.state.path}/output"
        self._own_spools = make_temporary_directory()
        return self._own_spools

    @property
    def processes(self) -> "Processes":
        """Return the runner of commands in the sandbox of this session."""
        _ = self.sandbox
        assert self._processes is not None  # noqa: S101  made together with the sandbox
        return self._processes

    @property
    def terminals(self) -> "Terminals":
        """The terminals of this session, in its sandbox."""
        from handrail.kernel.process.terminals import Terminals  # noqa: PLC0415  loaded on first use

        sandbox = self.sandbox
        with self._lock:
            if self._terminals is None:
                self._terminals = Terminals(sandbox, self._terminal_printed)
            return self._terminals

    @property
    def shells(self) -> "Shells":
        """The shells of this session that remember, in its sandbox."""
        from handrail.kernel.process.remembered_shell import Shells  # noqa: PLC0415  loaded on first use

        processes = self.processes
        with self._lock:
            if self._shells is None:
                self._shells = Shells(processes, self.shell)
            return self._shells

    @property
    def jobs(self) -> "Jobs":
        """The jobs of this session, in its sandbox."""
        from handrail.kernel.process.job_records import JobRecord  # noqa: PLC0415  loaded on first use
        from handrail.kernel.process.jobs import Jobs  # noqa: PLC0415  loaded on first use

        processes = self.processes
        with self._lock:
            if self._jobs is None:
                record = JobRecord(self.services.state, self.id)
                self._jobs = Jobs(processes, partial(self._jobs_changed, record), self._job_printed)
            return self._jobs

    def _terminal_printed(self, name: str, chunk: bytes) -> None:
        if self._page is not None:
            self._page.print_held(f"terminal {name}", chunk)

    def _job_printed(self, number: str, chunk: bytes) -> None:
        if self._page is not None:
            self._page.print_held(f"job {number}", chunk)

    def _jobs_changed(self, record: "JobRecord", jobs: "list[JobFacts]") -> None:
        record.update(jobs)
        if self._page is not None:
            self._page.report_held()

    @property
    def known_terminals(self) -> "Terminals | None":
        """The terminals of this session; None if it has started none."""
        return self._terminals

    @property
    def known_jobs(self) -> "Jobs | None":
        """The jobs of this session; None if it has started none."""
        return self._jobs

    def end_processes(self) -> None:
        """End everything that runs for this client; the next command starts a new sandbox."""
        with self._lock:
            parts = (self._terminals, self._jobs, self._shells, self._processes, self._sandbox)
            self._terminals = self._jobs = self._shells = self._processes = self._sandbox = None
        for part in (*parts, self.hooks):
            if part is not None:
                part.close()
        if "git" in vars(self):
            self._record_last_git_check()
            del self.git

    def close(self) -> None:
        """End all processes of this client, and wait for the calls that still run."""
        self.open_calls.close()
        with self._closing:
            if self._ended:
                return
            with self._lock:  # nothing is started after this
                parts = (self._terminals, self._jobs, self._shells, self._processes, self._sandbox)
            for part in (*parts, self.hooks):
                if part is not None:
                    part.close()
            self.open_calls.wait_until_empty()
            if self._page is not None:
                self._page.close()
            if "command_changes" in vars(self.services):
                with suppress(OSError):  # a full disk must not keep a session from ending
                    self.services.command_changes.end_session(self.id)
            if "git" in vars(self):
                self._record_last_git_check()
            if self._own_spools:
                remove_directory(self._own_spools)
            self._ended = True

    def _record_last_git_check(self) -> None:
        """Record in the history what background processes left in git directories: no call is left to report it."""
        from handrail.kernel.git.watch import in_short  # noqa: PLC0415  loaded on first use

        journal = self.services.journal
        notes = self.git.close(lambda: self.services.command_changes.find_repositories() if journal.on else [])
        if notes and journal.on:
            origin = Origin("command", self.id, about="(at the end of the session)")
            with suppress(OSError), self.services.state.lock():  # a full disk must not keep a session from ending
                journal.append(journal.compose(origin, (), "; ".join(map(in_short, notes))))
