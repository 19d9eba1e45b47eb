"""Merges settings: defaults < user's file < project's file (which may only tighten) < HANDRAIL_* < the caller's."""

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from handrail.errors import SettingsError, did_you_mean
from handrail.model.faults import InvalidPattern
from handrail.model.hooks import Hook
from handrail.model.limits import ANSWER_TOKENS, BYTES_PER_TOKEN, LARGEST_INTEGER, MAY_BE_LOWERED, Limits
from handrail.ops.glob.guarded_names import OWN_FILES
from handrail.ops.glob.protected_names import SECRETS, alternatives, protection
from handrail.ops.hook_table import read_hooks
from handrail.ops.toml_read import parse_toml

_DIGITS = 20
"""As many as the largest number has, and one more."""

OWN_VARIABLES = ("HANDRAIL_STATE_DIR", "HANDRAIL_CONFIG_DIR")

PROJECT_FILE, IGNORE_FILE = OWN_FILES

# Each from the loosest to the tightest.
APPROVE = ("auto", "host", "edit", "ask", "never")
PRESETS: dict[str, dict[str, Any]] = {
    "trusted": {"approve": "auto"},
    "edit": {"approve": "edit"},
    "read-only": {"read_only": True},
}
"""What one word sets; other settings of the same source win."""
SANDBOX = ("off", "network", "strict")
DURABILITY = ("none", "log", "rename", "full")
JOURNAL = ("off", "on", "required")
LOG_LEVELS = ("debug", "info", "off")
TELEMETRY = ("otel", "off")


class Powers(NamedTuple):
    """Says what commands, fetches and searches may do, and what answers show."""

    sandbox: str = "strict"
    network: tuple[str, ...] = ()
    allow_reduced: bool = False
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    guarded: tuple[str, ...] | None = None
    allow_hosts: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    builtin_search: bool = True
    """Let the built-in engine search if there is no ripgrep."""
    ignore_files: bool = True
    hints: bool = True
    answer_tokens: int = ANSWER_TOKENS

    @property
    def level(self) -> str:
        """The sandbox level that is wanted: `hosts` if commands may reach only the hosts in `network`."""
        return "hosts" if self.network and self.sandbox != "off" else self.sandbox

    @property
    def answer_bytes(self) -> int | None:
        """About how many bytes one answer shows; None for no bound."""
        return self.answer_tokens * BYTES_PER_TOKEN or None


class Settings(NamedTuple):
    """Holds the settings in force in a workspace. docs/settings.md explains them."""

    approve: str = "ask"
    preset: str = ""
    """The user's or the caller's word for other settings; empty for none."""
    read_only: bool = False
    sandbox: str = "strict"
    network: tuple[str, ...] = ()
    """The only hosts that commands may reach; empty: all or none, as `sandbox` says."""
    allow_reduced: bool = False
    """Let commands run at level `reduced` on a machine that cannot give the level of `sandbox`."""
    durability: str = "full"
    journal: str = "on"
    """Record changes so that they can be undone; `required`: refuse a change that cannot be recorded."""
    log: str | None = None
    log_level: str = "info"
    readable: tuple[str, ...] = ()
    """Directories outside the workspace that commands may read."""
    writable: tuple[str, ...] = ()
    """Directories outside the workspace that commands may change."""
    environment: tuple[str, ...] = ()
    """Variables that commands may see, in addition to PATH, HOME, LANG and TERM."""
    guarded: tuple[str, ...] | None = None
    """Names in the workspace that commands can neither create nor change; None: the usual ones."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts that may be fetched from although their address is not public."""
    builtin_search: bool = True
    ignore_files: bool = True
    """Leave out of searches what .gitignore and similar files name, and directories such as node_modules."""
    hints: bool = True
    """Show suggestions and warnings to the model."""
    answer_tokens: int = ANSWER_TOKENS
    """About how many tokens of command output, search results or listings one answer shows; 0 for no bound."""
    protect: tuple[str, ...] = ()
    """Globs of files that no tool may reach; `@secrets` stands for the usual ones."""
    models: Mapping[str, str] = MappingProxyType({})
    """Globs of model names, each with the dialect for these models; they come before the built-in table."""
    telemetry: str = "off"
    """`otel`: describe each call as an OpenTelemetry span, for the exporter that the user has configured."""
    telemetry_contents: bool = False
    """Put parameters and results into the spans."""
    hooks: tuple[Hook, ...] = ()
    """The user's own programs that judge calls or act after them; a project's only if the user trusts its file."""
    rules: tuple[Any, ...] = ()
    """Approval rules of the project's own file; only those that deny count."""
    limits: Limits = Limits()

    @property
    def powers(self) -> Powers:
        return Powers(*(getattr(self, name) for name in Powers._fields))


_CHOICES = {
    "approve": APPROVE,
    "preset": tuple(PRESETS),
    "sandbox": SANDBOX,
    "durability": DURABILITY,
    "journal": JOURNAL,
    "log_level": LOG_LEVELS,
    "telemetry": TELEMETRY,
}


