"""Checks that a trajectory has the form that the loop relies on: any program, or an attacker, may have written it."""

import json
from math import isfinite
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class _Form(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _CallForm(_Form):
    tool_call_id: str
    function_name: str
    arguments: Any
    extra: dict[str, Any] | None = None


class _ResultForm(_Form):
    source_call_id: str
    content: str


class _ObservationForm(_Form):
    results: list[_ResultForm]


class _MetricsForm(_Form):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None


class _SummaryForm(_Form):
    kept_from: Annotated[int, Field(ge=1)]
    metrics: _MetricsForm | None = None


class _StepExtraForm(_Form):
    summary: _SummaryForm | None = None


class _StepForm(_Form):
    source: Literal["system", "user", "agent"]
    message: str
    tool_calls: list[_CallForm] = []
    observation: _ObservationForm = _ObservationForm(results=[])
    metrics: _MetricsForm | None = None
    extra: _StepExtraForm = _StepExtraForm()


class _HeadExtraForm(_Form):
    dialect: str | None = None
    sessions: list[str] = []


class _TrajectoryForm(_Form):
    schema_version: Annotated[str, Field(pattern="^ATIF-")]
    session_id: str = ""
    steps: list[_StepForm]
    extra: _HeadExtraForm = _HeadExtraForm()


def parsed(text: str) -> Any:
    """Return what a trajectory's text holds. Raises ValueError, also for numbers that JSON does not have."""
    return json.loads(text, parse_constant=_refuse_number, parse_float=_number)


def _number(text: str) -> float:
    return found if isfinite(found := float(text)) else _refuse_number(text)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"JSON has no number {text}")


def checked(found: Any) -> dict[str, Any]:
    """Return a trajectory as it is, without fields that are null. Raises ValueError that says what is wrong."""
    given = _without_nulls(found)
    if isinstance(given, dict) and isinstance(given.get("steps"), list):
        given["steps"] = [_without_nulls(step) for step in given["steps"]]
    try:
        form = _TrajectoryForm.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ValueError(f"it is not an ATIF trajectory: {place}: {first['msg']}") from None
    if not any(step.source == "user" for step in form.steps):
        raise ValueError("it has no message of a user")
    return dict(given)


def given_arguments(call: dict[str, Any]) -> Any:
    """Return the arguments of a call as the model gave them: the format takes objects alone."""
    return (call.get("extra") or {}).get("arguments", call["arguments"])


def _without_nulls(value: Any) -> Any:
    return {name: each for name, each in value.items() if each is not None} if isinstance(value, dict) else value
