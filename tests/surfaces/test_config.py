"""Tests `handrail config`, which adds Handrail to the file of a client and keeps the rest."""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from click.testing import CliRunner, Result

from handrail.surfaces.cli.click_commands import main
from handrail.surfaces.clients.client_plan import ConfigPlace, server_file
from handrail.surfaces.clients.client_records import CLIENTS
from handrail.surfaces.clients.config_merge import value_at

SCOPED = [(name, scope) for name, kind in CLIENTS.items() for scope in ("project", "user") if getattr(kind, scope)]
JSON_CLIENTS = [name for name, kind in CLIENTS.items() if kind.form == "json"]
OURS = [sys.executable.rpartition("/")[0] + "/handrail"]
pytestmark = pytest.mark.usefixtures("client_home")


def _config(*arguments: Any) -> Result:
    return CliRunner().invoke(main, ["config", *map(str, arguments)])


def _entry(client: str, text: str) -> dict[str, Any]:
    found: dict[str, Any] = value_at(CLIENTS[client].form, text, (CLIENTS[client].key, "handrail"))
    return found


def _command(client: str, text: str) -> list[str]:
    kind, made = CLIENTS[client], _entry(client, text)
    command: list[str] = made[kind.command] if kind.one_list else [made[kind.command], *made["args"]]
    return command


def _written(client: str, root: Path, scope: str) -> str:
    return Path(server_file(CLIENTS[client], ConfigPlace(str(root), scope))).read_text()


@pytest.mark.parametrize(("client", "scope"), SCOPED)
def test_config_write_names_no_personal_path_in_project(client: str, scope: str, root: Path) -> None:
    out = _config(client, "--root", root, "--scope", scope, "--write")
    assert out.exit_code == 0, out.output
    kind, command = CLIENTS[client], _command(client, _written(client, root, scope))
    anchor = [str(root)] if kind.starts_anywhere or scope == "user" else [kind.root] if kind.root else []
    program = ["handrail"] if scope == "project" else OURS
    assert command == [*program, "mcp", *(["--root", *anchor] if anchor else []), "--dialect", kind.dialect]
    assert scope == "user" or all(
        str(root.parent) not in each.read_text() for each in root.rglob("*") if each.is_file()
    )


