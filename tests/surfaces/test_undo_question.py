"""Tests the question of the user's own undo, at a real terminal."""

import json
from pathlib import Path

import pytest
from support.command_line import ARGV, handrail
from support.pseudo_terminal import Terminal


@pytest.mark.parametrize("command", [("undo",), ("undo", "--since", "1"), ("restore", "a.txt", "--at", "0")])
def test_question_of_users_own_undo_keeps_no_rule(root: Path, command: tuple[str, ...]) -> None:
    handrail("call", "file.write", "path=a.txt", "content=x", "--approve", "auto", "--root", str(root))
    with Terminal(*ARGV, *command, "--root", str(root)) as terminal:
        asked = terminal.until("Approve? (y/n): ")
        assert "allow in this" not in asked
        for key in ("s", "a", "e"):
            terminal.send(key)
            said = terminal.until("Approve? (y/n): ")
            assert f"The answer to a question about {command[0]} counts only once.\n" in said
        terminal.send("y")
        assert terminal.finish()[0] == 0
    assert not (root / "a.txt").exists()
    assert json.loads(handrail("approvals", "list", "--json", "--root", str(root)).stdout) == []
