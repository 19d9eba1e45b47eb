"""Says what an answer of a model cost."""

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model


def price_of(response: ModelResponse) -> float | None:
    """Return the price of an answer in US dollars; None if the price of the model is unknown."""
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None


def has_price(model: Model) -> bool:
    """Say whether the price of a model is known."""
    answers = [ModelResponse([], model_name=model.model_name, provider_name=name) for name in (model.system, None)]
    return any(price_of(answer) is not None for answer in answers)
