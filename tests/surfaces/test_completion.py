"""Tests `handrail completion`: the scripts for shells, and what they complete."""

import shutil
import subprocess
from pathlib import Path

import pytest
from support.command_line import in_process as handrail
from support.command_line import usage_error


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_script_for_each_shell(shell: str) -> None:
    done = handrail("completion", shell)
    assert done.returncode == 0
    assert f"_HANDRAIL_COMPLETE={shell}_complete" in done.stdout
    program = shutil.which(shell)
    if program:
        assert subprocess.run([program, "-n"], input=done.stdout, text=True, check=False).returncode == 0


def offered(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the answers for bash, each with its kind; bash completes "file" and "dir" itself."""
    monkeypatch.setenv("_HANDRAIL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    return [each for each in handrail().stdout.splitlines() if each]


def completions(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    return [each.partition(",")[2] for each in offered(line, monkeypatch)]


def test_completion_offers_commands_tools_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completions("handrail ca", monkeypatch) == ["call"]
    assert completions("handrail call file.re", monkeypatch) == ["file.read"]
    assert completions("handrail call --dialect file file.d", monkeypatch) == ["file.delete"]
    assert completions("handrail call --approve n", monkeypatch) == ["never"]
    assert completions("handrail approvals re", monkeypatch) == ["remove"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("handrail call --root sr", "dir,sr"),
        ("handrail history --root sr", "dir,sr"),
        ("handrail mcp --root sr", "dir,sr"),
        ("handrail call --log sr", "file,sr"),
        ("handrail mcp --token-file sr", "file,sr"),
        ("handrail config cursor --file sr", "file,sr"),
        ("handrail replay sr", "file,sr"),
        ("handrail restore sr", "file,sr"),
        ("handrail undo 1 sr", "file,sr"),
        ("handrail call file.read path = sr", "file,sr"),  # as bash splits path=sr
        ("handrail call file.read limit=1 path =", "file,"),
        ("handrail call --dialect gemini read_file absolute_path = /sr", "file,/sr"),
    ],
)
def test_completion_offers_paths(line: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(line, monkeypatch) == [kind]


def test_completion_offers_no_paths_for_other_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered("handrail call file.read limit = 1", monkeypatch) == []
    assert offered("handrail call no_such_tool path = 1", monkeypatch) == []


def test_completion_of_key_value_word_offers_paths(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "src" / "deep").mkdir(parents=True)
    for name in ("setup.py", ".secret", "src/a b.py"):
        (root / name).write_text("")

    def told(word: str) -> list[str]:
        return completions(f"handrail call --root {root} file.read {word}", monkeypatch)

    assert told("path=s") == ["path=setup.py", "path=src/"]
    assert told("path=") == ["path=setup.py", "path=src/"]
    assert told("path=.s") == ["path=.secret"]
    assert told("path=src/") == ["path=src/deep/"]  # bash would insert a name with a space as two words
    assert told("path=nowhere/x") == []
    assert told("limit=s") == []


def test_completion_unknown_shell_is_usage_error() -> None:
    assert usage_error(handrail("completion", "tcsh")).startswith("Invalid value for 'SHELL': 'tcsh'")
