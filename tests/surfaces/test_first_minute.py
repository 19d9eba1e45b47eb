"""Tests the first steps of a new user: the printed and documented configuration works."""

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from support.command_line import handrail
from support.documents import fences, table, text
from support.mcp_client import talk

from handrail.dialects import load
from handrail.surfaces.client_config_text import CLIENTS

README, PAGE = text("README.md"), text("docs/clients.md")
SNIPPETS = dict(re.findall(r"^([\w ]+): `.+\n\n```(?:json|toml)\n([^`]+)```$", PAGE, re.MULTILINE))


def _parsed(client: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(text) if CLIENTS[client].toml else json.loads(text)
    return found


def _printed(client: str, root: str | Path) -> dict[str, Any]:
    return _parsed(client, handrail("config", client, "--root", str(root)).stdout)


@pytest.mark.parametrize("client", [*CLIENTS])
def test_config_command_of_client_serves_tools(client: str, root: Path) -> None:
    entry = _printed(client, root)[CLIENTS[client].key]["handrail"]
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env=dict(os.environ), cwd="/")

    async def act(connected: Client) -> list[str]:
        return [tool.name for tool in (await connected.list_tools()).tools]

    assert talk(server, act) == [*load(CLIENTS[client].dialect).tools]


def _placeless(client: str) -> dict[str, Any]:
    """Return the printed configuration, with `handrail` instead of the path of this installation."""
    made = _printed(client, "/path/to/project")
    entry = made[CLIENTS[client].key]["handrail"]
    entry["args"] = entry["args"][entry["args"].index("mcp") :]
    entry["command"] = "handrail"
    return made


@pytest.mark.parametrize("client", [*CLIENTS])
def test_clients_page_snippet_matches_config(client: str) -> None:
    assert _parsed(client, SNIPPETS[CLIENTS[client].title]) == _placeless(client)


def test_readme_lists_command_and_file_of_every_client() -> None:
    block = next(each for each in fences("README.md", "sh") if "handrail config" in each)
    lines = dict(re.findall(r"^handrail config (\S+) --write +# (.+)$", block, re.MULTILINE))
    page = {name.strip("`"): file.replace("`", "") for name, file, _ in table(PAGE)}
    assert lines == page
    assert [*lines] == [*CLIENTS]


def test_readme_snippet_for_other_clients_matches_config() -> None:
    (snippet,) = fences("README.md", "json")
    assert json.loads(snippet) == _placeless("cursor")


def test_readme_example_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "README.md").write_text("hello\n")
    (example,) = re.findall(r"```python\n(.+?)```", README, re.DOTALL)
    exec(example.replace("/path/to/project", str(root)), {})
    assert "hello" in capsys.readouterr().out
