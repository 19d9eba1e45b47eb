"""Scales the image on standard input down, as a program of its own, and writes it to standard output.

The decoders are native code, and an image may attack them, or claim to have a million megapixels. So the process loads
them, gives up everything but its memory and its two streams, and only then reads the image.
"""

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PIL import Image

_QUALITIES = (85, 60, 40)
_FORMATS = ("PNG", "JPEG", "GIF", "WEBP")


def scaled(data: bytes, edge: int, most: int, pixels: int) -> bytes:
    """Return the image with no side over `edge`, as a PNG or JPEG of at most `most` bytes.

    Raises ValueError if the image has more than `pixels` pixels or cannot be made small enough.
    """
    from PIL import Image, ImageOps  # noqa: PLC0415  only the worker loads it

    Image.MAX_IMAGE_PIXELS = None  # counted here: Pillow only warns
    with Image.open(io.BytesIO(data), formats=_FORMATS) as opened:
        if opened.width * opened.height > pixels:
            raise ValueError("too many pixels")
        photo = opened.format == "JPEG"
        opened.draft("RGB", (edge, edge))  # a JPEG is decoded at a fraction of its size
        image = ImageOps.exif_transpose(opened)
        image.thumbnail((edge, edge), Image.Resampling.LANCZOS)
    while min(image.size) >= 1:
        for written in _encodings(image, photo=photo):
            if len(written) <= most:
                return written
        if max(image.size) == 1:
            break
        image = image.resize((max(1, image.width // 2), max(1, image.height // 2)))
    raise ValueError("the image cannot be made small enough")


def _encodings(image: "Image.Image", *, photo: bool) -> "Iterator[bytes]":
    """Yield the image in several encodings, the best first: PNG unless it is a photo, then JPEG."""
    if not photo:
        yield _encoded(image if image.mode in ("L", "RGB", "RGBA") else image.convert("RGBA"), "PNG", optimize=True)
    from PIL import Image  # noqa: PLC0415  only the worker loads it

    flat = image.convert("RGBA")
    white = Image.new("RGBA", flat.size, "white")
    plain = Image.alpha_composite(white, flat).convert("RGB")
    for quality in _QUALITIES:
        yield _encoded(plain, "JPEG", quality=quality)


def _encoded(image: "Image.Image", form: str, **options: int) -> bytes:
    made = io.BytesIO()
    image.save(made, form, **options)
    return made.getvalue()


def _load_decoders() -> None:
    """Decode and encode one small image in each form, so that nothing is loaded later."""
    from PIL import Image  # noqa: PLC0415  only the worker loads it

    for form in _FORMATS:
        made = io.BytesIO()
        Image.new("RGB", (4, 4)).save(made, form)
        scaled(made.getvalue(), 2, 10_000, 100)


def main() -> None:
    """Load the decoders, give up all rights, then scale the image."""
    memory, seconds, edge, most, pixels = map(int, sys.argv[1:6])
    # Append it, so that an installed handrail, which is on the path already, comes first.
    sys.path.append(os.path.normpath(os.path.join(os.path.abspath(__file__), *[os.pardir] * 4)))
    from handrail.kernel.sandbox.helpers.confined_worker import bound, give_up_rights  # noqa: PLC0415  sys.path must be set first

    bound(memory, seconds)
    _load_decoders()
    give_up_rights(sys.argv[6])
    sys.stdout.buffer.write(scaled(sys.stdin.buffer.read(), edge, most, pixels))


if __name__ == "__main__":
    main()
