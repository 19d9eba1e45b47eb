"""Says which requests each era of the protocol has and what their parameters look like, and checks them.

A shape is a type, a tuple of allowed texts, a list with the shape of its items, `Either` of several shapes, or the
fields of an object. A field may be absent or null; if its name ends in `?` it may be absent, if in `!` it may not. `*`
stands for every field.
"""

from collections.abc import Callable
from typing import Any

from handrail.surfaces.mcp.mcp_protocol import (
    CALL,
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LOG_LEVEL_KEY,
    VERSION_KEY,
    Json,
)


class Either(list[Any]):
    """Holds shapes of which a value must have one."""


_ID = Either([str, int])
_LEVELS = ("alert", "critical", "debug", "emergency", "error", "info", "notice", "warning")
_ICON = {"src!": str, "mimeType": str, "sizes": [str], "theme": ("light", "dark")}
_PROGRAM = {"name!": str, "version!": str, "title": str, "description": str, "websiteUrl": str, "icons": [_ICON]}
_SETTINGS = {"*": dict}
_TASKS = {
    "cancel": dict,
    "list": dict,
    "requests": {"elicitation": {"create": dict}, "sampling": {"createMessage": dict}},
}
_FORMS, _SAMPLING = {"form": dict, "url": dict}, {"context": dict, "tools": dict}
_ABLE = {
    "elicitation": _FORMS,
    "sampling": _SAMPLING,
    "experimental": _SETTINGS,
    "extensions": _SETTINGS,
    "roots": {"listChanged": bool},
    "tasks": _TASKS,
}
_ABLE_STATELESS = {
    "elicitation": _FORMS,
    "sampling": _SAMPLING,
    "experimental": _SETTINGS,
    "extensions": _SETTINGS,
    "roots": dict,
}
_META = {"progressToken?": _ID}
_META_STATELESS = {
    VERSION_KEY + "!": str,
    CAPABILITIES_KEY + "!": _ABLE_STATELESS,
    CLIENT_KEY: _PROGRAM,
    LOG_LEVEL_KEY: _LEVELS,
    "progressToken?": _ID,
}
ANSWER = {
    "action!": ("accept", "cancel", "decline"),
    "content": {"*": Either([str, int, float, bool, [str], None])},
}
"""The answer of a client to a question."""
_SAMPLED = {"role!": ("assistant", "user"), "model!": str, "content!": Either([dict, [dict]]), "stopReason": str}
_ROOTS = {"roots!": [{"uri!": str, "name": str}]}
_AGAIN = {"requestState": str, "inputResponses": {"*": Either([ANSWER, _SAMPLED, _ROOTS])}}
"""The fields of a request that a client repeats with answers."""
_PAGE = {"cursor": str}
_PROMPT, _TEMPLATE = {"type!": ("ref/prompt",), "name!": str, "title": str}, {"type!": ("ref/resource",), "uri!": str}
_COMPLETED = {
    "argument!": {"name!": str, "value!": str},
    "context": {"arguments": {"*": str}},
    "ref!": Either([_PROMPT, _TEMPLATE]),
}
_WATCHED = {
    "promptsListChanged": bool,
    "resourcesListChanged": bool,
    "toolsListChanged": bool,
    "resourceSubscriptions": [str],
}

_BOTH: dict[str, Json] = {
    "tools/list": _PAGE,
    CALL: {"name!": str, "arguments": dict, "task": {"ttl": int}, **_AGAIN},
    "resources/list": _PAGE,
    "resources/templates/list": _PAGE,
    "resources/read": {"uri!": str, **_AGAIN},
    "prompts/list": _PAGE,
    "prompts/get": {"name!": str, "arguments": {"*": str}, **_AGAIN},
    "completion/complete": _COMPLETED,
}
_HANDSHAKE: dict[str, Json] = _BOTH | {
    "initialize": {"protocolVersion!": str, "capabilities!": _ABLE, "clientInfo!": _PROGRAM},
    "ping": {},
    "logging/setLevel": {"level!": _LEVELS},
    "resources/subscribe": {"uri!": str},
    "resources/unsubscribe": {"uri!": str},
}
_STATELESS: dict[str, Json] = _BOTH | {"server/discover": {}, "subscriptions/listen": {"notifications!": _WATCHED}}

HANDSHAKE_REQUESTS: dict[str, Json] = {name: {**fields, "_meta": _META} for name, fields in _HANDSHAKE.items()}
"""The parameters of each request in the revisions with a handshake."""
STATELESS_REQUESTS: dict[str, Json] = {name: {**each, "_meta!": _META_STATELESS} for name, each in _STATELESS.items()}
"""The parameters of each request in the stateless revisions."""

_TRUTHS = ("0", "1", "f", "false", "n", "no", "off", "on", "t", "true", "y", "yes")


def fits(value: Any, shape: Any) -> bool:
    """Return True if a value has a shape. Numbers and truth values may be texts, as clients in loose languages send."""
    if isinstance(shape, dict):
        return isinstance(value, dict) and _has_fields(value, shape)
    if isinstance(shape, Either):
        return any(fits(value, each) for each in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(each, shape[0]) for each in value)
    if isinstance(shape, tuple):
        return value in shape
    check = _LOOSE.get(shape)
    return check(value) if check else value is None if shape is None else isinstance(value, shape)


def _has_fields(value: Json, shape: Json) -> bool:
    for name, each in shape.items():
        if name == "*":
            if not all(fits(one, each) for one in value.values()):
                return False
        elif name.endswith(("!", "?")):
            known = name[:-1]
            if (known in value or name.endswith("!")) and not fits(value.get(known), each):
                return False
        elif value.get(name) is not None and not fits(value[name], each):
            return False
    return True


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        digits = value.strip().lstrip("+-").replace("_", "")
        return digits.isascii() and digits.isdigit()
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, list | dict) and value is not None and float(value) is not None
    except ValueError:
        return False


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or value in (0, 1) or (isinstance(value, str) and value.lower() in _TRUTHS)


_LOOSE: dict[Any, Callable[[Any], bool]] = {int: _is_whole, float: _is_number, bool: _is_truth}
