"""Scales images down in a process of its own (image_worker.py), whose failure does no harm. Needs Pillow."""

import math
from functools import cache
from importlib.util import find_spec

from handrail.kernel.deadline import Deadline, DeadlineExceeded
from handrail.kernel.images import image_worker
from handrail.kernel.sandbox.helpers.confined_worker import WorkerFailed, compute
from handrail.model.limits import Limits


class NotScaled(Exception):  # noqa: N818  the caller turns it into a fault
    """Says that the image cannot be decoded, or not within the limits of time and memory."""


@cache
def can_scale() -> bool:
    """Return True if Pillow is installed."""
    return find_spec("PIL") is not None


def scale_down(data: bytes, most: int, deadline: Deadline, limits: Limits) -> bytes:
    """Return a PNG or JPEG of at most `most` bytes, no side longer than `image_edge`. Raises NotScaled, Cancelled."""
    seconds = max(1, math.ceil(deadline.seconds_left()))
    bounds = (limits.image_memory_bytes, seconds, limits.image_edge, most, limits.image_pixels)
    try:
        return compute(image_worker.__file__, bounds, data, deadline)
    except (WorkerFailed, DeadlineExceeded):
        raise NotScaled from None
