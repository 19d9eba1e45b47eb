"""Tests the bundle that `make bundle` made: unpacks and starts it like a host."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, get_default_environment
from support.mcp_client import ERAS, talk

from handrail.dialects import load

MADE = os.environ.get("HANDRAIL_BUNDLE", "")
OFFICIAL = Path(__file__).parent.parent.parent / ".conformance" / "node_modules" / ".bin" / "mcpb"
pytestmark = pytest.mark.skipif(not MADE, reason="make bundle makes one and tests it")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack the bundle with the modes of its files, which zipfile forgets."""
    place = tmp_path_factory.mktemp("bundle")
    with ZipFile(MADE) as bundle:
        for entry in bundle.infolist():
            Path(bundle.extract(entry, place)).chmod(entry.external_attr >> 16)
    return place


def _server(unpacked: Path, root: Path, chosen: dict[str, str]) -> StdioServerParameters:
    """Return the command of the manifest, with the Python of the bundle and none of our packages."""
    manifest = json.loads((unpacked / "manifest.json").read_text())
    defaults = {name: each["default"] for name, each in manifest["user_config"].items() if "default" in each}
    values = {f"user_config.{name}": value for name, value in (defaults | chosen | {"root": str(root)}).items()}

    def filled(text: str) -> str:
        for name, value in (values | {"__dirname": str(unpacked)}).items():
            text = text.replace(f"${{{name}}}", value)
        return text

    start = manifest["server"]["mcp_config"]
    state = {name: os.environ[name] for name in ("HANDRAIL_STATE_DIR", "HANDRAIL_CONFIG_DIR")}
    given = get_default_environment()
    path = {"PATH": f"{sys.base_prefix}/bin{os.pathsep}{given['PATH']}"}
    environment = given | path | {name: filled(value) for name, value in start["env"].items()} | state
    return StdioServerParameters(
        command=start["command"], args=[filled(each) for each in start["args"]], env=environment, cwd="/"
    )


@pytest.mark.parametrize("era", ERAS)
def test_bundle_unpacked_serves_tools(unpacked: Path, root: Path, era: str) -> None:
    (root / "a.txt").write_text("needle\n")

    async def act(client: Client) -> Any:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        return listed, await client.call_tool("grep_search", {"pattern": "needle"})

    listed, found = talk(_server(unpacked, root, {}), act, era)
    assert listed == [*load("copilot").tools]
    assert "a.txt:1: needle" in found.content[0].text
    assert found.meta["handrail/result"]["metadata"]["engine"] == "ripgrep"


def test_bundle_confines_commands_with_own_programs(unpacked: Path, root: Path) -> None:
    async def act(client: Client) -> Any:
        return await client.call_tool("run_in_terminal", {"command": "echo hello"})

    ran = talk(_server(unpacked, root, {"approve": "auto"}), act)
    assert "hello" in ran.content[0].text
    assert ran.meta["handrail/result"]["metadata"]["sandbox"] == "strict"


def _official(*arguments: str | Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # the node of the tests is there
    command = [OFFICIAL, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PATH": path})
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.skipif(not OFFICIAL.exists(), reason="make conformance fetches it")
def test_bundle_is_valid_for_official_tool(tmp_path: Path) -> None:
    _official("unpack", MADE, tmp_path / "out")
    assert "Manifest schema validation passes" in _official("validate", tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (tmp_path / "out" / manifest["server"]["entry_point"]).is_file()
    assert os.access(tmp_path / "out" / "site-packages" / "bin" / "rg", os.X_OK)
