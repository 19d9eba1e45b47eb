"""Starts the server as the entry of a client says, and lists its tools, for `handrail config --check`."""

from typing import Any

from handrail.kernel.host.client_files import environment, is_inside_text, on_path
from handrail.model.limits import Limits
from handrail.surfaces.clients.client_plan import ConfigPlace
from handrail.surfaces.clients.client_records import ClientKind

_ENVIRONMENTS = ("env", "envs", "environment", "cwd")
_SWITCHES = frozenset({"--read-only", "--safe-names", "--with-undo"})
_OPTIONS = frozenset({"--approve", "--dialect", "--model", "--network", "--preset", "--root", "--sandbox", "--tools"})
"""Options of `handrail mcp` that only say which tools it offers: it writes no file and opens no port for them."""


class NotChecked(Exception):  # noqa: N818  its text is a message for the user
    """The server of an entry was not started, or it did not answer."""


def list_tools(kind: ClientKind, place: ConfigPlace, entry: Any) -> list[str]:
    """Return the tools of the server that an entry starts. Raises NotChecked."""
    command = _command(kind, place, entry)
    if place.scope == "project":
        _refuse_foreign(place, command, entry)
    import anyio  # noqa: PLC0415  loads the SDK's needs; the checks above do not need it

    try:
        return anyio.run(_listed, [*command], place.root)
    except TimeoutError:
        raise NotChecked("the server did not answer in time") from None
    except Exception as error:  # noqa: BLE001  the SDK raises many kinds, and groups of them
        raise NotChecked(f"the server did not start: {_innermost(error)}") from None


def _command(kind: ClientKind, place: ConfigPlace, entry: Any) -> list[str]:
    """Return the command of an entry, with the root in place of the client's variable."""
    found = entry.get(kind.command) if isinstance(entry, dict) else None
    words = found if kind.one_list else [found, *(entry.get("args") or [])] if found else []
    if not words or not all(isinstance(each, str) for each in words):
        raise NotChecked("the file has no entry that starts a server; add one with --write")
    return [place.root if each == kind.root and each else each for each in words]


def _refuse_foreign(place: ConfigPlace, command: list[str], entry: dict[str, Any]) -> None:
    """Refuse to start anything but Handrail for an entry in a project, which the user may not have written."""
    program = on_path("handrail") if command[0] == "handrail" else None
    if command[0] != "handrail" or command[1:2] != ["mcp"] or any(entry.get(name) for name in _ENVIRONMENTS):
        raise NotChecked("the entry does not start Handrail alone, so it was not started; replace it with --write")
    if odd := _odd_word(command[2:], place.root):
        raise NotChecked(f"the entry has {odd}, so it was not started; replace it with --write")
    if program is None:
        raise NotChecked("handrail is not on your PATH, so it cannot start: install it, or use --scope user")
    if is_inside_text(program, place.root):
        raise NotChecked(f"the handrail on your PATH lies in the project, so it was not started: {program}")


def _odd_word(words: list[str], root: str) -> str:
    """Return the first word that does more than choose the tools of this project; empty if there is none."""
    left = [*words]
    while left:
        name, equals, value = left.pop(0).partition("=")
        if name in _SWITCHES and not equals:
            continue
        if name not in _OPTIONS or not (equals or left):
            return name
        value = value if equals else left.pop(0)
        if name == "--root" and value not in (root, "."):
            return f"{name} {value}"
    return ""


async def _listed(command: list[str], root: str) -> list[str]:
    import anyio  # noqa: PLC0415  loaded already
    from mcp import Client  # noqa: PLC0415  loads the SDK
    from mcp.client.stdio import StdioServerParameters  # noqa: PLC0415  loads the SDK

    started = StdioServerParameters(command=command[0], args=command[1:], env=environment(), cwd=root)
    with anyio.fail_after(Limits().config_check_seconds):
        async with Client(started) as client:
            return [tool.name for tool in (await client.list_tools()).tools]


def _innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
