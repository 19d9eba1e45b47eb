"""Merges settings: defaults < user's file < project's file (which may only tighten) < HANDRAIL_* < the caller's."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from handrail.errors import SettingsError, did_you_mean
from handrail.model.faults import InvalidPattern
from handrail.model.limits import ANSWER_TOKENS, BYTES_PER_TOKEN, LARGEST_INTEGER, MAY_BE_LOWERED, Limits
from handrail.ops.glob.guarded_names import OWN_FILES
from handrail.ops.glob.protected_names import SECRETS, alternatives, protection

_DEEPEST = 100
"""The depth to which TOML may be nested: more than any file needs, less than Python's recursion limit."""
_PARTS = 20
"""The most parts of a dotted key: the parser's time grows with their square."""
_KEY = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"{_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{{_PARTS}}}")

_DIGITS = 20
"""As many as the largest number has, and one more."""

OWN_VARIABLES = ("HANDRAIL_STATE_DIR", "HANDRAIL_CONFIG_DIR")

PROJECT_FILE, IGNORE_FILE = OWN_FILES

# Each from the loosest to the tightest.
APPROVE = ("auto", "host", "ask", "never")
SANDBOX = ("off", "network", "strict")
DURABILITY = ("none", "rename", "full")
JOURNAL = ("off", "on", "required")
LOG_LEVELS = ("debug", "info", "off")


class Powers(NamedTuple):
    """Says what commands, fetches and searches may do, and what answers show."""

    sandbox: str = "strict"
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
    def answer_bytes(self) -> int | None:
        """About how many bytes one answer shows; None for no bound."""
        return self.answer_tokens * BYTES_PER_TOKEN or None


class Settings(NamedTuple):
    """The settings in force in a workspace. docs/settings.md explains them."""

    approve: str = "ask"
    read_only: bool = False
    sandbox: str = "strict"
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
    rules: tuple[Any, ...] = ()
    """Approval rules of the project's own file; only those that deny count."""
    limits: Limits = Limits()

    @property
    def powers(self) -> Powers:
        return Powers(*(getattr(self, name) for name in Powers._fields))


_CHOICES = {
    "approve": APPROVE,
    "sandbox": SANDBOX,
    "durability": DURABILITY,
    "journal": JOURNAL,
    "log_level": LOG_LEVELS,
}


_LISTS = ("readable", "writable", "environment", "guarded", "allow_hosts", "protect")
_YES_OR_NO = ("read_only", "allow_reduced", "builtin_search", "ignore_files", "hints")
_NUMBERS = ("answer_tokens",)
_NOT_SETTABLE = ("limits", "models", "rules")
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
) -> tuple[Settings, list[str]]:
    """Return the settings in force, and warnings. `ignored` are the globs of the project's ignore file."""
    settings = _merge(Settings(), _parse(user, user_file), f"{user_file}: ")
    wanted = _parse(project, PROJECT_FILE)
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    limits = _merge(settings, given, "").limits
    _expect_few(wanted.get("protect"), f"{PROJECT_FILE}: ", limits)
    _expect_few(ignored, f"{IGNORE_FILE}: ", limits)
    rules = wanted.pop("rule", [])
    settings, notes = _tighten(settings, wanted)
    settings = settings._replace(rules=tuple(rules) if isinstance(rules, list) else (rules,))
    known = {f"{_PREFIX}{name.upper()}": name for name in Settings._fields if name not in _NOT_SETTABLE}
    for name, value in (env or {}).items():
        if name.startswith(_PREFIX) and name not in (*known, *OWN_VARIABLES) and value:
            notes.append(_unknown_variable(name, [*known, *OWN_VARIABLES]))
        elif name in known and value:
            settings = _merge(settings, {known[name]: _from_text(known[name], value)}, f"{name}: ")
    settings = _merge(settings, given, "")
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
    for key, value in given.items():
        if key == "limits":
            settings = settings._replace(limits=settings.limits._replace(**_limits(value, where)))
        else:
            settings = settings._replace(**{key: _checked(key, value, where)})
    return settings


def _tighten(settings: Settings, given: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    where = f"{PROJECT_FILE}: "
    notes = []
    for key, value in given.items():
        if key == "limits":
            wanted = _limits(value, where)
            lower = {name: new for name, new in wanted.items() if new < getattr(settings.limits, name)}
            kept = {name: new for name, new in lower.items() if name in MAY_BE_LOWERED}
            settings = settings._replace(limits=settings.limits._replace(**kept))
            vain = [name for name, new in wanted.items() if new != getattr(settings.limits, name)]
            notes += [_ignored_setting(f"limits.{name}", wanted[name]) for name in vain]
            continue
        new = _checked(key, value, where)
        old = getattr(settings, key)
        tightened = _TIGHTEN[key](old, new) if key in _TIGHTEN else old
        if tightened != new and key != "protect":
            notes.append(_ignored_setting(key, value))
        settings = settings._replace(**{key: tightened})
    return settings, notes


def _ignored_setting(key: str, value: Any) -> str:
    return f"{PROJECT_FILE} cannot set {key} = {value!r}: a project may only tighten"


def _checked(key: str, value: Any, where: str) -> Any:
    kinds = dict.fromkeys(_YES_OR_NO, (bool, "true or false")) | {"log": (str, "the name of a file")}
    if key == "protect" and isinstance(value, str):
        value = [f"@{value}"]
    if key in _LISTS:
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise SettingsError(f"{where}{key} must be a list of strings, not {value!r}")
        if key == "protect":
            _check_globs(value, where)
        return tuple(value)
    if key in (*_NUMBERS, "models"):
        return _models(value, where) if key == "models" else _number(key, value, where)
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


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML that a user or a project wrote. Raises ValueError, also for nesting and numbers without bounds."""
    import tomllib  # noqa: PLC0415  only needed if there is a file

    if _LONG_KEY.search(text):
        raise ValueError("it is nested too deeply")
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    for level in levels(found):
        if any(isinstance(each, int) and abs(each) > LARGEST_INTEGER for each in level):
            raise ValueError("a number in it has more than 64 bits")
    return found


def levels(value: Any) -> Iterator[list[Any]]:
    """Yield the values inside a value, level by level. Raises ValueError if it is nested too deeply."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _within(each)]
        if not level:
            return
        yield level
    raise ValueError("it is nested too deeply")


def _within(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
