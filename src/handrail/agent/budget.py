"""Counts what a run uses up, and says which budget is spent."""

from typing import NamedTuple

from pydantic_ai.messages import ModelResponse

from handrail.chat.prices import price_of

Ending = tuple[str, str]
"""The status of a run and the reason, in one sentence."""

STATUSES = {
    "done": 0,
    "model_error": 1,
    "stopped": 130,
    "steps": 20,
    "seconds": 21,
    "tokens": 22,
    "money": 23,
    "confused": 24,
}
"""How a run can end, each with the exit code of `handrail agent`."""


class Budget(NamedTuple):
    """The most that a run may use; None for no limit."""

    steps: int | None = 100
    """Answers of the model."""
    seconds: float | None = None
    tokens: int | None = None
    """Tokens in and out, over all steps."""
    money: float | None = None
    """In US dollars. Needs a model whose price is known."""


class Spent:
    """Adds up what the answers of a model cost."""

    def __init__(self, *, price_known: bool) -> None:
        self.steps = self.tokens = 0
        self.money, self.price_known = 0.0, price_known

    def add(self, response: ModelResponse) -> None:
        """Count one answer."""
        usage = response.usage
        self.steps += 1
        self.tokens += max(0, usage.input_tokens) + max(0, usage.output_tokens)
        price = price_of(response)
        self.price_known = self.price_known and price is not None
        self.money += max(0.0, price or 0.0)

    def over(self, budget: Budget) -> Ending | None:
        """Return which budget is spent, or cannot be kept, and why; None to go on. Time is not counted here."""
        if budget.steps is not None and self.steps >= budget.steps:
            return "steps", f"the budget of {budget.steps} steps is spent"
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return "tokens", f"the budget of {budget.tokens} tokens is spent"
        if budget.money is None:
            return None
        if not self.price_known:
            return "money", "the price of the model is unknown, so the budget of money cannot be kept"
        return ("money", f"the budget of ${budget.money:g} is spent") if self.money >= budget.money else None


class Outcome(NamedTuple):
    """How a run ended."""

    status: str
    """`done`, `model_error`, `stopped`, `confused`, or the spent budget: `steps`, `seconds`, `tokens`, `money`."""
    answer: str
    """The last text of the model."""
    reason: str
    """Why the run ended, in one sentence."""
    steps: int
    tokens: int
    money: float | None
    """In US dollars; None if the price of the model is unknown."""
    trajectory: str
    """The file with all steps."""

    @property
    def exit_code(self) -> int:
        return STATUSES[self.status]
