"""Converts HTML to Markdown in a process of its own (html_worker.py), whose failure does no harm."""

import contextlib
import math
import os
import platform
import subprocess
import sys
import tempfile

from handrail.kernel.deadline import Deadline
from handrail.kernel.sandbox.seccomp import assemble_for_computing
from handrail.kernel.web import html_worker
from handrail.model.limits import Limits

_FINDS_PYTHON = ("HOME", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "PYTHONUSERBASE", "SYSTEMROOT")
"""Variables that the worker's interpreter may need to find its modules; every other variable may be a secret."""


class NotConverted(Exception):  # noqa: N818  the fetcher turns it into a fault
    """Says that the worker ended with an error."""


def to_markdown(html: str, base_url: str, deadline: Deadline, limits: Limits) -> tuple[str, bool]:
    """Return the Markdown and whether it was cut. Raises NotConverted, Cancelled and DeadlineExceeded."""
    bounds = (limits.fetch_convert_bytes, max(1, math.ceil(deadline.check())), limits.fetch_bytes + 1)
    refused = assemble_for_computing(platform.machine()).hex()
    # -P: import no module from the directory of the script.
    argv = [sys.executable, "-P", os.path.abspath(html_worker.__file__), base_url, *map(str, bounds), refused]
    environment = {name: os.environ[name] for name in _FINDS_PYTHON if name in os.environ}
    # A file, not a pipe: communicate() loses unsent input when it times out and is called again.
    with tempfile.TemporaryFile() as page:
        page.write(html.encode())
        page.seek(0)
        out, errors = subprocess.PIPE, subprocess.DEVNULL
        with subprocess.Popen(argv, env=environment, stdin=page, stdout=out, stderr=errors) as worker:
            try:
                output = _output(worker, deadline)
            finally:
                worker.kill()
    if worker.returncode:
        raise NotConverted
    text = output.decode()
    return text[: limits.fetch_bytes], len(text) > limits.fetch_bytes


def _output(worker: subprocess.Popen[bytes], deadline: Deadline) -> bytes:
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):  # check the deadline again
            return worker.communicate(timeout=deadline.wait_seconds())[0]
