"""Prints text and makes usage errors for commands that run with and without click."""

import sys
from typing import Any


def echo(text: str | bytes = "", *, err: bool = False) -> None:
    """Print a line at once; bytes are printed as they are."""
    stream: Any = sys.stderr if err else sys.stdout
    if isinstance(text, bytes):
        stream.flush()
        stream.buffer.write(text + b"\n")
        stream.buffer.flush()
    else:
        stream.write(f"{text}\n")
        stream.flush()


def usage_error(message: str) -> Exception:
    """Return an error that the command line reports with the usage of the command."""
    import click  # noqa: PLC0415  needed for errors only

    return click.UsageError(message)
