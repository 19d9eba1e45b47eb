"""`handrail completion`: scripts for shells, and what they complete."""

import shutil
import subprocess

import pytest
from command import handrail, usage_error


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(shell: str) -> None:
    done = handrail("completion", shell)
    assert done.returncode == 0
    assert f"_HANDRAIL_COMPLETE={shell}_complete" in done.stdout
    program = shutil.which(shell)
    if program:
        assert subprocess.run([program, "-n"], input=done.stdout, text=True, check=False).returncode == 0


def completions(line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("_HANDRAIL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    return [each.partition(",")[2] for each in handrail().stdout.splitlines()]


def test_commands_tools_and_options_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert completions("handrail ca", monkeypatch) == ["call"]
    assert completions("handrail call file.re", monkeypatch) == ["file.read"]
    assert completions("handrail call --dialect file file.d", monkeypatch) == ["file.delete"]
    assert completions("handrail call --approve n", monkeypatch) == ["never"]
    assert completions("handrail approvals re", monkeypatch) == ["remove"]


def test_another_shell_is_a_usage_error() -> None:
    assert usage_error(handrail("completion", "tcsh")).startswith("Invalid value for '{bash|zsh|fish}': 'tcsh'")
