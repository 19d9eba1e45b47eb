"""Defines the command line with click. The module of a command is imported when the command is called."""

import errno
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

import handrail
from handrail.kernel.host.std_streams import steady_streams

_COMMANDS = {
    "call": "Call one tool.",
    "run": "Answer calls from JSON lines: one call per line in, one envelope per line out.",
    "mcp": "Serve the tools over the Model Context Protocol.",
    "config": "Print, write or check the configuration of an MCP client.",
    "tools": "List the tools of a dialect.",
    "prompt": "Print the system-prompt section of a dialect.",
    "approvals": "List, add, remove, switch and test approval rules.",
    "hooks": "List, trust and distrust hooks.",
    "history": "List recorded changes, and whether each was undone.",
    "show": "Show the changes of one history entry.",
    "mark": "Set a mark in the history, for undo --to.",
    "undo": "Undo changes.",
    "redo": "Undo the last undo.",
    "restore": "Restore a file to an earlier state.",
    "image": "Unpack container images, list them, and remove unused layers.",
    "try": "Run a command in a layer, show what it changed, and ask whether to keep it.",
    "layer": "List the layers over a workspace; show, apply or discard their changes.",
    "jobs": "List the jobs of live sessions.",
    "agent": "Work on a task with a model.",
    "page": "Serve a local page that shows what agents do and asks for approval.",
    "acp": "Offer the agent to an editor over the Agent Client Protocol.",
    "fleet": "Run many tasks, each in a workspace of its own.",
    "replay": "Replay a session log on a copy of a tree, and list the differences.",
    "doctor": "Show what this machine supports and what is missing.",
    "demo": "Show a short scripted agent session.",
    "completion": "Print the completion script for a shell.",
}


_ROOMS = dict.fromkeys(("undo", "redo", "restore", "mark"), "undoing.") | dict.fromkeys(("try", "layer"), "layers.")
"""The packages of commands that belong together."""
_MODULES = {"try": "try_command"}
"""The modules of commands whose names are words of Python."""
_DISK_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class _LazyGroup(click.Group):
    """Imports the module of a command when the command is called; reports errors in the form of the command line."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  required by click
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  required by click
        if cmd_name not in _COMMANDS:
            return None
        module = f"{_ROOMS.get(cmd_name, '')}{_MODULES.get(cmd_name, cmd_name)}"
        command: click.Command = import_module(f"{__package__}.{module}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # noqa: PLC0415  needed for mistyped commands only

            near = get_close_matches(args[0], _COMMANDS)
            if not near:
                raise
            raise click.UsageError(f"{error.message} Did you mean {' or '.join(near)}?", ctx) from None

    def main(self, *arguments: Any, **options: Any) -> Any:
        steady_streams()
        try:
            return super().main(*arguments, **options)
        except OSError as error:
            if error.errno not in _DISK_FAILS or error.filename is not None:
                raise
            sys.stdout = sys.stderr  # the output that is still buffered cannot be written either
            click.echo(f"handrail: cannot write the answer: {error.strerror}", err=True)
            raise SystemExit(1) from None

    def invoke(self, ctx: click.Context) -> Any:
        words = [*ctx.args]
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if "--json" in words:
                from handrail.surfaces.cli.light_options import echo_json  # noqa: PLC0415  needed for usage errors only

                echo_json({"success": False, "error": {"code": "usage_error", "message": error.format_message()}})
            raise
        except KeyboardInterrupt:  # also during a question: the call was not approved, so it changed nothing
            click.echo(err=True)
            raise SystemExit(130) from None
        except click.Abort as abort:  # the end of the input or Ctrl-C at a question of click, which hides which one
            if not isinstance(abort.__context__, KeyboardInterrupt):
                raise
            click.echo(err=True)
            raise SystemExit(130) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  required by click
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(handrail.__version__, prog_name="handrail")
def main() -> None:
    """Run tools for coding agents: one secure kernel, twelve tool dialects, every surface."""


def raise_again(error: BaseException, words: list[str], name: str | None) -> NoReturn:
    """Report what a command raised that ran without click, as if it had run with click."""
    group: Any = main
    chosen = group.get_command(click.Context(group), words[0])

    def fail(**_options: Any) -> NoReturn:
        raise error

    chosen.callback = fail
    group.main(args=words, prog_name=name)
    raise AssertionError("a command with an error ends the process")
