"""Defines what one command starts, sets and evaluates, as far as its words show."""

from dataclasses import field

from handrail.model.record import record

Argv = tuple[str | None, ...]
"""The words of a command. None is a word that is known only at run time."""


@record
class StartedPrograms:
    """Holds what one command starts, sets and evaluates."""

    argvs: list[Argv] = field(default_factory=list)
    """Commands that it starts."""
    scripts: list[str] = field(default_factory=list)
    """Texts that a shell would run."""
    assigns: list[str] = field(default_factory=list)
    """Environment variables that it sets for the commands it starts."""
    unknown: bool = False
    """True if it may start programs that its words do not show."""
    sets: list[tuple[str, str | None]] = field(default_factory=list)
    """Variables of the shell and their new values; None for an unknown value."""
    evaluated: set[str] = field(default_factory=set)
    """Variables of the shell whose values it evaluates as expressions."""
