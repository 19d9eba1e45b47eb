"""Decides on questions: the policy, a rule, or the approver. Without an approver, a question is denied."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from handrail.errors import RuleError
from handrail.kernel.host.use_counts import Tally
from handrail.model.approval import ASK_THE_USER, KINDS, Approver, Question, Verdict
from handrail.model.limits import Limits
from handrail.model.record import record
from handrail.policy.rule_match import Decision, PlacedRule, RuleMatcher, decide, why_always_asked, why_nothing_kept
from handrail.policy.rule_store import RuleFile
from handrail.policy.rule_text import ALL_EDITS
from handrail.policy.rules import ANY_TOOL, Rule, exact_pattern, typed_rule

FILE = "file"
"""The scope of rules in the project's own file; these can only deny."""


_ANY_EDIT = Rule(ANY_TOOL, calls=ALL_EDITS)
_SUGGESTED_CHARS = 300
"""The length of the longest pattern that is shown to the user."""


@record
class Rules:
    """Holds all rules of a workspace. Each session has rules of its own, too: see `for_session`."""

    user: RuleFile
    project: RuleFile
    limits: Limits
    own: tuple[Rule, ...] = ()
    tally: Tally | None = None
    session: RuleFile = field(default_factory=lambda: RuleFile("", Limits()))

    def for_session(self) -> "Rules":
        """Return the same rules with an empty set of session rules."""
        return replace(self, session=RuleFile("", self.limits))

    def file_of(self, scope: str) -> RuleFile:
        """Return the rules of one scope."""
        files: dict[str, RuleFile] = {"session": self.session, "project": self.project, "user": self.user}
        return files[scope]

    def add(self, rule: Rule, scope: str = "user") -> int:
        """Store a rule and return its number in its scope."""
        return self.file_of(scope).add(rule)

    def placed(self) -> list[PlacedRule]:
        """Return all rules with their scopes and numbers."""
        found = [PlacedRule(rule, FILE, number) for number, rule in enumerate(self.own, 1)]
        for scope in ("session", "project", "user"):
            found += [PlacedRule(rule, scope, number) for number, rule in self.file_of(scope).now()]
        return found

    def decide(self, question: Question) -> Decision:
        """Return what the rules say about a question."""
        return decide(self.placed(), question, self.limits)

    def versions(self) -> tuple[object, ...]:
        """Return what changes when a rule does: the versions of the files, and the rules of the session."""
        return self.user.version(), self.project.version(), tuple(self.session.rules)

    def may_forbid(self, tool: str) -> bool:
        """Return True if a rule denies calls of a tool. Every call asks this, so that no rule is matched here."""
        if self.user.denies(tool) or self.project.denies(tool) or self.session.denies(tool):
            return True
        return bool(self.own) and any(rule.tool in (tool, ANY_TOOL) for rule in self.own)

    def count(self, decision: Decision) -> None:
        """Count the use of the rules that decided."""
        if self.tally is not None:
            self.tally.count([self.key(each) for each in decision.by if each.scope in ("project", "user")])

    def key(self, placed: PlacedRule) -> str:
        """Return the key under which the uses of a rule are counted, whatever its number is."""
        rule, path = placed.rule, self.file_of(placed.scope).path
        return Tally.key(path, rule.tool, rule.covers, "deny" if rule.deny else "allow")


@dataclass(frozen=True, slots=True)
class Policy:
    """Decides on a question: deny rules, then the policy, then allow rules, then the approver."""

    approve: str
    rules: Rules
    approver: Approver | None = None

    def __call__(self, question: Question) -> Verdict:
        versions = self.rules.versions()
        decision = self.rules.decide(question)
        if decision.allowed is False:
            self.rules.count(decision)
            return _forbidden(decision, question)
        if question.unasked:
            return Verdict(True, question.unasked)
        if self.approve == "never":
            return Verdict.deny("the policy is never", remedy=ASK_THE_USER, decided_by="policy never")._replace(
                how_to_allow='Use --approve ask (in Python: approve="ask"), or the policy auto'
            )
        decision = _with_hook(decision, question)
        lets = self.approve in ("auto", "host") or self._lets_edit(question)
        policy = f"policy {self.approve}" if lets else ""
        if (by := "hook" if question.hook == "allow" else policy) and not decision.doubt and not question.rights:
            return Verdict(True, by)
        if decision.allowed:
            self.rules.count(decision)
            return Verdict(True, _names(decision), rights=decision.rights)
        return self._ask(question._replace(doubt=decision.doubt), versions)

    def _lets_edit(self, question: Question) -> bool:
        """Return whether the policy is `edit` and the call only changes files of the workspace."""
        return self.approve == "edit" and not RuleMatcher(question, self.rules.limits).why_not(_ANY_EDIT)

    def _ask(self, question: Question, decided_on: object) -> Verdict:
        """Ask the approver. Rules are decided again only if they changed while the approver was asked."""
        verdict = self.approver(question) if self.approver else no_approver(question)
        if not verdict.allowed:
            return verdict
        if self.rules.versions() != decided_on:
            meanwhile = self.rules.decide(question)
            if meanwhile.allowed is False:
                return _forbidden(meanwhile, question)
        return self._store(question, verdict) if verdict.always else verdict

    def _store(self, question: Question, verdict: Verdict) -> Verdict:
        try:
            self.rules.add(rule_to_keep(question, verdict, self.rules.limits), verdict.keep.scope)
        except (RuleError, OSError) as error:
            return verdict._replace(warning=f"approved this time only: cannot store the rule: {error}")
        return verdict


