"""Says why an image cannot be used."""

import os

from handrail.errors import ImageError
from handrail.ops.text.display import one_line

_SHOWN = 200
"""The most characters of a name that a message shows."""


def shown(name: bytes | str) -> str:
    """Return a name from an image for a message: on one line, without control characters, not too long."""
    return one_line(os.fsdecode(name), _SHOWN)


def refused(what: str, why: str) -> ImageError:
    """Return the error for a part of an image that breaks a rule."""
    return ImageError(f"{what} is refused: {why}")
