"""Tests which files are protected: by the settings of the user, by additions of a project, and always."""

import os
from pathlib import Path
from typing import Any

import pytest
from attacks.protected import grow, refused
from support.command_line import handrail

from handrail import Workspace
from handrail.dialects import NAMES
from handrail.errors import SettingsError


def test_protect_secrets_setting_protects_usual_secret_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grow(root)
    (root / ".ssh").mkdir()
    (root / ".ssh/config").write_text("x")
    with Workspace(str(root), approve="auto") as workspace:
        assert workspace.call("copilot", "read_file", {"path": ".env"}).success  # off by default
    config = Path(os.environ["HANDRAIL_CONFIG_DIR"])
    config.mkdir(parents=True)
    (config / "config.toml").write_text('protect = "secrets"\n')
    with Workspace(str(root), approve="auto") as workspace:
        for path, rule in ((".env", ".env"), ("id.key", "*.key"), (".ssh/config", ".ssh")):
            refused(workspace, "copilot", "read_file", {"path": path}, rule)
        assert workspace.call("copilot", "read_file", {"path": "conf/private.txt"}).success
    (config / "config.toml").unlink()
    monkeypatch.setenv("HANDRAIL_PROTECT", "secrets")
    with Workspace(str(root)) as workspace:
        refused(workspace, "copilot", "read_file", {"path": ".env"}, ".env")
    monkeypatch.setenv("HANDRAIL_PROTECT", "a,*.b")
    with Workspace(str(root)) as workspace:
        assert workspace.settings.protect == ("a", "*.b")


def test_project_can_add_protection_but_not_remove_it(root: Path) -> None:
    grow(root)
    (root / ".handrailignore").write_text("# ours\nopen.txt\n!.env\n")
    (root / ".handrail.toml").write_text('protect = ["conf/public.txt"]\n')
    with Workspace(str(root), approve="auto") as workspace:
        refused(workspace, "copilot", "read_file", {"path": "open.txt"}, "open.txt")
        refused(workspace, "copilot", "read_file", {"path": "conf/public.txt"}, "conf/public.txt")
        assert workspace.call("copilot", "read_file", {"path": ".env"}).success
    config = Path(os.environ["HANDRAIL_CONFIG_DIR"])
    config.mkdir(parents=True)
    (config / "config.toml").write_text('protect = ["@secrets", "extra"]\n')
    with Workspace(str(root), approve="auto") as workspace:
        assert workspace.settings.protect == ("@secrets", "extra", "conf/public.txt", "open.txt")
        refused(workspace, "copilot", "read_file", {"path": ".env"}, ".env")
        refused(workspace, "copilot", "read_file", {"path": "open.txt"}, "open.txt")


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("nothing", "unknown list of files 'nothing'; did you mean 'secrets'?"),
        (["@keys"], "unknown list of files 'keys'; did you mean 'secrets'?"),
        (["[a"], "protect: '[a' is not a glob: unclosed bracket"),
        ([5], "protect must be a list of strings, not [5]"),
        (7, "protect must be a list of strings, not 7"),
    ],
)
def test_invalid_protect_setting_is_an_error(root: Path, value: Any, complaint: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Workspace(str(root), protect=value)
    assert str(raised.value) == complaint
    if isinstance(value, list) and isinstance(value[0], str):
        (root / ".handrailignore").write_text(value[0])
        with pytest.raises(SettingsError) as raised:
            Workspace(str(root))
        assert str(raised.value) == f".handrailignore: {complaint}"


def test_own_files_of_handrail_in_workspace_are_protected(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an agent could write its own approvals."""
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(root / "conf ig"))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(root / "state"))
    with Workspace(str(root), approve="auto") as workspace:
        for path in ("conf ig/approvals.toml", "CONF IG/config.toml", "state/workspaces/x/approvals.toml"):
            refused(workspace, "copilot", "create_file", {"path": path, "content": "x"}, "Handrail's own files")
        assert workspace.call("copilot", "create_file", {"path": "conf igx", "content": "x"}).success
        assert "state" not in workspace.call("copilot", "list_dir", {}).output


def test_cli_names_rule_of_protected_file(root: Path) -> None:
    grow(root)
    (root / ".handrailignore").write_text(".env\n")
    done = handrail("call", "file.read", "path=.env", "--root", str(root))
    assert done.returncode == 1
    assert done.stdout.startswith("✗ '.env' is protected by the rule '.env': no tool may reach it\n")


def test_every_dialect_names_rule_of_protected_file() -> None:
    from handrail.dialects import load
    from handrail.model.faults import ProtectedPath
    from handrail.tools.messages import render

    for name in NAMES:
        said = render(load(name).tables, "read_file", ProtectedPath("a", "*.key"), {"root": "/", "params": {}})
        assert (said.code, "*.key" in said.message) == ("protected_file", True)
