"""Attacks the question of `handrail try` with what the command prints and how it names its files."""

from pathlib import Path

import pytest
from support.command_line import ARGV, in_process
from support.layers import needs_overlays
from support.pseudo_terminal import Terminal

from handrail import Workspace

pytestmark = [needs_overlays, pytest.mark.sandbox]

HIDE = "\x1b[8m\x1b(0"
"""Makes a terminal hide all later text, and show letters as lines."""


def test_try_output_cannot_change_the_terminal_of_its_question(root: Path) -> None:
    (root / "hide.sh").write_text(f"printf '{HIDE}said\\n' >&2; echo evil >made\n")
    with Terminal(*ARGV, "try", "--root", str(root), "--", "sh", "hide.sh") as terminal:
        shown = terminal.until("Approve? ")
        terminal.send("n")
        assert terminal.finish()[0] == 3
    assert "\\x1b[8m\\x1b(0said\n" in shown
    assert "\x1b[8m" not in shown
    assert "\x1b(0" not in shown


def test_try_output_in_a_pipe_stays_as_it_is(root: Path) -> None:
    (root / "hide.sh").write_text(f"printf '{HIDE}said\\n'\n")
    assert in_process("try", "--root", str(root), "--", "sh", "hide.sh").stdout == f"{HIDE}said\n"


def test_layer_name_in_error_cannot_change_the_terminal(root: Path) -> None:
    with Workspace(root, layered=True, approve="auto") as workspace:
        workspace.write_bytes(f"{HIDE}a", b"layer\n")
    (root / f"{HIDE}a").write_bytes(b"root\n")
    done = in_process("layer", "apply", "--root", str(root), "--approve", "auto")
    assert "these files changed meanwhile" in done.stderr
    assert "\x1b" not in done.stderr
