"""Implements `handrail try`: runs a command in a layer, shows what it changed, and asks whether to keep the changes."""

import os  # noqa: TID251  for a name that no other trial has
import sys
from typing import Any, TextIO

import click

from handrail.errors import HandrailError
from handrail.library.layer_methods import TEMPORARY
from handrail.model.approval import Question, Verdict
from handrail.ops.text.display import visible
from handrail.settings import APPROVE
from handrail.surfaces.cli.layers.keep_changes import NOT_KEPT, keep
from handrail.surfaces.cli.light.open_workspace import open_workspace
from handrail.surfaces.cli.options import network_option, root_option, sandbox_option
from handrail.surfaces.cli.terminal_access import AllowHints, has_terminal, terminal_approver

_SECONDS = 3600.0


@click.command("try", context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@root_option
@sandbox_option
@network_option
@click.option("--approve", type=click.Choice(APPROVE), default="ask", help="Who decides whether to keep the changes.")
@click.option("--seconds", type=float, default=_SECONDS, show_default=True, help="The time limit of the command.")
def command(command: tuple[str, ...], root: str, seconds: float, **options: Any) -> None:
    """Run COMMAND in a layer over the workspace, show what it changed, and ask whether to keep the changes.

    Ends with the exit status of the command, or with 3 if its changes were not kept.
    """
    ask, hints = terminal_approver(), AllowHints()

    def approver(question: Question) -> Verdict:
        if question.tool == "exec":  # the user has just typed it
            return Verdict.allow(decided_by="user")
        return ask(question)

    unseen = options["approve"] == "auto" or not has_terminal(ask)
    layer = f"{TEMPORARY}{os.urandom(6).hex()}"
    with open_workspace(root, approver=approver, tell=hints.append, layered=layer, **options) as workspace:
        try:
            ran = workspace.exec(list(command), timeout=seconds)
            _pass_on(ran.stdout, sys.stdout)
            _pass_on(ran.stderr, sys.stderr)
            kept = keep(workspace, diff=unseen)
        except HandrailError as error:
            raise click.ClickException(str(error)) from None
    status = 124 if ran.timed_out else 128 + ran.signal if ran.signal else ran.exit_code or 0
    raise SystemExit(status if kept else NOT_KEPT)


def _pass_on(output: bytes, stream: TextIO) -> None:
    """Write the output of the command; to a terminal as visible text, so that it cannot disguise the question."""
    if stream.isatty():
        text = output.decode(errors="surrogateescape").replace("\r\n", "\n")
        stream.write(visible(text))
    else:
        stream.buffer.write(output)
    stream.flush()
