"""Who decides: the policy, a rule, or somebody who is asked. Nobody there to ask means no."""

from dataclasses import dataclass

from handrail.kernel.gate import Approver, Question, Verdict
from handrail.policy.rules import RuleBook, exact_pattern


@dataclass(frozen=True, slots=True)
class Policy:
    approve: str
    rules: RuleBook
    asker: Approver | None = None

    def __call__(self, question: Question) -> Verdict:
        if self.approve == "never":
            return Verdict(False, "policy never", "the policy is never", "Run with --approve ask or --approve auto")
        if self.approve in ("auto", "host"):
            return Verdict(True, f"policy {self.approve}")
        number = self.rules.match(question.tool, question.params)
        if number is not None:
            return Verdict(True, f"rule {number}")
        if self.asker is None:
            return Verdict(False, "nobody", "there is nobody to ask", how_to_allow(question))
        return self.asker(question)


def how_to_allow(question: Question) -> str:
    pattern = exact_pattern(question.params).replace("'", "'\\''")
    if len(pattern) > 300:
        return "Run it in a terminal, or with --approve auto, or add a rule with `handrail approvals add`"
    return (
        "Run it in a terminal, or with --approve auto, or allow exactly this call: "
        f"handrail approvals add {question.tool} '{pattern}'"
    )
