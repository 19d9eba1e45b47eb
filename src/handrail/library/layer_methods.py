"""Gives a layered workspace its methods: what differs from the root, apply, discard, fork and snapshot."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from handrail.errors import CallError, DeniedError, WorkspaceError

if TYPE_CHECKING:
    from os import PathLike  # noqa: TID251  for a type

    from handrail.kernel.fs.boundary import FsBoundary
    from handrail.kernel.layers.copied_layer import CopiedLayer
    from handrail.kernel.layers.layer_archive import About, Snapshot
    from handrail.kernel.layers.layer_store import LayerStore
    from handrail.kernel.layers.workspace_layer import WorkspaceLayer
    from handrail.library.client_session import ClientSession
    from handrail.library.layer_changes import LayerChange
    from handrail.model.limits import Limits
    from handrail.policy.callback import AnyApprover
    from handrail.runtime.session import Services
    from handrail.runtime.undo_plan import Plan

Running = Literal["refuse", "end"]
"""What happens if a command runs: the method is refused, or the command ends."""


TEMPORARY = "temporary-"
"""The name of a layer that is removed when it closes begins with this."""
LAYER_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}")


class ImagePlace(NamedTuple):
    """Says which image is a workspace, and which directory in it."""

    image: str
    """As the user names it: `oci:PATH[:TAG]` or `docker-archive:PATH`."""
    workdir: str | None = None
    """An absolute path in the image; None for the one that its configuration names."""


class LayerMethods:
    """Adds the methods of layers to a workspace. `Workspace` provides the attributes."""

    _services: "Services"
    _sessions: "set[ClientSession]"
    _given: Mapping[str, Any]
    _approver: "AnyApprover | None"
    _tell: Callable[[str], None]
    _place: "ImagePlace | None"
    warnings: list[str]

    @classmethod
    def from_settings(
        cls,
        root: "str | PathLike[str] | None",
        settings: Mapping[str, Any],
        *,
        approver: "AnyApprover | None" = None,
        tell: Callable[[str], None] | None = None,
        layered: bool | str = False,
        image: str | None = None,
        workdir: str | None = None,
    ) -> Self:
        """Open a workspace with settings by name."""
        raise NotImplementedError

    @property
    def layer(self) -> str | None:
        """The name of the layer that takes the changes, for `layered=`; None for a plain workspace."""
        found = self._services.layer or self._services.copied
        return None if found is None else found.name

    def changes(self) -> "list[LayerChange]":
        """Return what differs between a layered workspace and its root, sorted by path.

        Raises CallError if the workspace is not layered, or a changed file is larger than an edit may read.
        """
        from handrail.kernel.fs.boundary import FsBoundary  # noqa: PLC0415  for layered workspaces only
        from handrail.kernel.fs.reader import Reader  # noqa: PLC0415  for layered workspaces only
        from handrail.library.layer_changes import layer_changes  # noqa: PLC0415  for layered workspaces only

        place, layer = self._layer().store.root, self._services.layer
        if layer is not None and layer.image is not None:
            place = f"/proc/self/fd/{layer.root_view()}"
        with _errors():
            boundary = FsBoundary(place)
            try:
                return layer_changes(self._services, Reader(boundary, self._services.limits))
            finally:
                boundary.close()

    def apply(self, *, running: Running = "refuse") -> "Plan":
        """Bring the changes of the layer into its root: after approval, all or none, as one entry of its history.

        The layer is empty afterwards. If a file changed in the root meanwhile, both versions are merged. If a merge is
        not clean, the returned plan has a conflict, and nothing is done.

        Raises:
            DeniedError: The change was not approved.
            CallError: A command runs, or the workspace is not layered.

        """
        layer = self._layer()
        if self._place is not None:
            raise CallError("an image has no directory to apply changes to", "Use commit", code="no_root")
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
        store, copied = layer.store, services.copied

        def fill(place: str) -> None:
            copy_state(services.state, services.journal, place)
            if copied is not None:
                copied.copy_for_fork(place)

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

    def snapshot(self, *, running: Running = "refuse") -> "Snapshot":
        """Return the changes, the journal and the memory of this workspace as a value: store it, send it, open it.

        `Workspace.open` makes a workspace of it, over a root with the same content, or over the same image.
        `running` is as for `fork`.
        """
        from handrail.kernel.layers.layer_archive import pack  # noqa: PLC0415  for snapshots only

        layer, services = self._services.layer, self._services
        if layer is None:
            self._layer()
            raise CallError(
                "a copy has no snapshot", "Use a machine with layers: see handrail doctor", code="no_layers"
            )
        with self._quiet(running, "snapshot"), _errors():
            about = layer.about()
            with layer.frozen(services.limits.layer_depth) as upper:
                return pack(upper, services.state.path, about, layer.store.path)

    @classmethod
    def open(
        cls,
        snapshot: "Snapshot",
        root: "str | PathLike[str] | None" = None,
        *,
        image: str | None = None,
        approver: "AnyApprover | None" = None,
        tell: Callable[[str], None] | None = None,
        **settings: Any,
    ) -> Self:
        """Open a snapshot over a root or an image, by default the one that it was taken of, as a layered workspace.

        The root must have the content that it had then, and an image the same configuration. The layer of the
        workspace is removed when it closes. Raises WorkspaceError for a root with another content, for another image
        and for a file that is no snapshot; ImageError for an image that cannot be used.
        """
        from handrail.library.load_settings import users_limits  # noqa: PLC0415  for snapshots only

        restored = _restored(snapshot, None if root is None else str(root), image, users_limits(settings))
        try:
            place = restored.place._asdict() if restored.place else {"root": restored.store.root}
            return cls.from_settings(
                **{"root": None} | place, settings=settings, approver=approver, tell=tell, layered=restored.name
            )
        except BaseException:
            restored.store.remove(restored.name)
            raise

    def _reopened(self, root: str, layered: bool | str) -> Self:
        """Open another workspace with the settings and the approver of this one."""
        image: dict[str, Any] = {} if self._place is None else self._place._asdict()
        place = root if self._place is None else None
        return self.from_settings(
            place, self._given, approver=self._approver, tell=self._tell, layered=layered, **image
        )

    def _layer(self) -> "WorkspaceLayer | CopiedLayer":
        found = self._services.layer or self._services.copied
        if found is None:
            raise CallError("the workspace has no layer", "Open it with layered=True", code="not_layered")
        return found

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
            shells = sum(session.holds_programs() for session in sessions) - busy
            for session in sessions:
                session.end_processes()
            for session in sessions:
                session.open_calls.wait_until_empty()
            if busy:
                self.warnings.append(f"{what} ended the commands that ran in {busy} session(s)")
            if shells > 0:
                self.warnings.append(
                    f"{what} ended the shells that waited in {shells} session(s): the next command starts a new one"
                )
            known = vars(self._services).pop("command_changes", None)
            if known is not None:
                known.close()  # the next command starts a new one
            for session in sessions:
                held.enter_context(session.seen.own_command(self._services.reader))
            yield

    def _applied(self, layer: "WorkspaceLayer | CopiedLayer") -> "Plan":
        """Carry the changes out in the root, with a plain workspace of its own."""
        from handrail.library.layer_changes import layer_changes, plan_of  # noqa: PLC0415  for layered workspaces only
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

    def _emptied(self, layer: "WorkspaceLayer | CopiedLayer") -> None:
        journal = self._services.journal
        layer.discard(journal.last_number() if journal.on else 0)


def open_layer(
    boundary: "FsBoundary", layered: bool | str, limits: "Limits", warnings: list[str]
) -> "WorkspaceLayer | CopiedLayer":
    """Open a layer over a root and show its view through the boundary; open a copy where the system has no layers.

    Raises WorkspaceError.
    """
    from handrail.kernel.layers.layer_store import DEFAULT, LayerStore  # noqa: PLC0415  for layered workspaces only
    from handrail.kernel.layers.overlay import OverlayRefused  # noqa: PLC0415  for layered workspaces only
    from handrail.kernel.layers.upper import LayerBusy  # noqa: PLC0415  for layered workspaces only
    from handrail.kernel.layers.workspace_layer import WorkspaceLayer  # noqa: PLC0415  for layered workspaces only

    name = DEFAULT if layered is True else str(layered)
    if not LAYER_NAME.fullmatch(name):
        raise WorkspaceError(
            f"{name!r} is not a valid name of a layer", "Use letters, digits, dots, dashes and underscores"
        )
    try:
        return WorkspaceLayer(LayerStore(boundary.root), name, boundary)
    except LayerBusy:
        why = f"cannot open the layer {name} of {boundary.root}: it is open already"
        raise WorkspaceError(why, "Close the other workspace, or name another layer") from None
    except OverlayRefused as refused:
        return _open_copy(boundary, name, refused.strerror or str(refused), limits, warnings)
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        raise WorkspaceError(f"cannot open a layer over {boundary.root}: {error.strerror or error}{place}") from error


def _open_copy(boundary: "FsBoundary", name: str, why: str, limits: "Limits", warnings: list[str]) -> "CopiedLayer":
    """Open a copy of the root instead of a layer, and add a warning. Raises WorkspaceError."""
    from handrail.kernel.host.scratch import CopyTooLarge  # noqa: PLC0415  where the system has no layers
    from handrail.kernel.layers.copied_layer import CopiedLayer  # noqa: PLC0415  where the system has no layers
    from handrail.kernel.layers.layer_store import LayerStore  # noqa: PLC0415  for layered workspaces only

    try:
        copied = CopiedLayer(LayerStore(boundary.root), name, boundary, why, limits.layer_copy_bytes)
    except (CopyTooLarge, OSError) as error:
        problem = error.strerror if isinstance(error, OSError) else str(error)
        raise WorkspaceError(
            f"{boundary.root} cannot have a layer here: {why}; nor can it be copied: {problem}"
        ) from None
    warnings.append(f"this workspace is a copy in {copied.place}, not a layer: {why}")
    return copied


class _Restored(NamedTuple):
    """A layer that was made from a snapshot."""

    store: "LayerStore"
    name: str
    place: ImagePlace | None
    """The image below; None over a directory."""


def _restored(snapshot: "Snapshot", root: str | None, image: str | None, limits: "Limits") -> _Restored:
    """Make a layer from a snapshot. Raises WorkspaceError and ImageError."""
    from handrail.kernel.layers.layer_archive import BadSnapshot, unpack  # noqa: PLC0415  for snapshots only
    from handrail.kernel.layers.layer_store import LayerRecord  # noqa: PLC0415  for snapshots only

    try:
        with snapshot.read() as (about, archive):
            place = ImagePlace(image or about.root, about.workdir) if about.workdir else None
            if (root if place else image) is not None:
                kind, other = ("an image", "image=") if place else ("a directory", "the root")
                raise WorkspaceError(f"the snapshot is of {kind}", f"Name {kind} with {other}")
            store = _image_store(about, place, limits) if place else _root_store(about, root)
            with store.locked():
                record = LayerRecord(store.root, forked=True, began=time.time_ns())
                name = store.add(record, lambda at: unpack(archive, at, owners=place is None))
            return _Restored(store, name, place)
    except BadSnapshot as bad:
        raise WorkspaceError(f"cannot open the snapshot: {bad}") from None
    except OSError as error:
        raise WorkspaceError(f"cannot open the snapshot: {error.strerror or error}") from error


def _root_store(about: "About", root: str | None) -> "LayerStore":
    """Return the layers over a root that has the content of a snapshot. Raises WorkspaceError and OSError."""
    from handrail.kernel.fs.boundary import FsBoundary  # noqa: PLC0415  for snapshots only
    from handrail.kernel.layers.content_id import content_id  # noqa: PLC0415  for snapshots only
    from handrail.kernel.layers.layer_store import LayerStore  # noqa: PLC0415  for snapshots only
    from handrail.model.faults import PathFault  # noqa: PLC0415  for snapshots only
    from handrail.tools.fault_errors import workspace_error  # noqa: PLC0415  for snapshots only

    try:
        boundary = FsBoundary(about.root if root is None else root)
    except PathFault as fault:
        raise workspace_error(root or "", fault) from fault
    try:
        store = LayerStore(boundary.root)
        if content_id(boundary.fd, f"{store.path}/digests.json") != about.content:
            raise WorkspaceError(f"the content of {boundary.root} differs from the root of the snapshot")
        return store
    finally:
        boundary.close()


def _image_store(about: "About", place: ImagePlace, limits: "Limits") -> "LayerStore":
    """Return the layers over the image that a snapshot was taken of. Raises WorkspaceError, ImageError and OSError."""
    from handrail.kernel.oci.image_layer import image_store  # noqa: PLC0415  for images only
    from handrail.kernel.oci.image_manifest import open_image  # noqa: PLC0415  for images only
    from handrail.kernel.oci.image_names import image_name  # noqa: PLC0415  for images only

    with open_image(image_name(place.image), limits) as image:
        if image.digest != about.content:
            raise WorkspaceError(f"{image.name} is not the image of the snapshot")
        return image_store(image, about.workdir)


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
