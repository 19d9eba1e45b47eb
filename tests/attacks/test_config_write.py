"""Runs `handrail config --write` in a hostile repository: it touches no file outside, and no file can block it."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from handrail.surfaces.cli import main
from handrail.surfaces.client_config_text import CLIENTS

IN_PROJECT = [name for name, kind in CLIENTS.items() if kind.in_project]


def config(client: str, root: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["config", client, "--root", str(root), "--write", *more])


def tree(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    place = tmp_path / "outside"
    place.mkdir()
    (place / "secret.json").write_text('{"token": "s3cret"}')
    return place


@pytest.mark.parametrize("client", IN_PROJECT)
@pytest.mark.parametrize("target", ["secret.json", "new.json"])
def test_config_write_through_link_to_outside_is_refused(root: Path, outside: Path, client: str, target: str) -> None:
    file = Path(CLIENTS[client].file(str(root)))
    file.parent.mkdir(exist_ok=True)
    file.symlink_to(outside / target)
    before = tree(outside)
    for out in (config(client, root), config(client, root, "--file", str(file))):
        assert (out.exit_code, "s3cret" in out.output) == (1, False)
        assert out.stderr.startswith(f"Error: cannot read {file}: ")
    assert tree(outside) == before
    assert sorted(each.name for each in file.parent.iterdir()) == [file.name]


@pytest.mark.parametrize("client", ["cursor", "vscode", "gemini-cli"])
def test_config_write_in_directory_linked_to_outside_is_refused(root: Path, outside: Path, client: str) -> None:
    file = Path(CLIENTS[client].file(str(root)))
    file.parent.symlink_to(outside)
    before = tree(outside)
    out = config(client, root)
    assert (out.exit_code, tree(outside)) == (1, before)


@pytest.mark.parametrize("client", [*CLIENTS])
def test_config_write_to_fifo_is_refused(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    file = Path(CLIENTS[client].file(str(root)))
    file.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(file)
    out = config(client, root)
    assert out.exit_code == 1
    assert "not a regular file" in out.stderr


@pytest.mark.parametrize("client", IN_PROJECT)
def test_config_write_to_huge_or_deeply_nested_file_is_refused(root: Path, client: str) -> None:
    file = Path(CLIENTS[client].file(str(root)))
    file.parent.mkdir(exist_ok=True)
    file.write_text("[" * 100_000)
    assert "nested too deeply" in config(client, root).stderr
    os.truncate(file, 3 << 30)
    assert "more than the limit" in config(client, root).stderr


def test_config_write_through_link_inside_root_changes_target(root: Path) -> None:
    (root / "tools").mkdir()
    (root / "tools" / "mcp.json").write_text('{"mcpServers": {"other": {}}}')
    (root / ".cursor").symlink_to("tools")
    out = config("cursor", root)
    assert out.exit_code == 0, out.output
    assert (root / ".cursor").is_symlink()
    assert [*json.loads((root / "tools/mcp.json").read_text())["mcpServers"]] == ["other", "handrail"]
    (backup,) = (root / "tools").glob("*.bak")
    assert backup.read_text() == '{"mcpServers": {"other": {}}}'
    assert str(root / ".cursor" / backup.name) in out.output
