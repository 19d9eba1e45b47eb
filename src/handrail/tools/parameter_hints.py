"""Suggests how to correct a call: which tool to use, which parameters to rename, which values to send."""

import json
from typing import Any

from handrail.model.faults import Problem
from handrail.model.hints import ParameterIgnored
from handrail.model.limits import LARGEST_INTEGER
from handrail.ops.text.similar_names import nearest_name
from handrail.tools.messages import Facts
from handrail.tools.schema import name_of

_SHOWN = 200
_OTHERWISE = "Correct the parameters and call the tool again"


def tool_hint(facts: Facts) -> str:
    """Return which tool to use instead of an unknown one."""
    nearest = f"The nearest tool is {facts['near']}. " if facts["near"] else ""
    return f"{nearest}Use one of: {', '.join(facts['known'])}"


def parameter_hint(facts: Facts) -> str:
    """Return one instruction for each problem of a BadParameters, such as `Send "limit": 5`."""
    given, known = facts["params"], facts["known"]
    renamed = _renamings([each for each in facts["problems"] if not each.where], given, known)
    hints = [f"Rename '{old}' to '{new}' ({known[new].rstrip('.')})" for old, new in renamed.items()]
    settled = {*renamed, *renamed.values()}
    for problem in facts["problems"]:
        name = problem.expected if problem.kind == "missing" else problem.got if problem.kind == "unknown" else ""
        if problem.where or name not in settled:
            hints.append(_instruction(problem, given, known))
    return "; ".join(dict.fromkeys(each for each in hints if each)) or _OTHERWISE


def ignored(given: dict[str, Any], known: dict[str, str]) -> tuple[ParameterIgnored, ...]:
    """Return a hint for each parameter that a tool does not know, with the nearest one that the call does not give."""
    free = {name: about for name, about in known.items() if name not in given}
    unknown = [name_of(name) for name in given if name not in known]
    return tuple(ParameterIgnored(name, nearest_name(name, free) or "", list(known)) for name in unknown)


def _renamings(problems: list[Problem], given: dict[str, Any], known: dict[str, str]) -> dict[str, str]:
    """Return names that the caller gave, each with the parameter that is meant: a missing one if possible."""
    missing = {
        each.expected: known[each.expected] for each in problems if each.kind == "missing" and each.expected in known
    }
    unknown = [name for name in given if isinstance(name, str) and name not in known] if known else []
    found: dict[str, str] = {}
    for choices in (missing, {name: about for name, about in known.items() if name not in given}):
        for name in unknown:
            open_names = {each: about for each, about in choices.items() if each not in found.values()}
            if name not in found and (near := nearest_name(name, open_names)):
                found[name] = near
    if not any(each.kind == "unknown" for each in problems):  # the tool ignores names that it does not know
        return {old: new for old, new in found.items() if new in missing}
    return found


def _instruction(problem: Problem, given: dict[str, Any], known: dict[str, str]) -> str:
    where, expected, name = problem.where, problem.expected, problem.where.rpartition("/")[2]
    whole = "Send the parameters as an object" + (f": {', '.join(known)}" if known else "")
    if problem.kind == "choice":
        near = nearest_name(problem.got.lower(), dict.fromkeys(expected.split(", "), ""))
        return _send(name, near) if near else f"Use one of: {expected}"
    if problem.kind == "type" and name in given and name == where:
        return _other_type(name, given[name], expected)
    return {
        "missing": f"Add '{expected}'" + (f" to '{where}'" if where else ""),
        "unknown": f"Remove '{problem.got}'" + (f" from '{where}'" if where else ""),
        "minimum": f'Send "{name}": {expected}, or more',
        "maximum": f'Send "{name}": {expected}, or less',
        "length": f"Send '{where}' with something in it",
        "nul": f"Remove the NUL character from '{where}'",
        "text": f"Send '{where}' as valid Unicode text",
        "type": f"Send '{where}' as {expected}" if where else whole,
    }[problem.kind]


def _other_type(name: str, value: Any, kind: str) -> str:
    """Return how to send a value in the right type, with the value itself if it is known."""
    meant: Any = None
    if kind == "string" and isinstance(value, int | float) and abs(value) <= LARGEST_INTEGER:
        meant = str(value)
    elif isinstance(value, str):
        meant = _loaded(value.strip().lower() if kind == "boolean" else value, kind)
        if meant is None and kind == "array":
            meant = [value]
    if meant is not None and len(shown := _send(name, meant)) <= _SHOWN:
        return shown
    return f"Send '{name}' as {kind}" + (", not as text of one" if isinstance(value, str) else "")


def _loaded(text: str, kind: str) -> Any:
    """Return the value that a text holds as JSON, if it is of the kind; otherwise None."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    kinds = {"integer": int, "boolean": bool, "array": list, "object": dict, "number": float}
    return value if value.__class__ is kinds.get(kind) else None


def _send(name: str, value: Any) -> str:
    return f'Send "{name}": {json.dumps(value, ensure_ascii=False)}'
