"""Opens container images as workspaces, and writes what changed in one as a new layer of an image."""

from contextlib import ExitStack
from typing import TYPE_CHECKING

from handrail.errors import ImageError, WorkspaceError
from handrail.library.layer_methods import LAYER_NAME, ImagePlace, LayerMethods, Running
from handrail.model.paths import NAME_BYTES, PATH_BYTES

if TYPE_CHECKING:
    from handrail.kernel.fs.boundary import FsBoundary
    from handrail.kernel.oci.image_layer import ImageLayer
    from handrail.model.limits import Limits
    from handrail.settings import Settings

FRESH = "fork-{}"
"""The name of a layer that is removed when its workspace closes."""


class ImageMethods(LayerMethods):
    """Adds the method that writes an image to a workspace. `Workspace` provides the attributes."""

    def commit(self, image: str, *, running: Running = "refuse") -> str:
        """Write what changed in the image as a new layer, as `oci:PATH:TAG`; return the digest of the new manifest.

        The layers below and the configuration stay as they are. `running` says what happens if a command runs, as for
        `fork`. Raises CallError if the workspace is no image, or a command runs; ImageError if it cannot be written.
        """
        from handrail.errors import CallError  # noqa: PLC0415  for images only
        from handrail.kernel.oci.image_layer import ImageLayer  # noqa: PLC0415  for images only
        from handrail.kernel.oci.image_writer import write_image  # noqa: PLC0415  for images only

        layer = self._layer()
        if not isinstance(layer, ImageLayer):
            raise CallError("the workspace is not a container image", "Open it with image=", code="not_an_image")
        with self._quiet(running, "commit"):
            return write_image(layer, image, self._services.limits)


def refuse_unconfined(settings: "Settings", warnings: list[str]) -> None:
    """Refuse settings that an image cannot have, and warn about those that have no effect in one."""
    if settings.sandbox == "off":
        raise ImageError("an image needs a sandbox, and sandbox is off", "Use strict or network")
    if settings.readable or settings.writable:
        warnings.append("readable and writable have no effect: commands in an image see no directory of the host")


def open_image_layer(
    place: ImagePlace, layered: bool | str, limits: "Limits", held: ExitStack
) -> "tuple[FsBoundary, ImageLayer]":
    """Open a layer over an image, and a boundary that shows its working directory. Raises ImageError.

    `layered` names a layer that stays, as for a directory; without it the layer is removed when it closes. What is
    open in `held` must stay open as long as the layer.
    """
    import secrets  # noqa: PLC0415  for images only

    from handrail.kernel.fs.boundary import FsBoundary  # noqa: PLC0415  for images only
    from handrail.kernel.layers.layer_store import DEFAULT  # noqa: PLC0415  for images only
    from handrail.kernel.layers.overlay import refusal  # noqa: PLC0415  for images only
    from handrail.kernel.layers.upper import LayerBusy  # noqa: PLC0415  for images only
    from handrail.kernel.oci.image_layer import ImageLayer  # noqa: PLC0415  for images only
    from handrail.kernel.oci.image_manifest import open_image  # noqa: PLC0415  for images only
    from handrail.kernel.oci.image_names import image_name  # noqa: PLC0415  for images only
    from handrail.kernel.oci.layer_cache import LayerCache  # noqa: PLC0415  for images only

    name = DEFAULT if layered is True else layered or FRESH.format(secrets.token_hex(6))
    if not LAYER_NAME.fullmatch(name):
        raise WorkspaceError(
            f"{name!r} is not a valid name of a layer", "Use letters, digits, dots, dashes and underscores"
        )
    if why := refusal():
        raise ImageError(f"this machine cannot use images: {why}", "`handrail doctor` says what is missing")
    found = image_name(place.image)
    image = held.enter_context(open_image(found, limits))
    workdir = _absolute(place.workdir or image.config.workdir, limits)
    cache = LayerCache(limits)
    cached = held.enter_context(cache.layers(image))
    boundary = FsBoundary(cache.path)
    try:
        return boundary, ImageLayer(name, boundary, image, cached, workdir, kept=bool(layered))
    except LayerBusy:
        boundary.close()
        why = f"cannot open the layer {name} of {place.image}: it is open already"
        raise WorkspaceError(why, "Close the other workspace, or name another layer") from None
    except OSError as error:
        boundary.close()
        raise ImageError(f"cannot open {place.image}: {error.strerror or error}") from None


def _absolute(workdir: str, limits: "Limits") -> str:
    """Return the working directory in one form. Raises ImageError if it is not an absolute path, or too long."""
    from handrail.kernel.oci.refusal import shown  # noqa: PLC0415  for images only

    parts = [part for part in workdir.split("/") if part not in ("", ".")]
    sizes = [len(part.encode(errors="surrogatepass")) for part in parts]
    why = ""
    if not workdir.startswith("/") or ".." in parts or "\0" in workdir:
        why = "is no absolute path"
    elif len(parts) > limits.oci_depth or max(sizes, default=0) > NAME_BYTES or sum(sizes) > PATH_BYTES // 2:
        why = "is too long"
    elif parts[:1] in (["proc"], ["dev"], ["tmp"]):
        why = "is private to each sandbox"
    if why:
        raise ImageError(f"the working directory {shown(workdir)} {why}", "Name another one with workdir")
    return "/" + "/".join(parts)
