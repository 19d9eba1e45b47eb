"""Questions and verdicts: before a call changes, runs or fetches anything, an approver is asked."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from handrail.model.effects import DANGEROUS, SAFE_WRITE, Effect, risk_level
from handrail.model.files import Change, Put
from handrail.model.rights import Rights

KINDS = ("undo", "redo", "restore", "apply")
"""The names that approval rules use for the operations on the history, and for bringing a layer into its root."""


class Question(NamedTuple):
    """Says what a call is about to do, for the user, a rule or a program to judge."""

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
    """The files that would change, relative to the root, with links resolved."""
    changes: tuple[Change, ...] = ()
    command: str = ""
    """The command to run, or the input to type if `terminal` is set."""
    directory: str = ""
    terminal: str = ""
    sandbox: str = ""
    shell: str = ""
    """Set if the words of the command may not mean what they say: an earlier command may have changed the shell."""
    justification: str = ""
    """Why the model asks for this call, in its own words."""
    host: str = ""
    """The host of a fetch, with the port unless it is the usual one of the scheme."""
    address: str = ""
    """The address of a fetch, in the form that rules see."""
    resolved: dict[str, Any] | None = None
    """The parameters as rules see them: paths relative to the root with links resolved, URLs in canonical form.

    `targets` is added if files change that no parameter names. None if a path leaves the root.
    """
    guarded: str = ""
    """The guarded name, such as .git, that the call reaches into: no rule and no policy approves that."""
    unasked: str = ""
    """Set if only deny rules are checked: `beginning` (before the tool runs) or `redirect` (of an approved page)."""
    doubt: str = ""
    """Why it is asked although a rule or the policy would approve it."""
    root: str = ""
    """The workspace."""
    rights: Rights = Rights()
    """What the command may do beyond the sandbox, this time only."""
    hook: str = ""
    """What the user's hooks decided before the call: `allow`, `ask`, or nothing."""
    hook_reason: str = ""

    @property
    def risk(self) -> str:
        """The risk of what this call does. A change that keeps most of a file counts as `safe_write`, too."""
        if self.guarded:
            return DANGEROUS
        edits = self.changes and all(isinstance(each, Put) and _keeps_most(each) for each in self.changes)
        return SAFE_WRITE if edits else risk_level(self.effects)

    @property
    def given(self) -> str:
        """The call as it was made, in compact JSON."""
        return compact(self.params)

    @property
    def meant(self) -> str | None:
        """The call as rules see it, in compact JSON; None where a path leaves the workspace."""
        return None if self.resolved is None else compact(self.resolved)


def _keeps_most(change: Put) -> bool:
    """Return whether a change keeps at least half of the lines of the file."""
    if change.base is None:
        return True
    old = change.base.data.splitlines()
    kept = Counter(old) & Counter(change.data.splitlines())
    return 2 * kept.total() >= len(old)


def compact(params: dict[str, Any]) -> str:
    return json.dumps(params, separators=(",", ":"), ensure_ascii=False)


Scope = Literal["session", "project", "user"]


class Keep(NamedTuple):
    """Says what to remember of a yes: this very call, or all calls that a rule covers."""

    scope: Scope = "project"
    rule: str = ""
    """A rule in the short form (`edit src/**`), a regular expression over the call, or, for a command, its words as a
    JSON list; empty: exactly this call."""
    hours: float | None = None
    """The duration; None: until the rule is removed."""


class Verdict(NamedTuple):
    """Holds an approver's answer. Make one with `Verdict.allow()` or `Verdict.deny()`."""

    allowed: bool
    decided_by: str
    """The decider: a policy, a rule, the user, a callback."""
    always: bool = False
    """Remember what `keep` says, and do not ask again."""
    keep: Keep = Keep()
    reason: str = ""
    """Why not, for the model."""
    remedy: str = ""
    """The action that the model should take instead."""
    warning: str = ""
    """A warning for the result, in addition to the decision."""
    how_to_allow: str = ""
    """The action that would allow the call: for the user, never for the model."""
    rights: Rights | None = None
    """The rights that are granted, if they are fewer than the question names; None for all of them."""

    @classmethod
    def allow(cls, *, remember: Keep | Scope | None = None, decided_by: str = "callback") -> "Verdict":
        """Return a yes. `remember` stores a rule: for a scope exactly this call, for a `Keep` what that covers."""
        keep = Keep(remember) if isinstance(remember, str) else remember
        return cls(True, decided_by, keep is not None, keep or Keep())

    @classmethod
    def deny(
        cls, reason: str = "", *, remedy: str = "Ask what to do instead", decided_by: str = "callback"
    ) -> "Verdict":
        """Return a no. The model reads the reason and the remedy."""
        return cls(False, decided_by, reason=reason, remedy=remedy)


Approver = Callable[[Question], Verdict]
ASK_THE_USER = "Ask the user: only they can allow it"
"""The remedy of refusals. No result names a command, an option or a setting that would allow a call."""
