"""Who decides: the policy, a rule, or somebody who is asked. Nobody there to ask means no."""

from dataclasses import dataclass, replace

from handrail.kernel.gate import Approver, Question, Verdict
from handrail.policy.rules import BadRule, Rule, RuleBook, exact_pattern


@dataclass(frozen=True, slots=True)
class Policy:
    approve: str
    rules: RuleBook
    asker: Approver | None = None

    def __call__(self, question: Question) -> Verdict:
        if self.approve == "never":
            remedy = "Run with --approve ask or --approve auto"
            return Verdict(False, "policy never", reason="the policy is never", remedy=remedy)
        if self.approve in ("auto", "host"):
            return Verdict(True, f"policy {self.approve}")
        number = self.rules.match(question.tool, question.params)
        if number is not None:
            return Verdict(True, f"rule {number}")
        if self.asker is None:
            return Verdict(False, "nobody", reason="there is nobody to ask", remedy=how_to_allow(question))
        verdict = self.asker(question)
        return self._store(question, verdict) if verdict.allowed and verdict.always else verdict

    def _store(self, question: Question, verdict: Verdict) -> Verdict:
        try:
            self.rules.add(Rule(question.tool, exact_pattern(question.params)))
        except (BadRule, OSError) as error:
            return replace(verdict, warning=f"approved, but this time only: the rule could not be stored: {error}")
        return verdict


def how_to_allow(question: Question, way: str = "Run it in a terminal, or with --approve auto") -> str:
    pattern = exact_pattern(question.params).replace("'", "'\\''")
    if len(pattern) > 300:
        return f"{way}, or add a rule with `handrail approvals add`"
    return f"{way}, or allow exactly this call: handrail approvals add {question.tool} '{pattern}'"
