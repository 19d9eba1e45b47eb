"""Tests what `handrail config` asks, which settings of the client follow from the answers, and `--check`."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.command_line import ARGV, handrail
from support.pseudo_terminal import Terminal

from handrail.dialects import load
from handrail.model.effects import needs_approval
from handrail.surfaces.clients.client_records import CLIENTS

WHO = "Who approves changes? (handrail, host) [{}]: "
QUESTION, TOOLS = "so that only Handrail asks? [Y/n]: ", "so that Handrail sees every change? [Y/n]: "
pytestmark = pytest.mark.usefixtures("client_home")


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


def _write(client: str, root: Path, *more: str) -> str:
    out = handrail("config", client, "--root", str(root), "--write", "--unattended", *more)
    assert out.returncode == 0, out.stderr
    return out.stdout + out.stderr


def test_config_at_terminal_asks_three_questions(root: Path) -> None:
    with Terminal(*ARGV, "config", "claude-code", "--root", str(root), "--write") as terminal:
        for question in (WHO.format("handrail"), QUESTION, TOOLS):
            terminal.until(question)
            terminal.send("\n")
        status, out, _ = terminal.finish()
    assert (status, out.count("Added to")) == (0, 2)
    assert "--approve" not in _json(root / ".mcp.json")["mcpServers"]["handrail"]["args"]
    assert _json(root / ".claude/settings.json")["permissions"] == {
        "allow": ["mcp__handrail"],
        "deny": ["Bash", "Edit", "Write", "NotebookEdit"],
    }


def test_config_at_terminal_says_that_client_cannot_ask(root: Path) -> None:
    with Terminal(*ARGV, "config", "gemini-cli", "--root", str(root), "--write") as terminal:
        terminal.until("Gemini CLI cannot show Handrail's questions: ")
        terminal.until(WHO.format("host"))
        terminal.send("\n")
        terminal.until(TOOLS)
        terminal.send("n\n")
        assert terminal.finish()[0] == 0
    settings = _json(root / ".gemini/settings.json")
    assert settings["mcpServers"]["handrail"]["args"][-2:] == ["--approve", "host"]
    rules = tomllib.loads((root / settings["policyPaths"][0]).read_text())["rule"]
    assert [(each["mcpName"], each["decision"]) for each in rules] == [("handrail", "ask_user"), ("handrail", "allow")]


@pytest.mark.parametrize("answers", [("\x04",), ("\n", "\n", "\x04")], ids=["first", "last"])
def test_config_question_without_answer_writes_nothing(root: Path, answers: tuple[str, ...]) -> None:
    with Terminal(*ARGV, "config", "claude-code", "--root", str(root), "--write") as terminal:
        for question, answer in zip((WHO.format("handrail"), QUESTION, TOOLS), answers, strict=False):
            terminal.until(question)
            terminal.send(answer)
        assert terminal.finish()[0] == 1
    assert [*root.iterdir()] == []


def test_config_without_terminal_says_what_stays_open(root: Path) -> None:
    said = _write("opencode", root)
    assert "opencode cannot show Handrail's questions, so Handrail denies every change: --approve host" in said
    assert "opencode's own shell and edit tools stay on beside Handrail's: --client-tools off" in said
    assert [*_json(root / "opencode.json")] == ["mcp"]


def test_config_question_of_neither_is_refused(root: Path) -> None:
    out = handrail("config", "gemini-cli", "--root", str(root), "--approve", "host", "--client-question", "off")
    assert (out.returncode, "exclude each other: no one would ask" in out.stderr) == (2, True)


def test_config_of_opencode_asks_before_changes_only(root: Path) -> None:
    _write("opencode", root, "--approve", "host", "--client-tools", "off")
    asked = _json(root / "opencode.json")["permission"]
    reads = [name for name in asked if asked[name] == "allow"]
    assert next(iter(asked)) == "handrail_*"  # opencode takes the last rule that matches
    assert asked["handrail_*"] == "ask"
    assert reads == [
        f"handrail_{name}" for name, tool in load("copilot").tools.items() if not needs_approval(tool.effects)
    ]
    assert {name for name in asked if asked[name] == "deny"} == {"bash", "edit"}


def test_config_of_claude_code_asks_in_auto_mode_too(root: Path) -> None:
    _write("claude-code", root, "--approve", "host")
    rules = _json(root / ".claude/settings.json")["permissions"]
    assert {"mcp__handrail__Bash", "mcp__handrail__Edit", "mcp__handrail__WebFetch"} < {*rules["ask"]}
    assert {"mcp__handrail__Read", "mcp__handrail__Grep"} <= {*rules["allow"]}


def test_config_of_qwen_code_asks_in_auto_mode_too(root: Path) -> None:
    _write("qwen-code", root, "--approve", "host")
    found = _json(root / ".qwen/settings.json")
    tools = load("gemini-3").tools
    changes = {f"mcp__handrail__{name}" for name, tool in tools.items() if needs_approval(tool.effects)}
    assert {*found["permissions"]["ask"]} == changes
    assert {*found["permissions"]["allow"]} == {f"mcp__handrail__{name}" for name in tools} - changes


def test_config_of_cline_switches_its_auto_approval_off(client_home: Path, root: Path) -> None:
    settings = client_home / ".cline/data/settings/global-settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"toolAutoApprove": true, "disabledTools": ["editor"]}')
    _write("cline", root, "--approve", "host", "--client-tools", "off")
    assert _json(settings) == {"toolAutoApprove": False, "disabledTools": ["editor", "run_commands", "apply_patch"]}


def test_config_of_zed_asks_before_every_change(client_home: Path, root: Path) -> None:
    _write("zed", root, "--approve", "host")
    (file,) = client_home.rglob("zed/settings.json")
    tools = _json(file)["agent"]["tool_permissions"]["tools"]
    changes = {name for name, tool in load("copilot").tools.items() if needs_approval(tool.effects)}
    assert {name for name, each in tools.items() if each == {"default": "confirm"}} == {
        f"mcp:handrail:{name}" for name in changes
    }


def test_config_adds_to_lists_of_user(root: Path) -> None:
    (root / ".claude").mkdir()
    (root / ".claude/settings.json").write_text('{"permissions": {"deny": ["WebFetch", "Bash"], "ask": []}}')
    _write("claude-code", root, "--client-tools", "off")
    _write("claude-code", root, "--client-tools", "off")
    found = _json(root / ".claude/settings.json")
    assert found == {"permissions": {"deny": ["WebFetch", "Bash", "Edit", "Write", "NotebookEdit"], "ask": []}}


def test_config_of_codex_sets_approval_mode_and_features(client_home: Path, root: Path) -> None:
    (client_home / ".codex").mkdir()
    file = client_home / ".codex/config.toml"
    file.write_text("model = 'x'\n\n[features]\nweb = true  # mine\n\n# after\n[other]\na = 1\n")
    _write("codex", root, "--client-question", "off", "--client-tools", "off")
    text = file.read_text()
    found = tomllib.loads(text)
    assert found["mcp_servers"]["handrail"]["default_tools_approval_mode"] == "approve"
    assert found["features"] == {"web": True, "shell_tool": False}
    assert "web = true  # mine\n" in text
    assert "\n# after\n[other]\na = 1\n" in text


def test_config_one_bad_file_leaves_all_unchanged(root: Path) -> None:
    (root / ".claude").mkdir()
    (root / ".claude/settings.json").write_text("{broken")
    out = handrail("config", "claude-code", "--root", str(root), "--write", "--client-tools", "off")
    assert out.returncode == 1
    assert f"{root}/.claude/settings.json was not changed" in out.stderr
    assert '"deny"' in out.stderr
    assert not (root / ".mcp.json").exists()


@pytest.mark.parametrize("client", [*CLIENTS])
def test_config_check_starts_entry_of_client(client: str, root: Path) -> None:
    _write(client, root)
    out = handrail("config", client, "--root", str(root), "--check")
    assert out.returncode == 0, out.stderr
    tools = load(CLIENTS[client].dialect).tools
    assert out.stdout.endswith(f" starts a server with {len(tools)} tools: {', '.join(tools)}\n")


def test_config_check_without_entry_says_how_to_add_it(root: Path) -> None:
    out = handrail("config", "claude-code", "--root", str(root), "--check")
    assert out.returncode == 1
    assert out.stderr.endswith(".mcp.json: the file has no entry that starts a server; add one with --write\n")


def test_config_check_reports_server_that_ends(client_home: Path, root: Path) -> None:
    (client_home / ".codex").mkdir()
    (client_home / ".codex/config.toml").write_text('[mcp_servers.handrail]\ncommand = "false"\n')
    out = handrail("config", "codex", "--root", str(root), "--check")
    assert (out.returncode, "the server did not start: " in out.stderr) == (1, True)


def test_config_write_in_project_is_undone_by_user(root: Path) -> None:
    (root / ".mcp.json").write_text('{"mcpServers": {"other": {"command": "x"}}}\n')
    _write("claude-code", root)
    assert [each.name for each in root.iterdir()] == [".mcp.json"]
    with Terminal(*ARGV, "undo", "--root", str(root)) as terminal:
        terminal.until("Approve?")
        terminal.send("y\n")
        assert terminal.finish()[0] == 0
    assert (root / ".mcp.json").read_text() == '{"mcpServers": {"other": {"command": "x"}}}\n'


def test_config_write_in_project_is_named_in_history(root: Path) -> None:
    _write("claude-code", root)
    assert "  handrail config  .mcp.json  1 file  " in handrail("history", "--root", str(root)).stdout
    shown = handrail("show", "1", "--root", str(root)).stdout
    assert "\ncommit by handrail config\napproved by user\n" in shown


def test_config_approve_handrail_is_the_default(root: Path) -> None:
    plain, named = (
        handrail("config", "claude-code", "--root", str(root), *more) for more in ((), ("--approve", "handrail"))
    )
    assert (named.returncode, named.stdout) == (0, plain.stdout)


@pytest.mark.parametrize("more", [(), ("--client-tools", "off")])
def test_config_of_client_without_own_tools_is_silent(root: Path, more: tuple[str, ...]) -> None:
    out = handrail("config", "claude-desktop", "--root", str(root), "--approve", "host", *more)
    assert (out.returncode, "own shell and edit tools" in out.stderr, "By hand" in out.stderr) == (0, False, False)


def test_config_interrupt_at_question_exits_130(root: Path) -> None:
    with Terminal(*ARGV, "config", "claude-code", "--root", str(root), "--write") as terminal:
        terminal.until(WHO.format("handrail"))
        terminal.send("\x03\n")  # the line end wakes a read that began just after the signal came
        assert terminal.finish()[0] == 130
    assert [*root.iterdir()] == []
