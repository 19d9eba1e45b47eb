"""The gate: everything that changes the world is asked here first, with the finished change in hand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from handrail.effects import Effect, risk_level
from handrail.faults import Denied
from handrail.kernel.values import Change


@dataclass(frozen=True, slots=True)
class Question:
    """What is about to happen, for a person, a rule or a program to judge."""

    dialect: str
    tool: str
    params: dict[str, Any]
    """In the order of the schema, defaults left out."""
    effects: Effect
    bodies: frozenset[str] = frozenset()
    """Parameters that hold the contents of files."""
    targets: tuple[str, ...] = ()
    """The files that would change, beneath the root with links resolved."""
    changes: tuple[Change, ...] = field(default=(), repr=False)
    command: str = ""
    """What would run, or, where a terminal is named, be typed into it."""
    directory: str = ""
    terminal: str = ""
    sandbox: str = ""
    host: str = ""
    """Whom a fetch would reach."""

    @property
    def risk(self) -> str:
        return risk_level(self.effects)


@dataclass(frozen=True, slots=True)
class Verdict:
    allowed: bool
    by: str
    """Who decided: a policy, a rule, a person."""
    always: bool = False
    """The same call need not be asked again."""
    reason: str = ""
    remedy: str = ""
    warning: str = ""
    """Something beside the decision that the answer should mention."""


Approver = Callable[[Question], Verdict]


def ask(approver: Approver, question: Question) -> Verdict:
    verdict = approver(question)
    if not verdict.allowed:
        raise Denied(question.tool, verdict.reason, verdict.remedy)
    return verdict
