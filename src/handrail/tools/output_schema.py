"""Derives the schema of a tool's output from the return type of its function.

A `TypedDict` says what the object holds, so the type checker keeps function and schema together; a plain `dict` is some
object; text has no schema.
"""

from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

_NAMED: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    NoneType: {"type": "null"},
    dict: {"type": "object"},
    Any: {},
}


def output_schema(returned: Any) -> dict[str, Any] | None:
    """Return the schema of an output type; None if some outputs are not objects."""
    options = get_args(returned) if get_origin(returned) in (Union, UnionType) else (returned,)
    if not all(is_typeddict(option) or (get_origin(option) or option) is dict for option in options):
        return None
    schemas = [_schema(option) for option in options]
    return schemas[0] if len(schemas) == 1 else {"type": "object", "anyOf": schemas}


def _schema(kind: Any) -> dict[str, Any]:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(option) for option in args]}
    if origin is Literal:
        return {"enum": list(args)}
    if origin is list:
        return {"type": "array", "items": _schema(args[0])}
    if is_typeddict(kind):
        fields = get_type_hints(kind)
        return {
            "type": "object",
            "properties": {name: _schema(each) for name, each in fields.items()},
            "required": [name for name in fields if name in kind.__required_keys__],
        }
    return _NAMED[origin or kind]
