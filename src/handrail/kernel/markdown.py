"""HTML to Markdown, in a process that may fail alone (see html_worker.py)."""

import math
import os
import subprocess
import sys

from handrail.kernel import html_worker
from handrail.kernel.deadline import Deadline
from handrail.limits import Limits


class NotConverted(Exception):  # noqa: N818  becomes a fault in fetch.py
    pass


def to_markdown(html: str, base_url: str, deadline: Deadline, limits: Limits) -> tuple[str, bool]:
    """The Markdown, and whether it was cut."""
    bounds = (limits.fetch_convert_bytes, math.ceil(deadline.left()), limits.fetch_bytes + 1)
    # -P: no module is imported from the directory that the program happens to run in.
    argv = [sys.executable, "-P", os.path.abspath(html_worker.__file__), base_url, *map(str, bounds)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as worker:
        try:
            output = _talk(worker, html.encode(), deadline)
        finally:
            worker.kill()
    if worker.returncode:
        raise NotConverted
    text = output.decode()
    return text[: limits.fetch_bytes], len(text) > limits.fetch_bytes


def _talk(worker: subprocess.Popen[bytes], text: bytes, deadline: Deadline) -> bytes:
    unsent: bytes | None = text
    while True:
        try:
            return worker.communicate(unsent, timeout=deadline.glance())[0]
        except subprocess.TimeoutExpired:
            unsent = None  # it goes on with what it was given at first
