"""Tests that the registry entry, the bundle and the image name options and files that exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from handrail.dialects import NAMES
from handrail.settings import APPROVE
from handrail.surfaces.cli.click_commands import main

HOME = Path(__file__).parent.parent.parent
SERVER = json.loads((HOME / "server.json").read_text())
BUNDLE = json.loads((HOME / "packaging" / "mcpb" / "manifest.json").read_text())


def _help() -> str:
    return CliRunner().invoke(main, ["mcp", "--help"]).stdout


def test_registry_entry_names_existing_options() -> None:
    first, *named = SERVER["packages"][0]["packageArguments"]
    assert first["value"] == "mcp"
    assert all(argument["name"] in _help() for argument in named)
    choices = {argument["name"]: argument.get("choices") for argument in named}
    assert {*choices["--dialect"]} == {*NAMES}
    assert {*choices["--approve"]} == {*APPROVE}
    assert len(SERVER["description"]) <= 100


def test_bundle_manifest_starts_existing_command() -> None:
    arguments: list[str] = BUNDLE["server"]["mcp_config"]["args"]
    assert arguments[:4] == ["-P", "-m", "handrail", "mcp"]
    assert all(argument in _help() for argument in arguments if argument.startswith("--"))
    wanted = {name for argument in arguments for name in re.findall(r"user_config\.(\w+)", argument)}
    assert wanted == {*BUNDLE["user_config"]}


@pytest.mark.parametrize("name", ["Dockerfile", ".dockerignore"])
def test_docker_files_name_existing_files(name: str) -> None:
    text = (HOME / name).read_text()
    wanted: list[Any] = re.findall(r"^(?:!|COPY )(.+?)(?: \./| src)?$", text, re.MULTILINE)
    assert all((HOME / file).exists() for line in wanted for file in line.split())