_LISTS = ("network", "readable", "writable", "environment", "guarded", "allow_hosts", "protect")
_YES_OR_NO = ("read_only", "allow_reduced", "builtin_search", "ignore_files", "hints", "telemetry_contents")
_NUMBERS = ("answer_tokens",)
_NOT_SETTABLE = ("limits", "models", "rules", "hooks")
"""Settings that no variable can set."""
_PREFIX = "HANDRAIL_"


def _tighter_choice(name: str) -> Callable[[Any, Any], Any]:
    order = _CHOICES[name]
    return lambda old, new: max(old, new, key=order.index)


def _tighter_number(old: int, new: int) -> int:
    """Return the smaller number; 0 means no bound."""
    return min(old, new) if old and new else old or new


# What a project may tighten: (the user's value, the project's value) -> the value in force.
_TIGHTEN: dict[str, Callable[[Any, Any], Any]] = {
    "approve": _tighter_choice("approve"),
    "sandbox": _tighter_choice("sandbox"),
    "durability": _tighter_choice("durability"),
    "journal": _tighter_choice("journal"),
    "read_only": lambda old, new: old or new,
    "allow_reduced": lambda old, new: old and new,
    "protect": lambda old, new: (*old, *new),
    "answer_tokens": _tighter_number,
}


def load(
    *,
    user: str = "",
    project: str = "",
    ignored: list[str] | None = None,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    user_file: str = "config.toml",
    trusted: bool = False,
) -> tuple[Settings, list[str]]:
    """Return the settings in force, and warnings. `ignored` are the globs of the project's ignore file.

    `trusted` says that the user trusts the hooks in this very text of the project's file.
    """
    settings = _merge(Settings(), _parse(user, user_file), f"{user_file}: ")
    wanted = _parse(project, PROJECT_FILE)
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    limits = _merge(settings, given, "").limits
    _expect_few(wanted.get("protect"), f"{PROJECT_FILE}: ", limits)
    _expect_few(ignored, f"{IGNORE_FILE}: ", limits)
    rules, hooks = wanted.pop("rule", []), read_hooks(wanted.pop("hooks", {}), f"{PROJECT_FILE}: ", PROJECT_FILE)
    settings, notes = _tighten(settings, wanted)
    if hooks and not trusted:
        notes.append(f"{PROJECT_FILE} has hooks, which do not run; to see and trust them: handrail hooks trust")
    settings = settings._replace(rules=tuple(rules) if isinstance(rules, list) else (rules,))
    known = {f"{_PREFIX}{name.upper()}": name for name in Settings._fields if name not in _NOT_SETTABLE}
    for name, value in sorted((env or {}).items(), key=lambda each: each[0] != f"{_PREFIX}PRESET"):
        if name.startswith(_PREFIX) and name not in (*known, *OWN_VARIABLES) and value:
            notes.append(_unknown_variable(name, [*known, *OWN_VARIABLES]))
        elif name in known and value:
            settings = _merge(settings, {known[name]: _from_text(known[name], value)}, f"{name}: ")
    settings = _merge(settings, given, "")
    if trusted and "hooks" not in given:
        settings = settings._replace(hooks=(*settings.hooks, *hooks))
    globs = _checked("protect", ignored or [], f"{IGNORE_FILE}: ")
    return settings._replace(protect=(*settings.protect, *globs)), notes


