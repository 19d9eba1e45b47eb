"""Tests the choice of a dialect by the name of a model."""

from pathlib import Path

import pytest
from support.command_line import handrail
from support.documents import names, table, text

from handrail import Workspace, dialect_for
from handrail.dialects import NAMES
from handrail.dialects.by_model import FAMILIES, UNKNOWN


@pytest.mark.parametrize(
    ("model", "dialect"),
    [
        ("claude-opus-5-5", "claude"),
        ("Claude-Opus-5-5", "claude"),
        ("anthropic:claude-opus-5-5", "claude"),
        ("us.anthropic.claude-opus-5-5-v1:0", "claude"),
        ("gpt-5", "codex-2026"),
        ("gpt-5-mini", "codex-2026"),
        ("gpt-5.1", "openai"),
        ("openai:gpt-5.1", "openai"),
        ("gpt-5.1-codex-max", "codex-2026"),
        ("openrouter/openai/gpt-oss-120b", "codex-2026"),
        ("gpt-4.1", "copilot"),
        ("o4-mini", "codex"),
        ("models/gemini-2.5-flash", "gemini"),
        ("gemini-3-pro", "gemini-3"),
        ("qwen3-coder:30b", "gemini-3"),
        ("moonshotai/kimi-k2", "claude-code"),
    ],
)
def test_dialect_for_known_model_returns_its_family(model: str, dialect: str) -> None:
    assert dialect_for(model) == dialect


@pytest.mark.parametrize("model", ["llama-4", "olmo-3", "", "codestral-25", "my-claude"])
def test_dialect_for_unknown_model_warns_and_returns_context(model: str) -> None:
    with pytest.warns(UserWarning, match="unknown model"):
        assert dialect_for(model) == UNKNOWN


def test_families_name_only_known_dialects() -> None:
    assert {dialect for _, dialect in FAMILIES} <= {*NAMES}


def test_dialects_page_lists_every_family() -> None:
    rows = table(text("docs/dialects/README.md"))
    assert [(names(row[0])[0], row[1].partition("]")[0].strip("[ ")) for row in rows] == [*FAMILIES]


def test_tools_for_uses_the_setting_before_the_table(tmp_path: Path) -> None:
    with Workspace(tmp_path, models={"claude*": "file"}) as workspace:
        assert workspace.tools_for("anthropic/claude-opus-5-5").dialect.name == "file"
        assert workspace.tools_for("gemini-2.5-pro").dialect.name == "gemini"


def test_auto_without_a_model_is_a_usage_error(tmp_path: Path) -> None:
    ran = handrail("tools", "--dialect", "auto", cwd=tmp_path)
    assert ran.returncode == 2
    assert "--dialect auto needs --model NAME" in ran.stderr


def test_model_unknown_to_the_command_line_says_so(tmp_path: Path) -> None:
    ran = handrail("tools", "--model", "llama-4", cwd=tmp_path)
    assert "unknown model 'llama-4': using the dialect context" in ran.stderr
    assert "replace_in_file  (context" in ran.stdout


def test_dialect_overrides_the_model(tmp_path: Path) -> None:
    ran = handrail("tools", "--model", "llama-4", "--dialect", "file", cwd=tmp_path)
    assert ran.stderr == ""
    assert "file.read  (file" in ran.stdout


def test_users_models_setting_decides_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text('[models]\n"llama*" = "gemini"\n"odd*" = "none"\n')
    assert "search_file_content" in handrail("tools", "--model", "llama-4", cwd=tmp_path).stdout
    assert "unknown dialect 'none'" in handrail("tools", "--model", "odd", cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("client", "dialect"), [("claude-code", "claude-code"), ("codex", "codex-2026"), ("gemini-cli", "gemini-3")]
)
def test_config_uses_dialect_of_client_unless_one_is_named(client: str, dialect: str, tmp_path: Path) -> None:
    chosen = " ".join(handrail("config", client, "--root", str(tmp_path)).stdout.split())
    assert f'"--dialect", "{dialect}"' in chosen
    named = " ".join(handrail("config", client, "--root", str(tmp_path), "--dialect", "file").stdout.split())
    assert '"--dialect", "file"' in named


def test_auto_with_a_model_offers_the_tools_of_its_family(tmp_path: Path) -> None:
    ran = handrail("tools", "--dialect", "auto", "--model", "claude-opus-5-5", cwd=tmp_path)
    assert "str_replace_based_edit_tool  (claude" in ran.stdout
    assert ran.stderr == ""
