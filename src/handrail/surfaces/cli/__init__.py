"""Starts commands. If the arguments of `call` and `mcp` are ordinary, these run without click, whose import is slow."""

import gc
import sys
from importlib import import_module

from handrail.kernel.host.std_streams import steady_streams

_LIGHT = {"call": "call_tool", "mcp": "serve_mcp"}
"""The modules of the commands that need no click."""


def main(args: list[str] | None = None, prog_name: str | None = None) -> None:
    """Run a command and end the process."""
    words = sys.argv[1:] if args is None else [*args]
    if words and words[0] in _LIGHT:
        steady_streams()
        gc.disable()  # imports make many objects and no garbage
        command = import_module(f"{__name__}.light.{_LIGHT[words[0]]}")
        gc.freeze()
        gc.enable()
        given = command.ORDINARY.read(words[1:])
        if given is not None:
            try:
                code = command.run(**given)
            except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  click reports it
                from handrail.surfaces.cli.click_commands import raise_again  # noqa: PLC0415  needed for errors only

                raise_again(error, words, prog_name)
            sys.exit(code)
    from handrail.surfaces.cli.click_commands import main as commands  # noqa: PLC0415  the rest needs click

    commands(args=words, prog_name=prog_name)