def _with_hook(decision: Decision, question: Question) -> Decision:
    """Return the decision of the rules; if a hook wants the user to be asked, no rule and no policy approves."""
    if question.hook != "ask":
        return decision
    why = f"a hook asks for the user's approval: {question.hook_reason}".removesuffix(": ")
    return decision._replace(allowed=None, by=(), doubt=decision.doubt or why)


def rule_to_keep(question: Question, verdict: Verdict, limits: Limits) -> Rule:
    """Return the rule that stores a yes. Raises RuleError if no answer to this question can store one."""
    keep = verdict.keep
    if (why := why_nothing_kept(question)) or question.meant is None:
        raise RuleError(why)
    text = keep.rule or exact_pattern(question.meant)
    rights = question.rights if verdict.rights is None else verdict.rights
    rule = typed_rule(question.tool, text, "the rule", limits)._replace(sandbox=question.sandbox, rights=rights.words)
    if keep.hours is None:
        return rule
    try:
        end = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=keep.hours)
    except (OverflowError, ValueError):
        raise RuleError(f"{keep.hours} hours from now is too far in the future") from None
    return rule._replace(expires_at=end)


def _names(decision: Decision) -> str:
    return ", ".join(each.name for each in decision.by)


def _forbidden(decision: Decision, question: Question) -> Verdict:
    placed = decision.by[0]
    where = "the project's file" if placed.scope == FILE else f"the {placed.scope}'s rules"
    reason = f"rule {placed.number} of {where} forbids it: {placed.rule.covers}"
    remedy = "Do it another way; only the user can change the rule"
    return Verdict(False, placed.name, reason=reason, remedy=remedy, how_to_allow=_without(placed, question))


def _without(placed: PlacedRule, question: Question) -> str:
    """Return what disables a rule that denies; empty for a rule that ends with its session."""
    import shlex  # noqa: PLC0415  only refusals need it

    if placed.scope == FILE:
        return "Remove the rule from the project's .handrail.toml"
    words = ["handrail", "approvals", "disable", str(placed.number), "--scope", placed.scope]
    where = ["--root", question.root] if placed.scope == "project" else []
    return f"Disable the rule: {shlex.join([*words, *where])}" if placed.scope != "session" else ""


def no_approver(
    question: Question,
    user: str = "Pass approver= to Workspace",
    policy: str = 'approve="auto"',
    reason: str = "no approver can be asked",
) -> Verdict:
    """Deny a call because no approver has decided; `user` and `policy` say what would allow it."""
    why = why_always_asked(question) or _only_user_grants(question)
    return refused(question, "no approver", f"{reason}, and {why}" if why else reason, user, policy)


def _only_user_grants(question: Question) -> str:
    return f"only the user or a rule grants {', '.join(question.rights.words)}" if question.rights else ""


def refused(question: Question, by: str, reason: str, user: str, policy: str) -> Verdict:
    """Deny a call. `reason` is for the model; `user` and `policy` say what would allow it, for the user."""
    remedy = ASK_THE_USER
    if why_always_asked(question) or question.meant is None:
        instead = "Write it as plain commands" if question.command and not question.guarded else "Leave it"
        remedy = f"{instead}, or {remedy[0].lower()}{remedy[1:]}"
    return Verdict(False, by, reason=reason, remedy=remedy, how_to_allow=_how_to_allow(question, user, policy))


def _how_to_allow(question: Question, user: str, policy: str) -> str:
    if why_always_asked(question) or question.rights or question.meant is None:
        return user
    if question.tool in KINDS:
        return f"{user}, or {policy}"
    way, command = f"{user}, or {policy}", _adding_it(question)
    return f"{way}, or {f'keep a rule: {command}' if command else 'add a rule with `handrail approvals add`'}"


def _adding_it(question: Question) -> str:
    """Return the shell command that stores a rule for this call; empty if it is too long or has hidden characters."""
    import shlex  # noqa: PLC0415  only refusals need it

    from handrail.ops.text.display import one_line  # noqa: PLC0415  only refusals need it
    from handrail.policy.suggest import suggestion  # noqa: PLC0415  only refusals need it

    short = suggestion(question, Limits())
    rule = [short] if short else [question.tool, exact_pattern(question.meant or "")]
    if len(rule[-1]) > _SUGGESTED_CHARS:
        return ""
    words = ["handrail", "approvals", "add", *rule, "--root", question.root]
    command = shlex.join([*words, "--sandbox", question.sandbox] if question.sandbox else words)
    return command if one_line(command, len(command)) == command else ""
