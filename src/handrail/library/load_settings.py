"""Loads the settings and rules of a workspace from its files, the environment and the caller."""

from collections.abc import Callable, Mapping
from typing import Any

from handrail.errors import SettingsError
from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.placeholder import is_empty_directory
from handrail.kernel.fs.reader import Reader
from handrail.kernel.fs.trusted_paths import agents_directories, resolved
from handrail.kernel.host.hook_trust import is_trusted
from handrail.kernel.host.state_dir import (
    State,
    config_home,
    directory_named,
    environment,
    read_small_text,
    state_home,
)
from handrail.kernel.host.use_counts import Tally
from handrail.model.faults import PathFault
from handrail.model.limits import Limits
from handrail.ops.glob.protected_names import read_globs
from handrail.policy.policy import Rules
from handrail.policy.rule_store import RuleFile
from handrail.policy.rules import from_entry
from handrail.settings import IGNORE_FILE, PROJECT_FILE, Settings
from handrail.settings import load as load_settings


def settings_for(boundary: FsBoundary, flags: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """Return the settings in force in a workspace, and warnings about settings that were ignored."""
    user_file, user = _users_file()
    own = user or flags.get("limits")
    limits = load_settings(user=user, flags=flags, user_file=user_file)[0].limits if own else Limits()
    project = project_text(boundary, limits)
    ignored = read_globs(_readable(IGNORE_FILE, lambda: _project_text(boundary, IGNORE_FILE, limits)))
    trusted = "hooks" in project and is_trusted(boundary.root, project)
    return load_settings(
        user=user,
        project=project,
        ignored=ignored,
        env=environment(),
        flags=flags,
        user_file=user_file,
        trusted=trusted,
    )


def project_text(boundary: FsBoundary, limits: Limits) -> str:
    """Return the text of the project's settings; empty if there are none."""
    return _readable(PROJECT_FILE, lambda: _project_text(boundary, PROJECT_FILE, limits))


def rules_for(settings: Settings, state: State, warnings: list[str]) -> Rules:
    """Return the approval rules of a workspace; warn about rules of the project that approve something."""
    limits, homes = settings.limits, (config_home(), state.path)
    user, project = (RuleFile.load(home, limits) for home in homes)
    own = tuple(from_entry(entry, f"rule {n} in {PROJECT_FILE}", limits) for n, entry in enumerate(settings.rules, 1))
    denying = tuple(rule for rule in own if rule.deny)
    if len(denying) < len(own):
        warnings.append(f"{PROJECT_FILE} cannot approve anything: only its rules with deny = true count")
    return Rules(user, project, limits, denying, Tally(f"{state_home()}/approvals.json"))


def users_models() -> Mapping[str, str]:
    """Return the setting `models`, which no project decides."""
    return _users_settings().models


def users_limits(flags: Mapping[str, Any] | None = None) -> Limits:
    """Return the limits of the user and the caller, for what is read before a workspace is open."""
    return _users_settings({name: each for name, each in (flags or {}).items() if name == "limits"}).limits


def _users_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    user_file, user = _users_file()
    return load_settings(user=user, user_file=user_file, flags=flags or {})[0]


def _users_file() -> tuple[str, str]:
    """Return the path and the text of the user's settings."""
    path = f"{config_home()}/config.toml"
    return path, _readable(path, lambda: read_small_text(path, Limits().config_bytes))


def with_directories(settings: Settings, root: str, warnings: list[str]) -> Settings:
    """Return the settings with the sandbox directories that exist on this machine; add a warning for each other one."""

    def found(key: str, names: tuple[str, ...], agents: tuple[str, ...]) -> tuple[str, ...]:
        named = {name: directory_named(name) for name in names}
        warnings.extend(
            f"{key}: {name} is not an absolute path to an existing directory" for name in names if not named[name]
        )
        led = {path: resolved(path, agents) for path in named.values() if path}
        warnings.extend(f"{key}: {p} is ignored: commands can change where it leads" for p, to in led.items() if not to)
        return tuple(to for to in led.values() if to)

    agents = agents_directories(root, filter(None, map(directory_named, settings.writable)))
    return settings._replace(
        readable=found("readable", settings.readable, agents), writable=found("writable", settings.writable, agents)
    )


def _project_text(boundary: FsBoundary, name: str, limits: Limits) -> str:
    if is_empty_directory(boundary.fd, name):  # a placeholder of a sandbox, which a killed process may have left
        return ""
    file = Reader(boundary, Limits(edit_bytes=limits.project_file_bytes)).read_if_there(name)
    return file.data.decode() if file else ""


def _readable(name: str, read: Callable[[], str]) -> str:
    try:
        return read()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name} cannot be read: {error}") from None
    except PathFault as fault:
        from handrail.tools.fault_errors import message_of  # noqa: PLC0415  only when something is wrong

        raise SettingsError(f"{name} cannot be read: {message_of(fault).message}") from None
