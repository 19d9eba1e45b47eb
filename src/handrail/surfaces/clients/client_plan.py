"""Plans what `handrail config` writes for one client: the entry of the server, and the values of other settings."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from handrail.dialects import load
from handrail.kernel.host.client_files import absolute, application_data, config_directory, own_command
from handrail.model.effects import needs_approval
from handrail.surfaces.clients.client_records import NAME, ClientKind, Files, Switch
from handrail.tools.exports import api_name

_OTHER_SCOPE = "the client keeps one of these settings for the user only; run this command with --scope user too"


class Choices(NamedTuple):
    """Holds what the user chose. None means that nothing is written about it."""

    dialect: str | None = None
    approve: str | None = None
    read_only: bool = False
    quiet: bool = False
    """True if the client's own question before calls of Handrail's tools is switched off."""
    own_off: bool = False
    """True if the client's own tools that run commands and change files are switched off."""


class ConfigPlace(NamedTuple):
    """Holds where the configuration goes."""

    root: str
    """The absolute path of the workspace."""
    scope: str
    """project or user."""
    pinned: bool = False
    """True if the user named the root, so that an entry for all projects names it too."""
    file: str = ""
    """The file for the entry, if the user named one."""


class Setting(NamedTuple):
    """Holds one value in a configuration file."""

    path: tuple[str, ...]
    value: Any


class FilePlan(NamedTuple):
    """Holds the values for one file."""

    path: str
    form: str
    settings: list[Setting]


class ConfigPlan(NamedTuple):
    """Holds everything that `handrail config` writes or says for one client."""

    entry: dict[str, Any]
    files: list[FilePlan]
    by_hand: list[str]


def make_plan(kind: ClientKind, place: ConfigPlace, chosen: Choices) -> ConfigPlan:
    """Return what to write: first the file with the entry, then the other files."""
    switches = [
        *([kind.host] if chosen.approve == "host" else []),
        *([kind.quiet] if chosen.quiet else []),
        *([kind.own_off] if chosen.own_off and kind.own_tools else []),
    ]
    names = _Names(kind, chosen)
    made = _entry(kind, place, chosen)
    for switch in switches:
        made |= names.filled(switch.entry)
    target = server_file(kind, place)
    settings = {target: [Setting((kind.key, NAME), made)]}
    for switch in switches:
        for path, values in _files(switch, place.scope).items():
            settings.setdefault(_located(path, place), []).extend(_leaves(names.filled(values)))
    by_hand = [each.by_hand or _OTHER_SCOPE for each in switches if each.by_hand or _is_missing(each, place.scope)]
    return ConfigPlan(made, [FilePlan(each, form_of(kind, each), values) for each, values in settings.items()], by_hand)


def _is_missing(switch: Switch, scope: str) -> bool:
    """Return True if the client has a setting, but not in this scope."""
    return not switch.entry and not _files(switch, scope) and bool(switch.project or switch.user)


def server_file(kind: ClientKind, place: ConfigPlace) -> str:
    """Return the absolute path of the file that holds the servers."""
    return place.file or _located(kind.project if place.scope == "project" else kind.user, place)


def form_of(kind: ClientKind, path: str) -> str:
    """Return the form of a file: that of the client, if the ending of the name does not say otherwise."""
    ending = path.rpartition(".")[2]
    return {"toml": "toml", "json": "json", "yaml": "yaml"}.get(ending, kind.form)


def _located(path: str, place: ConfigPlace) -> str:
    if place.scope == "project":
        return f"{place.root}/{path}"
    return absolute(path.format(data=application_data(), config=config_directory()))


def _files(switch: Switch, scope: str) -> Files:
    return switch.project if scope == "project" else switch.user


def _entry(kind: ClientKind, place: ConfigPlace, chosen: Choices) -> dict[str, Any]:
    """Return the entry that starts our MCP server."""
    dialect = chosen.dialect or kind.dialect
    dotted = any(name != api_name(name) for name in load(dialect).tools)
    program, *first = ["handrail"] if place.scope == "project" else own_command()
    arguments = [
        *first,
        "mcp",
        *_root_arguments(kind, place),
        *("--dialect", dialect),
        *(["--safe-names"] if dotted else []),
        *(["--read-only"] if chosen.read_only else []),
        *(["--approve", chosen.approve] if chosen.approve else []),
    ]
    started = {kind.command: [program, *arguments]} if kind.one_list else {kind.command: program, "args": arguments}
    return {**kind.entry, **started}


def _root_arguments(kind: ClientKind, place: ConfigPlace) -> list[str]:
    """Return how the entry names the root. A file in a project never names a directory of this machine."""
    if kind.starts_anywhere or (place.pinned and place.scope == "user"):
        return ["--root", place.root]
    return ["--root", kind.root] if kind.root else []


class _Names:
    """Replaces `{tool}`, `{read}` and `{change}` in values with the names that the client gives to our tools."""

    def __init__(self, kind: ClientKind, chosen: Choices) -> None:
        tools = load(chosen.dialect or kind.dialect).tools
        names = {name: kind.tool.replace("{tool}", api_name(name)) for name in tools}
        changes = [names[name] for name, tool in tools.items() if needs_approval(tool.effects)]
        reads = [each for each in names.values() if each not in changes]
        self._meaning = {"{tool}": [*names.values()], "{read}": reads, "{change}": changes}

    def filled(self, value: Any) -> Any:
        """Return a value with every template replaced: an item or a key becomes one for each tool."""
        if isinstance(value, dict):
            return {name: self.filled(inner) for key, inner in value.items() for name in self._meaning.get(key, [key])}
        if isinstance(value, list):
            return [name for each in value for name in self._expanded(each)]
        return value

    def _expanded(self, item: Any) -> list[Any]:
        found = self._meaning.get(item) if isinstance(item, str) else None
        return found if found is not None else [self.filled(item)]


def _leaves(values: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[Setting]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*path, key))
        else:
            yield Setting((*path, key), value)
