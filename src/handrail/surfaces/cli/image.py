"""Implements `handrail image`: unpacks container images, lists them, and removes unused layers."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from handrail.errors import HandrailError, ImageError
from handrail.kernel.oci.image_manifest import open_image
from handrail.kernel.oci.image_names import image_name
from handrail.kernel.oci.layer_cache import LayerCache
from handrail.library.load_settings import users_limits
from handrail.ops.text.display import age, one_line, short_size
from handrail.surfaces.cli.light_options import echo_json, json_option

_DAYS = 30.0


@click.group("image")
def command() -> None:
    """Unpack container images, list them, and remove unused layers."""


@command.command("unpack")
@click.argument("image")
@json_option
def unpack(image: str, as_json: bool) -> None:
    """Unpack the layers of IMAGE (oci:PATH[:TAG] or docker-archive:PATH) now, so that its first use is quick."""
    started = time.monotonic()
    with _image_errors():
        name, limits = image_name(image), users_limits()
        with open_image(name, limits) as opened, LayerCache(limits).layers(opened) as layers:
            new = [layer for layer in layers if layer.unpacked]
            about = {
                "image": str(name),
                "digest": opened.digest,
                "layers": len(layers),
                "unpacked_layers": len(new),
                "unpacked_bytes": sum(layer.size for layer in new),
                "seconds": round(time.monotonic() - started, 3),
            }
    if as_json:
        echo_json(about)
        return
    unpacked = (
        f"{len(new)} of them unpacked now, {short_size(sum(layer.size for layer in new))}" if new else "all cached"
    )
    click.echo(f"{one_line(str(name))}: {_layers(len(layers))}, {unpacked}")


@command.command("list")
@json_option
def list_images(as_json: bool) -> None:
    """List the images whose layers were unpacked: size, layers, last use and name."""
    with _image_errors():
        images = LayerCache(users_limits()).known()
    if as_json:
        echo_json({"images": [image._asdict() for image in images]})
        return
    for image in images:
        missing = "" if image.complete else "  (some layers were removed)"
        used = age(time.time() - image.used)
        click.echo(
            f"{short_size(image.size):>8}  {_layers(len(image.layers)):>10}  {used:>4}  {one_line(image.name)}{missing}"
        )
    if not images:
        click.echo("No image was unpacked yet.")


@command.command("prune")
@click.option(
    "--days",
    type=click.FloatRange(0),
    default=_DAYS,
    show_default=True,
    help="Keep images that were used in the last N days.",
)
@json_option
def prune(days: float, as_json: bool) -> None:
    """Remove the layers of images that were not used for some days. Layers in use stay."""
    with _image_errors():
        layers, freed = LayerCache(users_limits()).prune(days)
    if as_json:
        echo_json({"removed_layers": layers, "removed_bytes": freed})
        return
    click.echo(f"Removed {_layers(layers)}, {short_size(freed)}")


def _layers(count: int) -> str:
    return f"{count} layer" if count == 1 else f"{count} layers"


@contextmanager
def _image_errors() -> Iterator[None]:
    """Report an image that cannot be used as an error of the command, and a wrong setting as a usage error."""
    try:
        yield
    except ImageError as error:
        raise click.ClickException(str(error)) from None
    except HandrailError as error:
        raise click.UsageError(str(error)) from None
