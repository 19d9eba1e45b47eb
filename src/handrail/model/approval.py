"""The gate: everything that changes the world is asked here first, with the finished change in hand."""

import json
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from handrail.model.effects import Effect, risk_level
from handrail.model.files import Change


class Question(NamedTuple):
    """What is about to happen, for a person, a rule or a program to judge."""

    dialect: str
    tool: str
    params: dict[str, Any]
    """In the order of the schema, defaults left out."""
    effects: Effect
    bodies: frozenset[str] = frozenset()
    """Parameters that hold the contents of files."""
    paths: frozenset[str] = frozenset()
    """Parameters that are paths."""
    targets: tuple[str, ...] = ()
    """The files that would change, beneath the root with links resolved."""
    changes: tuple[Change, ...] = ()
    command: str = ""
    """What would run, or, where a terminal is named, be typed into it."""
    directory: str = ""
    terminal: str = ""
    sandbox: str = ""
    host: str = ""
    """Whom a fetch would reach."""
    resolved: dict[str, Any] | None = None
    """The parameters as what they mean: a path as its place beneath the root, a URL in its normal form, and beside
    them, as `targets`, the files that would change though no parameter names them. None where a path leaves the root.
    """
    guarded: str = ""
    """The guarded name, such as .git, that the call reaches into: no rule and no policy approves that."""
    unasked: str = ""
    """Why only what forbids it counts: the call only begins, or a page that was approved leads on to this one."""
    doubt: str = ""
    """Why it is asked although a rule or the policy would approve it."""
    root: str = ""
    """The workspace."""

    @property
    def risk(self) -> str:
        return risk_level(self.effects)

    @property
    def given(self) -> str:
        """The call as it was made, in compact JSON."""
        return compact(self.params)

    @property
    def meant(self) -> str | None:
        """The call as rules see it, in compact JSON; None where a path leaves the workspace."""
        return None if self.resolved is None else compact(self.resolved)


def compact(params: dict[str, Any]) -> str:
    return json.dumps(params, separators=(",", ":"), ensure_ascii=False)


Scope = Literal["session", "project", "user"]


class Keep(NamedTuple):
    """What to remember of a yes: this very call, or all that a rule covers."""

    scope: Scope = "project"
    rule: str = ""
    """A regular expression over the call, or, for a command, its words as a JSON list; empty: exactly this call."""
    hours: float | None = None


class Verdict(NamedTuple):
    allowed: bool
    by: str
    """Who decided: a policy, a rule, a person."""
    always: bool = False
    """What `keep` says need not be asked again."""
    keep: Keep = Keep()
    reason: str = ""
    remedy: str = ""
    """What the model is told to do instead."""
    warning: str = ""
    """Something beside the decision that the answer should mention."""
    allow: str = ""
    """What would allow it: told to the user, never to the model."""


Approver = Callable[[Question], Verdict]
ASK_THE_USER = "Ask the user: only they can allow it"
"""What a model is told to do about a refusal. No answer names a command, an option or a setting that loosens."""