@pytest.mark.parametrize("client", [name for name, kind in CLIENTS.items() if not kind.starts_anywhere])
def test_config_for_all_projects_names_root_only_if_given(
    client: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert _config(client, "--scope", "user", "--write").exit_code == 0
    command = _command(client, _written(client, root, "user"))
    assert command[2:] == [
        *(["--root", CLIENTS[client].root] if CLIENTS[client].root else []),
        "--dialect",
        command[-1],
    ]


def test_config_options_go_into_command(root: Path) -> None:
    out = _config("cursor", "--root", root, "--dialect", "file", "--read-only", "--approve", "host")
    assert _entry("cursor", out.stdout)["args"][-6:] == [
        "--dialect",
        "file",
        "--safe-names",
        "--read-only",
        "--approve",
        "host",
    ]


@pytest.mark.parametrize(
    ("client", "place"),
    [
        ("claude-code", "workspace/.mcp.json"),
        ("claude-desktop", "person/.config/Claude/claude_desktop_config.json"),
        ("codex", "person/.codex/config.toml"),
        ("cursor", "workspace/.cursor/mcp.json"),
        ("vscode", "workspace/.vscode/mcp.json"),
        ("gemini-cli", "workspace/.gemini/settings.json"),
        ("opencode", "workspace/opencode.json"),
        ("zed", "person/.config/zed/settings.json"),
        ("windsurf", "person/.codeium/windsurf/mcp_config.json"),
        ("cline", "person/.cline/data/settings/cline_mcp_settings.json"),
        ("qwen-code", "workspace/.qwen/settings.json"),
        ("goose", "person/.config/goose/config.yaml"),
    ],
)
def test_config_write_creates_file_of_client(tmp_path: Path, root: Path, client: str, place: str) -> None:
    out = _config(client, "--root", root, "--write")
    assert out.exit_code == 0, out.output
    assert _command(client, (tmp_path / place).read_text())
    again = _config(client, "--root", root, "--write")
    assert "already has this" in again.stdout
    assert [*(tmp_path / place).parent.glob("*.bak")] == []


@pytest.mark.parametrize("client", JSON_CLIENTS)
def test_config_write_keeps_other_settings_and_backup(tmp_path: Path, root: Path, client: str) -> None:
    file, key = tmp_path / "settings.json", CLIENTS[client].key
    old = {"theme": "dark", key: {"other": {"command": "x"}, "handrail": {"command": "old"}}, "last": [1, None]}
    file.write_text(json.dumps(old))
    file.chmod(0o600)
    _config(client, "--root", root, "--write", "--file", file)
    new = json.loads(file.read_text())
    assert new[key].pop("handrail")["command"] != "old"
    assert new == {"theme": "dark", key: {"other": {"command": "x"}}, "last": [1, None]}
    assert [*new] == ["theme", key, "last"]
    (backup,) = tmp_path.glob("settings.json.*.bak")
    assert json.loads(backup.read_text()) == old
    assert {each.stat().st_mode & 0o777 for each in (file, backup)} == {0o600}


def test_config_write_jsonc_keeps_comments_and_layout(root: Path) -> None:
    (root / ".vscode").mkdir()
    file = root / ".vscode" / "mcp.json"
    file.write_text('{\n\t// mine\n\t"servers": {\n\t\t"other": {"command": "x"}, // theirs\n\t},\n}\n')
    assert _config("vscode", "--root", root, "--write").exit_code == 0
    text = file.read_text()
    assert text.startswith(
        '{\n\t// mine\n\t"servers": {\n\t\t"other": {"command": "x"}, // theirs\n\t\t"handrail": {\n'
    )
    assert _entry("vscode", text)["args"][1:3] == ["--root", "${workspaceFolder}"]


def test_config_write_yaml_keeps_comments_and_extensions(client_home: Path, root: Path) -> None:
    file = client_home / ".config/goose/config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("# mine\nGOOSE_MODEL: m\nextensions:\n  developer:  # theirs\n    enabled: true\n\nlast: 1\n")
    assert _config("goose", "--root", root, "--write").exit_code == 0
    text = file.read_text()
    assert text.startswith(
        "# mine\nGOOSE_MODEL: m\nextensions:\n  developer:  # theirs\n    enabled: true\n  handrail:\n"
    )
    assert text.endswith('"copilot"]\n\nlast: 1\n')
    assert "already has this" in _config("goose", "--root", root, "--write").stdout


def test_config_write_toml_keeps_comments_and_servers(tmp_path: Path, root: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '# mine\nmodel = "x"\n\n[mcp_servers.handrail]\ncommand = "old"\n\n'
        '# for work\n[mcp_servers.other] # theirs\ncommand = "y"\n'
    )
    _config("codex", "--root", root, "--write", "--file", file)
    text = file.read_text()
    assert text.startswith('# mine\nmodel = "x"\n\n[mcp_servers.handrail]\ncommand = "')
    assert text.endswith(']\n\n# for work\n[mcp_servers.other] # theirs\ncommand = "y"\n')
    assert _entry("codex", text)["command"] != "old"


@pytest.mark.parametrize(
    "text",
    [
        "mcp_servers = { other = { command = 'x' } }  # mine\n",
        "[mcp_servers]  # mine\nother.command = 'x'\n",
        "mcp_servers.other.command = 'x'  # mine\n",
        "[mcp_servers.handrail.env]\nA = 'b'\n# mine\n[mcp_servers.other]\ncommand = 'x'\n",
        "[mcp_servers.other]  # mine\ncommand = 'x'\n[p]\n[mcp_servers.handrail]\nurl = 'y'\n",
    ],
)
def test_toml_in_any_form_is_merged(tmp_path: Path, root: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    out = _config("codex", "--root", root, "--write", "--file", file)
    assert out.exit_code == 0, out.output
    new = file.read_text()
    assert "# mine" in new
    servers = tomllib.loads(new)["mcp_servers"]
    assert servers["other"] == {"command": "x"}
    assert sorted(servers["handrail"]) == ["args", "command", "required"]
    assert "already has this" in _config("codex", "--root", root, "--write", "--file", file).stdout


@pytest.mark.parametrize(
    "text",
    [f"a = {'[' * 5000}{']' * 5000}\n", f"{'.'.join('a' * 3000)} = 1\n", f"a = {'9' * 400}\n"],
    ids=["nesting", "dotted key", "number"],
)
def test_hostile_toml_is_refused_before_tomlkit_reads_it(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    read: list[str] = []
    parse = tomlkit.parse

    def noted(given: str) -> tomlkit.TOMLDocument:
        read.append(given)
        return parse(given)

    monkeypatch.setattr("tomlkit.parse", noted)
    out = _config("codex", "--root", root, "--write", "--file", file)
    assert (out.exit_code, file.read_text()) == (1, text)
    assert "was not changed: it is not TOML that can be edited" in out.stderr
    assert text not in read


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("vscode", '{"servers": {}, "servers": {}}'),
        ("goose", "extensions: {a: 1}\n"),
        ("goose", "extensions: &all\n  a: 1\n"),
        ("goose", "- extensions\n"),
        ("goose", "extensions:\n\ta: 1\n"),
        ("cursor", "[]"),
        ("cursor", '{"mcpServers": []}'),
        ("codex", "not toml"),
        ("codex", "mcp_servers = 3\n"),
        ("codex", "[[mcp_servers]]\na = 1\n"),
    ],
)
def test_config_write_unmergeable_file_is_left_unchanged(tmp_path: Path, root: Path, client: str, text: str) -> None:
    file = tmp_path / "settings"
    file.write_text(text)
    out = _config(client, "--root", root, "--write", "--file", file)
    assert out.exit_code == 1
    assert "was not changed" in out.stderr
    assert "handrail" in out.stderr
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("platform", "place"),
    [("darwin", "{home}/Library/Application Support"), ("win32", "{home}/AppData"), ("linux", "{home}/.config")],
)
def test_config_claude_desktop_path_follows_system(
    client_home: Path, root: Path, monkeypatch: pytest.MonkeyPatch, platform: str, place: str
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setenv("APPDATA", str(client_home / "AppData"))
    out = _config("claude-desktop", "--root", root)
    assert f"{place.format(home=client_home)}/Claude/claude_desktop_config.json" in out.stderr


def test_config_write_through_link_keeps_link(tmp_path: Path, root: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link.json").symlink_to("real.json")
    _config("cursor", "--root", root, "--write", "--file", tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert _entry("cursor", (tmp_path / "real.json").read_text())


def test_config_write_never_overwrites_backup(tmp_path: Path, root: Path) -> None:
    file = tmp_path / "settings.json"
    written = list[bytes]()
    for number in range(5):  # several of them in the same second
        written.append(b'{\r\n  "number": %d}\r\n' % number)
        file.write_bytes(written[-1])
        assert _config("cursor", "--root", root, "--write", "--file", file).exit_code == 0
    assert sorted(backup.read_bytes() for backup in tmp_path.glob("settings.json.*.bak")) == written


@pytest.mark.parametrize(("client", "file"), [("cursor", "mcp.json"), ("codex", "config.toml")])
def test_config_write_reports_replaced_entry(tmp_path: Path, root: Path, client: str, file: str) -> None:
    place = tmp_path / file
    added = _config(client, "--root", root, "--write", "--file", place)
    assert added.stdout.startswith(f"Added to {place}: {CLIENTS[client].key}.handrail\nRestart ")
    before = _entry(client, place.read_text())
    replaced = _config(client, "--root", root, "--read-only", "--write", "--file", place)
    (backup,) = tmp_path.glob(f"{file}.*.bak")
    assert replaced.stdout.split("\n")[:4] == [
        f"Replaced in {place}: {CLIENTS[client].key}.handrail",
        f"  before: {json.dumps(before, ensure_ascii=False)}",
        f"  now: {json.dumps(_entry(client, place.read_text()), ensure_ascii=False)}",
        f"A backup of the file is in {backup}",
    ]


@pytest.mark.parametrize("content", [b"\xff\xfe{}", None], ids=["not text", "a directory"])
def test_config_write_unreadable_file_is_left_unchanged(tmp_path: Path, root: Path, content: bytes | None) -> None:
    file = tmp_path / "settings.json"
    file.mkdir() if content is None else file.write_bytes(content)
    out = _config("cursor", "--root", root, "--write", "--file", file)
    said = f"cannot read {file}: Is a directory" if content is None else f"{file} was not changed: it is not text"
    assert (out.exit_code, out.stderr) == (1, f"Error: {said}\n")
    assert content is None or file.read_bytes() == content
