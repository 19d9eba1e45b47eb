"""Tests presets: one setting chooses how much is asked, and a project can only choose less freedom."""

from pathlib import Path
from typing import Any

import pytest
from support.command_line import handrail

from handrail import Question, SettingsError, Workspace

EDIT = ("file", "file.write", {"path": "a", "content": "x\n"})
DELETE = ("file", "file.delete", {"path": "a"})
RUN = ("codex", "shell", {"command": "true"})
FETCH = ("copilot", "fetch_webpage", {"url": "http://127.0.0.1:9/"})
GUARDED = ("file", "file.write", {"path": ".vscode/tasks.json", "content": "x"})
LINKED = ("file", "file.write", {"path": "hooks/x", "content": "x"})
MEMORY = ("claude", "memory", {"command": "create", "path": "/memories/a.md", "file_text": "x"})


def asked_about(root: Path, calls: list[tuple[str, str, dict[str, Any]]], **settings: Any) -> list[str]:
    """Make the calls and return the tools that were asked about; each question is denied."""
    asked: list[str] = []

    def deny(question: Question) -> bool:
        asked.append(question.tool)
        return False

    with Workspace(str(root), approver=deny, **settings) as workspace:
        for call in calls:
            workspace.call(*call)
    return asked


def test_preset_edit_lets_edits_through_and_asks_about_rest(root: Path) -> None:
    (root / ".git/hooks").mkdir(parents=True)
    (root / "hooks").symlink_to(".git/hooks")
    calls = [EDIT, DELETE, EDIT, RUN, FETCH, GUARDED, LINKED, MEMORY]
    asked = asked_about(root, calls, preset="edit")
    assert asked == ["shell", "fetch_webpage", "file.write", "file.write", "memory"]
    assert (root / "a").read_text() == "x\n"
    assert not (root / ".vscode").exists()


def test_preset_trusted_asks_only_about_guarded_paths(root: Path) -> None:
    assert asked_about(root, [EDIT, RUN, FETCH, GUARDED], preset="trusted") == ["file.write"]


def test_preset_read_only_offers_no_change(root: Path) -> None:
    assert asked_about(root, [EDIT, RUN, FETCH], preset="read-only") == []
    assert [*root.iterdir()] == []


def test_preset_edit_does_not_override_rule_that_denies(root: Path) -> None:
    (root / ".handrail.toml").write_text('[[rule]]\ncalls = "edit kept/**"\ndeny = true\n')
    kept = ("file", "file.write", {"path": "kept/a", "content": "x"})
    assert asked_about(root, [kept, EDIT], preset="edit") == []
    assert not (root / "kept").exists()
    assert (root / "a").exists()


@pytest.mark.parametrize(
    ("user", "project", "flags", "expected"),
    [
        ("edit", None, {}, ("edit", False)),
        ("trusted", "edit", {}, ("edit", False)),
        ("edit", "trusted", {}, ("edit", False)),
        (None, "trusted", {}, ("ask", False)),
        (None, "edit", {}, ("ask", False)),
        ("trusted", "read-only", {}, ("auto", True)),
        ("edit", None, {"approve": "ask"}, ("ask", False)),
        ("edit", None, {"preset": "trusted"}, ("auto", False)),
        (None, None, {"preset": "edit", "approve": "never"}, ("never", False)),
    ],
)
def test_preset_of_project_only_tightens(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    user: str | None,
    project: str | None,
    flags: dict[str, Any],
    expected: tuple[str, bool],
) -> None:
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "config").mkdir()
    if user:
        (tmp_path / "config/config.toml").write_text(f'preset = "{user}"\n')
    if project:
        (root / ".handrail.toml").write_text(f'preset = "{project}"\n')
    with Workspace(str(root), **flags) as workspace:
        assert (workspace.settings.approve, workspace.settings.read_only) == expected
        wanted = {"edit": "edit", "trusted": "auto"}.get(project or "", expected[0])
        assert bool(workspace.warnings) is (wanted != expected[0])


def test_preset_variable_gives_way_to_approve_variable(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_APPROVE", "never")
    monkeypatch.setenv("HANDRAIL_PRESET", "trusted")
    with Workspace(str(root)) as workspace:
        assert workspace.settings.approve == "never"


def test_preset_unknown_is_refused(root: Path) -> None:
    with pytest.raises(SettingsError, match="preset must be one of trusted, edit, read-only, not 'yolo'"):
        Workspace.from_settings(str(root), {"preset": "yolo"})


def test_preset_flag_of_command_line_lets_edit_through(root: Path) -> None:
    call = ("call", "file.write", "path=a", "content=x", "--root", str(root))
    assert handrail(*call).returncode == 3
    assert handrail(*call, "--preset", "edit").returncode == 0
    run = ("call", "shell", "command=true", "--dialect", "codex", *call[4:])
    assert handrail(*run, "--preset", "edit").returncode == 3


LINES = "".join(f"{number}\n" for number in range(10))


@pytest.mark.parametrize(
    ("call", "risk"),
    [
        (("file", "file.write", {"path": "new", "content": "x"}), "safe_write"),
        (("file", "file.patch", {"path": "old", "patches": [{"find": "5\n", "replace": "five\n"}]}), "safe_write"),
        (("file", "file.write", {"path": "old", "content": "all new\n"}), "dangerous"),
        (("file", "file.write", {"path": ".git/x", "content": "x"}), "dangerous"),
        (("file", "file.delete", {"path": "old"}), "dangerous"),
        (("codex", "shell", {"command": "true"}), "dangerous"),
    ],
)
def test_risk_is_that_of_this_change(root: Path, call: tuple[str, str, dict[str, Any]], risk: str) -> None:
    (root / "old").write_text(LINES)
    risks: list[str] = []

    def note(question: Question) -> bool:
        risks.append(question.risk)
        return False

    with Workspace(str(root), approver=note) as workspace:
        workspace.call(*call)
    assert risks == [risk]