def _unknown_variable(name: str, known: list[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415  only when something is wrong

    near = get_close_matches(name.removeprefix(_PREFIX), [each.removeprefix(_PREFIX) for each in known], 1)
    return f"unknown variable {name} ignored" + (f"; did you mean {_PREFIX}{near[0]}?" if near else "")


def _parse(text: str, where: str) -> dict[str, Any]:
    if not text:
        return {}

    try:
        return parse_toml(text)
    except ValueError as error:
        raise SettingsError(f"{where}: not valid TOML: {error}") from None


def _merge(settings: Settings, given: Mapping[str, Any], where: str) -> Settings:
    for key, value in {**_preset(given, where), **given}.items():
        if key == "limits":
            settings = settings._replace(limits=settings.limits._replace(**_limits(value, where)))
        else:
            settings = settings._replace(**{key: _checked(key, value, where)})
    return settings


def _preset(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the settings that a preset stands for."""
    return PRESETS[_checked("preset", given["preset"], where)] if "preset" in given else {}


def _tighten(settings: Settings, given: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    where = f"{PROJECT_FILE}: "
    notes = []
    given = {**_preset(given, where), **{key: value for key, value in given.items() if key != "preset"}}
    for key, value in sorted(given.items(), key=lambda item: item[0] != "network"):  # before `sandbox` narrows the rest
        if key == "limits":
            wanted = _limits(value, where)
            lower = {name: new for name, new in wanted.items() if new < getattr(settings.limits, name)}
            kept = {name: new for name, new in lower.items() if name in MAY_BE_LOWERED}
            settings = settings._replace(limits=settings.limits._replace(**kept))
            vain = [name for name, new in wanted.items() if new != getattr(settings.limits, name)]
            notes += [_ignored_setting(f"limits.{name}", wanted[name]) for name in vain]
            continue
        new = _checked(key, value, where)
        if key == "network":
            settings = _fewer_hosts(settings, new)
            if set(settings.network) != set(new):
                notes.append(_ignored_setting(key, value))
            continue
        old = getattr(settings, key)
        tightened = _TIGHTEN[key](old, new) if key in _TIGHTEN else old
        if tightened != new and key != "protect":
            notes.append(_ignored_setting(key, value))
        settings = settings._replace(**{key: tightened})
    return settings, notes


def _fewer_hosts(settings: Settings, wanted: tuple[str, ...]) -> Settings:
    """Return the settings with the hosts that both the user and the project name; none if they have none in common."""
    if not wanted or settings.sandbox == "off":
        return settings
    if not settings.network:
        return settings._replace(network=wanted) if settings.sandbox == "network" else settings
    from handrail.ops.network.host_patterns import common_patterns  # noqa: PLC0415  few users name hosts

    common = common_patterns(settings.network, wanted)
    return settings._replace(network=common, sandbox=settings.sandbox if common else "strict")


def _ignored_setting(key: str, value: Any) -> str:
    return f"{PROJECT_FILE} cannot set {key} = {value!r}: a project may only tighten"


def _checked(key: str, value: Any, where: str) -> Any:
    kinds = dict.fromkeys(_YES_OR_NO, (bool, "true or false")) | {"log": (str, "the name of a file")}
    if key == "protect" and isinstance(value, str):
        value = [f"@{value}"]
    if key in _LISTS:
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise SettingsError(f"{where}{key} must be a list of strings, not {value!r}")
        if key in _CHECKS:
            _CHECKS[key](value, where)
        return tuple(value)
    if key in _OWN_FORMS:
        return _OWN_FORMS[key](value, where)
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            raise SettingsError(f"{where}{key} must be one of {', '.join(_CHOICES[key])}, not {value!r}")
    elif key not in kinds:
        raise SettingsError(f"{where}unknown setting {key!r}{did_you_mean(key, Settings._fields)}")
    elif not isinstance(value, kinds[key][0]):
        raise SettingsError(f"{where}{key} must be {kinds[key][1]}, not {value!r}")
    return value


def _number(key: str, value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_INTEGER:
        raise SettingsError(f"{where}{key} must be a whole number, 0 or larger, not {value!r}")
    return value


def _models(value: Any, where: str) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(each, str) for pair in value.items() for each in pair):
        raise SettingsError(f"{where}models must be a table of globs and dialects, not {value!r}")
    return MappingProxyType(dict(value))


_OWN_FORMS: dict[str, Callable[[Any, str], Any]] = {
    "hooks": lambda value, where: read_hooks(value, where, where.removesuffix(": ")),
    "models": _models,
    **{name: partial(_number, name) for name in _NUMBERS},
}
"""The settings that are tables or numbers, each with what reads it."""


def _expect_few(globs: Any, where: str, limits: Limits) -> None:
    """Raise SettingsError for more globs than a project may name, before any is compiled and checked."""
    count = 0
    for each in globs if isinstance(globs, list) else ():
        with suppress(InvalidPattern):
            count += alternatives(each) if isinstance(each, str) else 1
        if count > limits.protect_globs:
            raise SettingsError(f"{where}more than {limits.protect_globs} globs to protect")


def _check_globs(globs: Iterable[str], where: str) -> None:
    for each in globs:
        if each.startswith("@") and each != SECRETS:
            raise SettingsError(f"{where}unknown list of files {each[1:]!r}; did you mean {SECRETS[1:]!r}?")
        try:
            protection((each,))
        except InvalidPattern as fault:
            raise SettingsError(f"{where}protect: {fault.pattern!r} is not a glob: {fault.reason}") from None


def _check_hosts(hosts: Iterable[str], where: str) -> None:
    from handrail.ops.network.host_patterns import parse_pattern  # noqa: PLC0415  few users name hosts

    for each in hosts:
        try:
            parse_pattern(each)
        except ValueError as error:
            raise SettingsError(f"{where}network: {each!r} is not a host: {error}") from None


_CHECKS = {"protect": _check_globs, "network": _check_hosts}


def _from_text(key: str, value: str) -> Any:
    """Return the value of a variable; text that means neither yes nor no stays text, which the check refuses."""
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if key == "protect" and value == SECRETS[1:]:
        return value
    if key in _LISTS:
        return [each.strip() for each in value.split(",") if each.strip()]
    if key in _NUMBERS and value.isascii() and value.isdigit():
        return int(value[:_DIGITS])
    return words.get(value.lower(), value) if key in _YES_OR_NO else value


def _limits(given: Any, where: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise SettingsError(f"{where}limits must be a table, not {given!r}")
    kinds = {name: type(value) for name, value in Limits()._asdict().items()}
    for name, value in given.items():
        if name not in kinds:
            raise SettingsError(f"{where}unknown limit {name!r}{did_you_mean(name, kinds)}")
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
            raise SettingsError(f"{where}limits.{name} must be a number, 0 or larger, not {value!r}")
    return {name: kinds[name](value) for name, value in given.items()}
