"""Completes names of a hostile repository: a shell inserts them into the command line of the user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import handrail

HOSTILE = ["n$(touch pwned)", "n`touch pwned`", "n;touch pwned", "n --approve=auto", "n\ntouch pwned", "n*", "n\x1b[2J"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_offers_no_name_that_shell_would_run(
    root: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    for name in (*HOSTILE, "name.py"):
        (root / name).write_text("")
    words = ["handrail", "call", "--root", str(root), "file.read", "path=n"]
    monkeypatch.setenv("_HANDRAIL_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))
    told = handrail().stdout
    assert "path=name.py" in told
    assert "\x1b" not in told
    assert "touch pwned" not in told.splitlines()
    if shell == "bash":  # the other shells quote what they insert
        assert [line for line in told.splitlines() if line] == ["plain,path=name.py"]


def test_completed_line_runs_nothing_in_bash(root: Path) -> None:
    (root / HOSTILE[0]).write_text("")
    script = handrail("completion", "bash").stdout
    words = f"COMP_WORDS=(handrail call --root {root} file.read path=n); COMP_CWORD=5"
    # The shell inserts the completion without quotes; the user presses Enter.
    text = f'{script}\n{words}\n_handrail_completion handrail\neval "true ${{COMPREPLY[*]}}"\n'
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    subprocess.run(["bash", "-c", text], cwd=root, env={**os.environ, "PATH": path}, check=True, capture_output=True)
    assert not (root / "pwned").exists()
