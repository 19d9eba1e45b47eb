"""A throw-away workspace, for the demo."""

import io
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def scratch_workspace(files: Mapping[str, str]) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="handrail-demo-") as root:
        for name, content in files.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(content)
        yield root


def nowhere() -> io.StringIO:
    """A file for what is recorded elsewhere."""
    return io.StringIO()
