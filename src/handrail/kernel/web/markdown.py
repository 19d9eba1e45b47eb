"""Converts HTML to Markdown in a process of its own (html_worker.py), whose failure does no harm."""

import math

from handrail.kernel.deadline import Deadline
from handrail.kernel.sandbox.helpers.confined_worker import WorkerFailed, compute
from handrail.kernel.web import html_worker
from handrail.model.limits import Limits


class NotConverted(Exception):  # noqa: N818  the fetcher turns it into a fault
    """Says that the worker ended with an error."""


def to_markdown(html: str, base_url: str, deadline: Deadline, limits: Limits) -> tuple[str, bool]:
    """Return the Markdown and whether it was cut. Raises NotConverted, Cancelled and DeadlineExceeded."""
    bounds = (limits.fetch_convert_bytes, max(1, math.ceil(deadline.check())), limits.fetch_bytes + 1)
    try:
        text = compute(html_worker.__file__, [base_url, *bounds], html.encode(), deadline).decode()
    except WorkerFailed:
        raise NotConverted from None
    return text[: limits.fetch_bytes], len(text) > limits.fetch_bytes
