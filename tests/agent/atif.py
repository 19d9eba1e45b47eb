"""Describes the Agent Trajectory Interchange Format, version 1.7, as a JSON schema and rules beyond it."""

from datetime import datetime
from typing import Any

from jsonschema import Draft202012Validator

Json = dict[str, Any]


def _record(required: str, **fields: Json) -> Json:
    """Return a schema of an object that has no other fields than these; any of them can have `extra`."""
    properties = {**fields, "extra": {"type": "object"}}
    return {"type": "object", "required": required.split(), "properties": properties, "additionalProperties": False}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


_TEXT, _OBJECT = {"type": "string"}, {"type": "object"}
_COUNT, _AMOUNT = {"type": "integer", "minimum": 0}, {"type": "number", "minimum": 0}
_TIME = {"type": "string", "format": "date-time"}
_CALL = _record(
    "tool_call_id function_name arguments",
    tool_call_id=_TEXT,
    function_name={"type": "string", "minLength": 1},
    arguments=_OBJECT,
)
_METRICS = _record("", prompt_tokens=_COUNT, completion_tokens=_COUNT, cached_tokens=_COUNT, cost_usd=_AMOUNT)
_STEP = _record(
    "step_id source message",
    step_id={"type": "integer", "minimum": 1},
    timestamp=_TIME,
    source={"enum": ["system", "user", "agent"]},
    model_name=_TEXT,
    reasoning_effort=_TEXT,
    message=_TEXT,
    reasoning_content=_TEXT,
    tool_calls=_list(_CALL),
    observation=_record("results", results=_list(_record("", source_call_id=_TEXT, content=_TEXT))),
    metrics=_METRICS,
    llm_call_count=_COUNT,
)
_OF_AGENT = {
    "not": {"anyOf": [{"required": [name]} for name in ("model_name", "tool_calls", "metrics", "observation")]}
}
_STEP |= {"if": {"properties": {"source": {"enum": ["system", "user"]}}}, "then": _OF_AGENT}
_TOTALS = {f"total_{name}": _COUNT for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "steps")}
SCHEMA = _record(
    "schema_version agent steps",
    schema_version={"const": "ATIF-v1.7"},
    session_id=_TEXT,
    trajectory_id=_TEXT,
    agent=_record("name version", name=_TEXT, version=_TEXT, model_name=_TEXT, tool_definitions=_list(_OBJECT)),
    steps={"type": "array", "minItems": 1, "items": _STEP},
    notes=_TEXT,
    final_metrics=_record("", **_TOTALS, total_cost_usd=_AMOUNT),
    continued_trajectory_ref=_TEXT,
    subagent_trajectories=_list(_OBJECT),
)


def faults_in(found: Json) -> list[str]:
    """Return what a trajectory has that the format forbids."""
    faults = [f"{error.json_path}: {error.message}" for error in Draft202012Validator(SCHEMA).iter_errors(found)]
    return faults or [fault for number, step in enumerate(found["steps"], 1) for fault in _faults_of(number, step)]


def _faults_of(number: int, step: Json) -> list[str]:
    faults = [] if step["step_id"] == number else [f"step {number} has the ID {step['step_id']}"]
    datetime.fromisoformat(step["timestamp"])
    known = [call["tool_call_id"] for call in step.get("tool_calls", [])]
    given = [result["source_call_id"] for result in step.get("observation", {}).get("results", [])]
    faults += [f"step {number} has a result of no call: {each}" for each in given if each not in known]
    return faults + [f"step {number} has two of {each}" for each in known if known.count(each) > 1]
