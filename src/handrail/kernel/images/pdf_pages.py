"""Takes pages out of a PDF in a process of its own (pdf_worker.py), whose failure does no harm. Needs pypdf."""

import math
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

from handrail.kernel.deadline import Deadline, DeadlineExceeded
from handrail.kernel.images import pdf_worker
from handrail.kernel.sandbox.helpers.confined_worker import WorkerFailed, compute
from handrail.model.limits import Limits


class NotTakenApart(Exception):  # noqa: N818  the caller turns it into a fault
    """Says that the PDF cannot be parsed, or not within the limits of time, memory and size."""


class PdfPages(NamedTuple):
    total: int
    """The number of pages of the whole PDF."""
    data: bytes
    """A PDF with the chosen pages; empty if the PDF has none of them."""


@cache
def can_choose_pages() -> bool:
    """Return True if pypdf is installed."""
    return find_spec("pypdf") is not None


def choose_pages(data: bytes, first: int, last: int, deadline: Deadline, limits: Limits) -> PdfPages:
    """Return the pages from `first` to `last`, counted from 1. Raises NotTakenApart and Cancelled."""
    seconds = max(1, math.ceil(deadline.seconds_left()))
    bounds = (limits.pdf_memory_bytes, seconds, first, last, limits.pdf_bytes)
    try:
        total, _, made = compute(pdf_worker.__file__, bounds, data, deadline).partition(b"\n")
    except (WorkerFailed, DeadlineExceeded):
        raise NotTakenApart from None
    if (
        not total.isdigit() or len(total) > 9 or len(made) > limits.pdf_bytes
    ):  # the PDF may have the process in its hands
        raise NotTakenApart
    return PdfPages(int(total), made)
