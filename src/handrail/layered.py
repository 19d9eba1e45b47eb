"""Gives a layered workspace its methods: what differs from the root, apply, discard, fork and snapshot."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self

from handrail.errors import CallError, DeniedError, WorkspaceError

if TYPE_CHECKING:
    from os import PathLike  # noqa: TID251  for a type

    from handrail.client_session import ClientSession
    from handrail.kernel.fs.boundary import FsBoundary
    from handrail.kernel.layers.workspace_layer import WorkspaceLayer
    from handrail.layer_changes import LayerChange
    from handrail.policy.callback import AnyApprover
    from handrail.runtime.session import Services
    from handrail.runtime.undo_plan import Plan

Running = Literal["refuse", "end"]
"""What happens if a command runs: the method is refused, or the command ends."""


_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")


class LayeredWork:
    """Adds the methods of layers to a workspace. `Workspace` provides the attributes."""

    _services: "Services"
    _sessions: "set[ClientSession]"
    _given: Mapping[str, Any]
    _approver: "AnyApprover | None"
    _tell: Callable[[str], None]
    warnings: list[str]

    @classmethod
    def from_settings(
        cls,
        root: "str | PathLike[str]",
        settings: Mapping[str, Any],
        *,
        approver: "AnyApprover | None" = None,
        tell: Callable[[str], None] | None = None,
        layered: bool | str = False,
    ) -> Self:
        """Open a workspace with settings by name."""
        raise NotImplementedError

    @property
    def layer(self) -> str | None:
        """The name of the layer that takes the changes, for `layered=`; None for a plain workspace."""
        return None if self._services.layer is None else self._services.layer.name

    def changes(self) -> "list[LayerChange]":
        """Return what differs between a layered workspace and its root, sorted by path.

        Raises CallError if the workspace is not layered, or a changed file is larger than an edit may read.
        """
        from handrail.kernel.fs.boundary import FsBoundary  # noqa: PLC0415  for layered workspaces only
        from handrail.kernel.fs.reader import Reader  # noqa: PLC0415  for layered workspaces only
        from handrail.layer_changes import layer_changes  # noqa: PLC0415  for layered workspaces only

        layer = self._layer()
        with _errors():
            boundary = FsBoundary(layer.store.root)
            try:
                return layer_changes(self._services, Reader(boundary, self._services.limits))
            finally:
                boundary.close()

    def apply(self, *, running: Running = "refuse") -> "Plan":
        """Bring the changes of the layer into its root: after approval, all or none, as one entry of its history.

        The layer is empty afterwards. A file that changed in the root meanwhile is merged if that is clean. Conflicts
        are in the returned plan; then nothing is done.

        Raises:
            DeniedError: The change was not approved.
            CallError: A command runs, or the workspace is not layered.

        """
        layer = self._layer()
        with self._quiet(running, "apply"), _errors():
            plan = self._applied(layer)
            if plan.done:
                self._emptied(layer)
            return plan

    def discard(self, *, running: Running = "refuse") -> None:
        """Forget all changes of the layer: the workspace is as its root again. Raises CallError if a command runs."""
        layer = self._layer()
        with self._quiet(running, "discard"), _errors():
            self._emptied(layer)

    def fork(self, n: int = 1, *, running: Running = "refuse") -> list[Self]:
        """Return `n` independent workspaces that begin with the files, the journal and the memory of this one.

        Each has a layer of its own, which is removed when it closes. `running` says what happens if a command runs:
        `refuse` raises CallError, `end` ends everything that runs, and says so in `warnings`.
        """
        from handrail.kernel.journal.forked_state import copy_state  # noqa: PLC0415  for layered workspaces only

        layer, services = self._layer(), self._services
        store = layer.store

        def fill(place: str) -> None:
            copy_state(services.state, services.journal, place)

        with self._quiet(running, "fork"), _errors(), ExitStack() as opened:
            with store.locked():
                record = layer.freeze(services.limits.layer_depth)
                names = [store.add(record, fill) for _ in range(n)]
            made: list[Self] = []
            for name in names:
                made.append(self._reopened(store.root, name))
                opened.callback(made[-1].close)  # type: ignore[attr-defined]  # a workspace
            opened.pop_all()
            return made

    def _reopened(self, root: str, layered: bool | str) -> Self:
        """Open another workspace with the settings and the approver of this one."""
        return self.from_settings(root, self._given, approver=self._approver, tell=self._tell, layered=layered)

    def _layer(self) -> "WorkspaceLayer":
        if self._services.layer is None:
            raise CallError("the workspace has no layer", "Open it with layered=True", code="not_layered")
        return self._services.layer

    @contextmanager
    def _quiet(self, running: Running, what: str) -> Iterator[None]:
        """Let no call and no command run during the block. Raises CallError if one runs and should not be ended."""
        sessions = [each.inner for each in self._sessions]
        with ExitStack() as held:
            for session in sessions:
                held.enter_context(session.open_calls.held())
            busy = sum(session.open_calls.running > 0 or session.is_busy() for session in sessions)
            if busy and running == "refuse":
                raise CallError(
                    f"cannot {what}: a command is running", "Wait for it, or pass running='end'", code="busy"
                )
            for session in sessions:
                session.end_processes()
            for session in sessions:
                session.open_calls.wait_until_empty()
            if busy:
                self.warnings.append(f"{what} ended the commands that ran in {busy} session(s)")
            self._services.forget_commands()
            for session in sessions:
                held.enter_context(session.seen.own_command(self._services.reader))
            yield

    def _applied(self, layer: "WorkspaceLayer") -> "Plan":
        """Carry the changes out in the root, with a plain workspace of its own."""
        from handrail.layer_changes import layer_changes, plan_of  # noqa: PLC0415  for layered workspaces only
        from handrail.model.effects import Effect  # noqa: PLC0415  for layered workspaces only
        from handrail.model.faults import Conflict  # noqa: PLC0415  for layered workspaces only
        from handrail.runtime.call import Call  # noqa: PLC0415  for layered workspaces only
        from handrail.runtime.file_access import BOTH_TREES  # noqa: PLC0415  for layered workspaces only

        plain: Any = self._reopened(layer.store.root, layered=False)
        with plain:
            root, session = plain._services, plain._default.inner  # noqa: SLF001  of its own class
            for _ in range(root.limits.conflict_retries + 1):
                plan = plan_of(self._services, layer_changes(self._services, root.reader), root)
                if plan.conflicts:
                    return plan
                effects = Effect.READ | Effect.WRITE
                call = Call(session, "handrail", "apply", {"layer": layer.name}, effects, mount=BOTH_TREES)
                try:
                    approved = call.files.ask(*plan.changes) if plan.changes else None
                    if approved is not None:
                        call.files.carry_out(approved)
                except Conflict:
                    continue  # a file of the root changed after the plan was made
                plan.done = True
                return plan
        raise CallError("the files of the root keep changing; nothing was done", code="conflict")

    def _emptied(self, layer: "WorkspaceLayer") -> None:
        journal = self._services.journal
        layer.discard(journal.last_number() if journal.on else 0)


def open_layer(boundary: "FsBoundary", layered: bool | str) -> "WorkspaceLayer":
    """Open a layer over a root and show its view through the boundary. Raises WorkspaceError."""
    from handrail.kernel.layers.layer_store import DEFAULT, LayerStore  # noqa: PLC0415  for layered workspaces only
    from handrail.kernel.layers.upper import LayerBusy  # noqa: PLC0415  for layered workspaces only
    from handrail.kernel.layers.workspace_layer import WorkspaceLayer  # noqa: PLC0415  for layered workspaces only

    name = DEFAULT if layered is True else str(layered)
    if not _NAME.fullmatch(name):
        raise WorkspaceError(f"{name!r} is no name of a layer", "Use letters, digits, dots, dashes and underscores")
    try:
        return WorkspaceLayer(LayerStore(boundary.root), name, boundary)
    except LayerBusy:
        why = f"cannot open the layer {name} of {boundary.root}: it is open already"
        raise WorkspaceError(why, "Close the other workspace, or name another layer") from None
    except OSError as error:
        raise WorkspaceError(f"cannot open a layer over {boundary.root}: {error.strerror or error}") from error


@contextmanager
def _errors() -> Iterator[None]:
    """Turn faults and errors of the system into the exceptions of the library."""
    from handrail.model.faults import Closed, Denied, Fault  # noqa: PLC0415  for layered workspaces only

    try:
        yield
    except Fault as fault:
        from handrail.tools.fault_errors import closed_error, message_of  # noqa: PLC0415  only when something is wrong

        if isinstance(fault, Closed):
            raise closed_error() from fault
        said = message_of(fault)
        if isinstance(fault, Denied):
            raise DeniedError(said.message, said.suggestion) from fault
        raise CallError(said.message, said.suggestion, code=said.code) from fault
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise CallError(f"the layer cannot be used: {error.strerror or error}{place}", code="layer_failed") from error
