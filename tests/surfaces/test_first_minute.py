"""From never having heard of it to an agent that uses it: what is printed and written down is what works."""

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from command import handrail
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_client import talk

from handrail.dialects import load
from handrail.surfaces.clients import CLIENTS

README = (Path(__file__).parent.parent.parent / "README.md").read_text()
SNIPPETS = dict(re.findall(r"^([\w ]+): `.+\n\n```(?:json|toml)\n([^`]+)```$", README, re.MULTILINE))


def _parsed(client: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(text) if CLIENTS[client].toml else json.loads(text)
    return found


def _printed(client: str, root: str | Path) -> dict[str, Any]:
    return _parsed(client, handrail("config", client, "--root", str(root)).stdout)


@pytest.mark.parametrize("client", [*CLIENTS])
def test_what_a_client_is_told_to_start_serves_its_tools(client: str, root: Path) -> None:
    entry = _printed(client, root)[CLIENTS[client].key]["handrail"]
    server = StdioServerParameters(command=entry["command"], args=entry["args"], env=dict(os.environ), cwd="/")

    async def act(connected: Client) -> list[str]:
        return [tool.name for tool in (await connected.list_tools()).tools]

    assert talk(server, act) == [*load(CLIENTS[client].dialect).tools]


@pytest.mark.parametrize("client", [*CLIENTS])
def test_the_readme_has_the_snippet_that_is_printed(client: str) -> None:
    kind = CLIENTS[client]
    made = _printed(client, "/path/to/project")
    entry = made[kind.key]["handrail"]
    entry["args"] = entry["args"][entry["args"].index("mcp") :]
    entry["command"] = "handrail"
    assert _parsed(client, SNIPPETS[kind.title]) == made


def test_the_example_of_the_readme_runs(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (root / "README.md").write_text("hello\n")
    (example,) = re.findall(r"```python\n(.+?)```", README, re.DOTALL)
    exec(example.replace("/path/to/project", str(root)), {})
    assert "hello" in capsys.readouterr().out
