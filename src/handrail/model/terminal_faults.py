"""Declares the errors of terminals: kinds and facts, no sentences, like those in `model/faults.py`."""

from handrail.model.faults import Fault


class TerminalFault(Fault):
    terminal: str


class UnknownTerminal(TerminalFault):
    """No terminal has this id."""


class TerminalBusy(TerminalFault):
    """A terminal with this id is still running."""


class TerminalEnded(TerminalFault):
    """The program in the terminal has ended: nothing can be typed any more."""

    exit_code: int | None
    signal: str
    output: str
    """The output that no call has read yet."""


class TooManyTerminals(TerminalFault):
    limit: int
