"""Says what an answer of a model cost."""

from pydantic_ai.messages import ModelResponse


def price_of(response: ModelResponse) -> float | None:
    """Return the price of an answer in US dollars; None if the price of the model is unknown."""
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None
