"""What one command would start, set and evaluate, as far as its words tell."""

from dataclasses import dataclass, field

Argv = tuple[str | None, ...]
"""The words of a command. None is a word that only running it would tell."""


@dataclass
class StartedPrograms:
    argvs: list[Argv] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    """Texts that a shell would run."""
    assigns: list[str] = field(default_factory=list)
    unknown: bool = False
    sets: list[tuple[str, str | None]] = field(default_factory=list)
    """Variables of the shell and what they get; None where that is not known."""
    evaluated: set[str] = field(default_factory=set)
    """Variables of the shell whose values it takes for expressions."""
