"""Chooses who approves at the command line, and shows the user at the terminal how to allow a refused call."""

import sys

from handrail.kernel.host.terminal import open_terminal, user_is_here
from handrail.model.approval import Approver, Question, Verdict
from handrail.model.limits import Limits
from handrail.policy.policy import no_approver
from handrail.surfaces.cli.light.plain_output import echo, usage_error


def terminal_approver(*, one_call: bool = False) -> Approver:
    """Return an approver that asks in the terminal, or one that refuses if no terminal is attached.

    With `one_call` no answer stores a rule for the session, which ends with the call.
    """
    terminal = open_terminal()
    if terminal is None:
        return _no_terminal
    from handrail.surfaces.cli.terminal_approver import TerminalApprover  # noqa: PLC0415  needed with a terminal only

    return TerminalApprover(*terminal, Limits(), one_call)


def has_terminal(approver: Approver) -> bool:
    """Return whether an approver that `terminal_approver` returned asks in a terminal."""
    return approver is not _no_terminal


def _no_terminal(question: Question) -> Verdict:
    return no_approver(question, "Run this command in a terminal", "with --approve auto")


class AllowHints(list[str]):
    """Collects hints how to allow refused calls.

    The hints are shown in a terminal only, because a calling program may pass all other output to a model. The session
    log always has them.
    """

    def show(self) -> None:
        """Print the collected hints if standard error is a terminal, then clear them."""
        if sys.stderr.isatty():
            for line in filter(None, self):
                echo(f"handrail: {line}", err=True)
        self.clear()


def refuse_unattended(what: str, *, unattended: bool) -> bool:
    """Refuse to weaken approval without a user at a terminal, unless `unattended`; return True if there is none.

    The error does not name the option `--unattended`: a model that reads the error must not learn of it.
    """
    here = user_is_here()
    if not here and not unattended:
        raise usage_error(f"{what} weakens approval, and no terminal is attached: the user must run this command")
    return not here
