"""Lets commands look for Handrail's own directories, where the rules, the settings and the logs are."""

from pathlib import Path
from typing import Any

import pytest
from support.sandboxes import has_bubblewrap

from handrail import Workspace

PLANT = """
mkdir -p {own}; echo '[[rule]]' > {own}/approvals.toml
mv {above} {above}.old; mkdir -p {own}; echo '[[rule]]' > {own}/approvals.toml
rm -rf {own}; mkdir -p {own}; echo '[[rule]]' > {own}/approvals.toml
true
"""


@pytest.fixture(autouse=True)
def bubblewrap(tmp_path: Path) -> None:
    if not has_bubblewrap(tmp_path / "probe"):
        pytest.skip("there is no bubblewrap here")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home directory that holds Handrail's own directories, as usual; only the state exists yet."""
    home = tmp_path / "home"
    (home / ".local/state").mkdir(parents=True)
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(home / ".config/handrail"))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(home / ".local/state/handrail"))
    return home


def shell(workspace: Workspace, command: str) -> str:
    result: Any = workspace.call("codex", "shell", {"command": command, "timeout_ms": 20_000})
    assert result.success, result
    return str(result.output)


@pytest.mark.parametrize("place", ["root", "writable"])
def test_command_cannot_make_or_replace_own_directories(home: Path, root: Path, place: str) -> None:
    where: Any = {"root": (home, {}), "writable": (root, {"writable": [str(home)]})}[place]
    with Workspace(str(where[0]), approve="auto", **where[1]) as workspace:
        shell(workspace, PLANT.format(own=home / ".config/handrail", above=home / ".config"))
        shell(workspace, PLANT.format(own=home / ".local/state/handrail", above=home / ".local"))
        assert "made" in shell(workspace, f"mkdir {home}/.config/other && echo made")
    assert not [*home.rglob("approvals.toml")]
    assert (home / ".config/other").is_dir()


@pytest.mark.parametrize("place", ["root", "writable", "readable"])
def test_command_cannot_read_own_directories(home: Path, root: Path, place: str) -> None:
    (home / ".config/handrail").mkdir(parents=True)
    (home / ".config/handrail/config.toml").write_text("# my settings\n")
    where: Any = (home, {}) if place == "root" else (root, {place: [str(home)]})
    with Workspace(str(where[0]), approve="auto", **where[1]) as workspace:
        told = shell(workspace, f"echo begun; grep -rs . {home}; find {home} -name '*.jsonl'")
        whole = shell(workspace, "seq 100000")
    assert "begun" in told
    assert "my settings" not in told
    assert "jsonl" not in told.replace("'*.jsonl'", "")
    assert "100000" in whole


def test_log_in_workspace_is_not_read_or_changed(root: Path) -> None:
    """The log says how the user can allow a refused call."""
    log = root / "logs/session.jsonl"
    log.parent.mkdir()
    with Workspace(str(root), approve="auto", log=log) as workspace:
        read = workspace.call("file", "file.read", {"path": "logs/session.jsonl"})
        found: Any = workspace.call("file", "file.search", {"pattern": "request"})
        told = shell(workspace, "echo begun; cat logs/*; echo x > logs/session.jsonl; mv logs l; cat l/*; mv l logs")
    assert read.error is not None
    assert read.error.code == "protected_file"
    assert found.output["matches"] == []
    assert "begun" in told
    assert '"event"' not in told
    assert '"event": "request"' in log.read_text()
