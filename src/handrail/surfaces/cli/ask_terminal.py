"""The user at the terminal, if there is one: who is asked, and who is told what would allow a refused call."""

import sys

import click

from handrail.kernel.host.terminal import open_terminal, user_is_here
from handrail.model.approval import Approver, Question, Verdict
from handrail.model.limits import Limits
from handrail.policy.policy import nobody


def terminal_approver() -> Approver:
    """Asks at the terminal; refuses where there is none."""
    terminal = open_terminal()
    if terminal is None:
        return _no_terminal
    from handrail.surfaces.cli.terminal_question import TerminalApprover  # noqa: PLC0415  only where somebody is there

    return TerminalApprover(*terminal, Limits())


def _no_terminal(question: Question) -> Verdict:
    return nobody(question, "Run it in a terminal", "with --approve auto")


class Told(list[str]):
    """Collects what would allow refused calls. Whoever calls may hand all of our output to a model, so that it is
    shown at a terminal only; elsewhere the session log has it.
    """

    def show(self) -> None:
        if sys.stderr.isatty():
            for line in filter(None, self):
                click.echo(f"handrail: {line}", err=True)
        self.clear()


def refuse_unattended(what: str, *, unattended: bool) -> bool:
    """Lets only a user at a terminal loosen what is asked, unless `unattended`; returns whether that was needed.

    The refusal does not name the option: a model that reads it must not find the way around in it.
    """
    here = user_is_here()
    if not here and not unattended:
        raise click.UsageError(f"{what} loosens what is asked, and there is no terminal: the user must run this")
    return not here
