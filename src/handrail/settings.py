"""What a person may set: defaults < user's file < project's file (which may only tighten) < HANDRAIL_* < flags."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from handrail.kernel.session import Powers
from handrail.limits import Limits

PROJECT_FILE = ".handrail.toml"

# From the loosest to the tightest.
APPROVE = ("auto", "host", "ask", "never")
SANDBOX = ("off", "network", "strict")
DURABILITY = ("none", "rename", "full")
LOG_LEVELS = ("debug", "info", "off")


class BadSettings(Exception):  # noqa: N818  a message for the person who wrote the file
    pass


@dataclass(frozen=True, slots=True)
class Settings:
    approve: str = "ask"
    read_only: bool = False
    sandbox: str = "strict"
    durability: str = "full"
    log: str | None = None
    log_level: str = "info"
    readable: tuple[str, ...] = ()
    """Directories outside the workspace that commands may read."""
    writable: tuple[str, ...] = ()
    """Directories outside the workspace that commands may change."""
    environment: tuple[str, ...] = ()
    """Variables that commands may see, beside PATH, HOME, LANG and TERM."""
    guarded: tuple[str, ...] | None = None
    """Names in the workspace that commands can neither create nor change; a list of the usual ones if not set."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts that may be fetched from although their address is not a public one."""
    builtin_search: bool = True
    limits: Limits = field(default_factory=Limits)

    @property
    def powers(self) -> Powers:
        return Powers(**{each.name: getattr(self, each.name) for each in fields(Powers)})


_CHOICES = {"approve": APPROVE, "sandbox": SANDBOX, "durability": DURABILITY, "log_level": LOG_LEVELS}


_LISTS = ("readable", "writable", "environment", "guarded", "allow_hosts")


def _tighter_choice(name: str) -> Callable[[Any, Any], Any]:
    order = _CHOICES[name]
    return lambda old, new: max(old, new, key=order.index)


# What a project may ask for, each as (the person's value, the project's) -> the value in force.
_TIGHTEN: dict[str, Callable[[Any, Any], Any]] = {
    "approve": _tighter_choice("approve"),
    "sandbox": _tighter_choice("sandbox"),
    "durability": _tighter_choice("durability"),
    "read_only": lambda old, new: old or new,
}


def load(
    *,
    user: str = "",
    project: str = "",
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> tuple[Settings, list[str]]:
    """The settings in force, and what the project asked for in vain."""
    settings = _merge(Settings(), _parse(user, "the user's configuration"))
    settings, notes = _tighten(settings, _parse(project, PROJECT_FILE))
    named = {key[9:].lower(): value for key, value in (env or {}).items() if key.startswith("HANDRAIL_") and value}
    known = {each.name for each in fields(Settings)} - {"limits"}
    settings = _merge(settings, {key: _from_text(key, value) for key, value in named.items() if key in known})
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    return _merge(settings, given), notes


def _parse(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(f"{where} is not valid TOML: {error}") from None


def _merge(settings: Settings, given: Mapping[str, Any]) -> Settings:
    for key, value in given.items():
        if key == "limits":
            settings = replace(settings, limits=_limits(settings.limits, value, min_only=False))
        else:
            settings = replace(settings, **{key: _checked(key, value)})
    return settings


def _tighten(settings: Settings, given: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    notes = []
    for key, value in given.items():
        if key == "limits":
            settings = replace(settings, limits=_limits(settings.limits, value, min_only=True))
            continue
        old: Any = getattr(settings, key, None)
        new = _checked(key, value)
        kept = _TIGHTEN[key](old, new) if key in _TIGHTEN else old
        if kept != new:
            notes.append(f"{PROJECT_FILE} cannot set {key} = {value!r}: a project may only tighten")
        settings = replace(settings, **{key: kept})
    return settings, notes


def _checked(key: str, value: Any) -> Any:
    kinds = {"read_only": bool, "builtin_search": bool, "log": str}
    if key in _LISTS:
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise BadSettings(f"{key} must be a list of strings, not {value!r}")
        return tuple(value)
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            raise BadSettings(f"{key} must be one of {', '.join(_CHOICES[key])}, not {value!r}")
    elif key not in kinds:
        raise BadSettings(f"there is no setting {key!r}")
    elif not isinstance(value, kinds[key]):
        raise BadSettings(f"{key} must be {kinds[key].__name__}, not {value!r}")
    return value


def _from_text(key: str, value: str) -> Any:
    if key in _LISTS:
        return [each for each in value.split(":") if each]
    return value.lower() in ("1", "true", "yes", "on") if key in ("read_only", "builtin_search") else value


def _limits(limits: Limits, given: Any, *, min_only: bool) -> Limits:
    if not isinstance(given, dict):
        raise BadSettings("limits must be a table")
    for name, value in given.items():
        old = getattr(limits, name, None)
        if old is None:
            raise BadSettings(f"there is no limit {name!r}")
        if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
            raise BadSettings(f"limits.{name} must be a number, not {value!r}")
        kind = type(old)
        limits = replace(limits, **{name: min(old, kind(value)) if min_only else kind(value)})
    return limits
