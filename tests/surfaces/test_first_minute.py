"""Tests the first steps of a new user: the printed and documented configuration works."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.command_line import handrail
from support.documents import fences, table, text

from handrail.surfaces.clients.client_records import CLIENTS
from handrail.surfaces.clients.config_merge import value_at

README, PAGE = text("README.md"), text("docs/clients.md")
SECTIONS = dict(re.findall(r"^### ([\w ]+)\n\n`.+\n\n```\w+\n([^`]+)```$", PAGE, re.MULTILINE))


def _entry(client: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = value_at(CLIENTS[client].form, text, (CLIENTS[client].key, "handrail"))
    return found


def _printed(client: str) -> tuple[dict[str, Any], list[str]]:
    """Return the printed entry for any project, with `handrail` instead of the path of this installation."""
    kind = CLIENTS[client]
    pinned = ("--root", "/path/to/project") if kind.starts_anywhere else ()
    rest, command = _parts(client, handrail("config", client, *pinned).stdout)
    return rest, ["handrail", *command[command.index("mcp") :]]


def _parts(client: str, text: str) -> tuple[dict[str, Any], list[str]]:
    """Return an entry without its command, and the command."""
    kind, made = CLIENTS[client], _entry(client, text)
    program, rest = made.pop(kind.command), made.pop("args", [])
    return made, program if kind.one_list else [program, *rest]


@pytest.mark.parametrize("client", [*CLIENTS])
def test_clients_page_snippet_matches_config(client: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    assert _parts(client, SECTIONS[CLIENTS[client].title]) == _printed(client)


def test_readme_lists_command_and_file_of_every_client() -> None:
    block = next(each for each in fences("README.md", "sh") if "handrail config" in each)
    lines = dict(re.findall(r"^handrail config (\S+) --write +# (.+)$", block, re.MULTILINE))
    page = {name.strip("`"): file.replace("`", "") for name, file, _ in table(PAGE)}
    assert lines == page
    assert [*lines] == [*CLIENTS]


def test_readme_command_for_other_clients_matches_config() -> None:
    (command,) = re.findall(r"clients start `(.+)`", README)
    assert command.split() == _printed("windsurf")[1]


def test_readme_example_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "README.md").write_text("hello\n")
    (example,) = re.findall(r"```python\n(.+?)```", README, re.DOTALL)
    exec(example.replace("/path/to/project", str(root)), {})
    assert "hello" in capsys.readouterr().out
