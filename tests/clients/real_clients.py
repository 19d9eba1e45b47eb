"""Runs real clients with a scripted model: `make test-clients`. Not part of CI."""

import os
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from clients.arena import Arena, prepare_claude, prepare_codex, prepare_gemini, prepare_opencode, prepare_qwen
from clients.recording import save
from clients.screen import Screen
from support.model_server import ModelServer, Say, Use, scripted, serve

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

Start = Callable[..., Arena]
PATCH = "*** Begin Patch\n*** Update File: notes.txt\n@@\n-first line\n+changed\n*** End Patch\n"
CHANGED = "changed\n"
DOT = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
END = Say("That is all.")


@pytest.fixture
def start(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Start]:
    servers: list[AbstractContextManager[ModelServer]] = []

    def begin(prepare: Callable[[Arena], None], *turns: Say | Use) -> Arena:
        context = serve(scripted([*turns, END]))
        servers.append(context)
        arena = Arena(tmp_path, context.__enter__())
        prepare(arena)
        return arena

    yield begin
    for each in servers:
        each.__exit__(None, None, None)
    name = _name(request.node.name)
    if os.environ.get("RECORD_CLIENTS") and (tmp_path / "wire.jsonl").is_file() and "_host_" not in name:
        save(tmp_path / "wire.jsonl", tmp_path / "project", name)  # a replay must not fetch a page


def _name(test: str) -> str:
    """Return the name of the recording of a test."""
    return re.sub(r"[\[\]]+", "_", test.removeprefix("test_")).strip("_")


ONE_QUESTION = ("--client-question", "off", "--client-tools", "off")


@contextmanager
def codex(arena: Arena, task: str, *options: str) -> Iterator[Screen]:
    """Configure and start Codex, and give it a task."""
    arena.configure("codex", *ONE_QUESTION, *options)
    with arena.screen("codex", "--no-alt-screen") as screen:
        screen.until("Ask Codex|for shortcuts")
        screen.type(task)
        yield screen


@contextmanager
def claude(arena: Arena, task: str) -> Iterator[Screen]:
    """Configure and start Claude Code, and give it a task when it has the tools."""
    arena.configure("claude-code", *ONE_QUESTION)
    with arena.screen("claude") as screen:
        screen.until("shift.tab to cycle|for shortcuts")
        arena.until_listed()
        screen.type(task)
        yield screen


@pytest.mark.parametrize("scope", ["user", "project"])
def test_codex_change_is_approved_with_two_keys(start: Start, scope: str) -> None:
    arena = start(prepare_codex, Use("apply_patch", {"input": PATCH}))
    with codex(arena, "change the notes", "--scope", scope) as screen:
        screen.until(r"Allow this\?(?s:.)*enter to submit")
        screen.press("Enter")
        screen.until("That is all")
        assert screen.keys <= 2
    assert (arena.project / "notes.txt").read_text() == CHANGED
    assert not {"exec_command", "apply_patch", "shell"} & arena.offered


def test_codex_change_is_denied_with_three_keys(start: Start) -> None:
    arena = start(prepare_codex, Use("apply_patch", {"input": PATCH}))
    with codex(arena, "change the notes", "--scope", "project") as screen:
        screen.until(r"Allow this\?(?s:.)*enter to submit")
        screen.press("4")
        screen.until("That is all")
        assert screen.keys <= 3
    assert (arena.project / "notes.txt").read_text() == "first line\n"
    assert "the user said no" in arena.results[0]


def test_codex_command_and_host_are_approved_with_one_key_each(start: Start) -> None:
    network = {"network": {"enabled": True}}
    wanted = {"sandbox_permissions": "with_additional_permissions", "additional_permissions": network}
    arena = start(
        prepare_codex,
        Use("exec_command", {"cmd": "wc -l notes.txt"}),
        Use("exec_command", {"cmd": "curl -sS https://docs.python.org/3/", **wanted, "justification": "Read it?"}),
    )
    with codex(arena, "count the lines and read the page") as screen:
        screen.until(r"Command: wc -l notes.txt(?s:.)*enter to submit")
        screen.press("Enter")
        screen.until(r"More rights, for this command only: network(?s:.)*enter to submit")
        screen.press("Enter")
        screen.until("That is all")
    assert "1 notes.txt" in arena.results[0]
    assert "not approved" not in arena.results[1]  # there is no network here, so curl itself fails


def test_codex_model_sees_warnings_and_images(start: Start) -> None:
    arena = start(
        prepare_codex,
        Use("exec_command", {"cmd": "getent hosts docs.python.org"}),
        Use("view_image", {"path": "dot.png"}),
    )
    (arena.project / "dot.png").write_bytes(DOT)
    with codex(arena, "look") as screen:
        screen.until(r"Command: getent(?s:.)*session: run `getent hosts …`(?s:.)*enter to submit")
        screen.press("Enter")
        screen.until("That is all")
    assert "Warning: " in arena.results[0]
    assert "data:image/png;base64," in arena.results[1]


def test_codex_exec_says_that_no_user_was_asked(start: Start) -> None:
    arena = start(prepare_codex, Use("apply_patch", {"input": PATCH}))
    arena.configure("codex", "--scope", "project", *ONE_QUESTION)
    arena.run("codex", "exec", "--skip-git-repo-check", "change the notes")
    (result,) = arena.results
    assert "not approved" in result
    assert "the user said no" not in result
    assert "no user" in result
    assert (arena.project / "notes.txt").read_text() == "first line\n"


def _claude_turns(project: Path) -> list[Use]:
    path = str(project / "notes.txt")
    return [Use("Read", {"file_path": path}), Use("Write", {"file_path": path, "content": CHANGED})]


def test_claude_change_is_approved_with_two_keys(start: Start, tmp_path: Path) -> None:
    arena = start(prepare_claude, *_claude_turns(tmp_path / "project"))
    with claude(arena, "change the notes") as screen:
        screen.until(r"Change notes.txt at line 1\s+-first line\s+\+changed(?s:.)*Accept")
        screen.press("Enter", "Enter")
        screen.until("That is all")
        assert screen.keys <= 2
    assert (arena.project / "notes.txt").read_text() == CHANGED
    assert not {"Bash", "Edit", "Write", "NotebookEdit"} & arena.offered


def test_claude_change_is_denied_with_three_keys(start: Start, tmp_path: Path) -> None:
    arena = start(prepare_claude, *_claude_turns(tmp_path / "project"))
    with claude(arena, "change the notes") as screen:
        screen.until("Accept")
        screen.press("Down", "Down", "Enter")
        screen.until("That is all")
        assert screen.keys <= 3
    assert (arena.project / "notes.txt").read_text() == "first line\n"
    assert "said no" in arena.results[1] or "doesn't want" in arena.results[1]


def test_claude_command_and_host_are_approved_with_two_keys_each(start: Start) -> None:
    arena = start(
        prepare_claude,
        Use("Bash", {"command": "wc -l notes.txt", "description": "count lines"}),
        Use("WebFetch", {"url": "https://docs.python.org/3/", "prompt": "What is new?"}),
    )
    with claude(arena, "count the lines and read the page") as screen:
        screen.until(r"Command: wc -l notes.txt(?s:.)*Accept")
        screen.press("Enter", "Enter")
        screen.until(r"Host: docs.python.org\s+Address: https://docs.python.org/3/(?s:.)*Accept")
        screen.press("Enter", "Enter")
        screen.until("That is all")
    assert "1 notes.txt" in arena.results[0]
    assert "not approved" not in arena.results[1]  # there is no network here, so the fetch itself fails


def test_claude_answer_that_keeps_rule_shows_it_before(start: Start) -> None:
    arena = start(prepare_claude, *[Use("Bash", {"command": f"wc {each} notes.txt"}) for each in ("-l", "-c")])
    with claude(arena, "count the lines, then the bytes") as screen:
        screen.until(r"Command: wc -l notes.txt(?s:.)*Accept")
        screen.press("Right", "Down", "Down", "Space")
        screen.until("▸ always: run `wc …`")
        screen.press("Enter", "Enter")
        screen.until("That is all")
    assert ["1 notes.txt" in arena.results[0], "11 notes.txt" in arena.results[1]] == [True, True]


def test_claude_print_says_that_no_user_was_asked(start: Start, tmp_path: Path) -> None:
    arena = start(prepare_claude, *_claude_turns(tmp_path / "project"))
    arena.configure("claude-code", *ONE_QUESTION)
    arena.run("claude", "-p", "change the notes")
    result = arena.results[1]
    assert "no user" in result
    assert "the user said no" not in result


def test_gemini_change_is_approved_in_the_client(start: Start) -> None:
    arena = start(
        prepare_gemini,
        Use("read_file", {"file_path": "notes.txt"}),
        Use("write_file", {"file_path": "notes.txt", "content": CHANGED}),
    )
    arena.configure("gemini-cli", "--approve", "host", "--client-tools", "off")
    with arena.screen("gemini", "-m", "gemini-2.5-flash") as screen:
        screen.until("Type your message")
        arena.until_listed()
        screen.type("change the notes")
        screen.until("Allow once")
        assert (arena.project / "notes.txt").read_text() == "first line\n"
        screen.press("Enter")
        screen.until("That is all")
    assert (arena.project / "notes.txt").read_text() == CHANGED


def test_gemini_own_tools_are_denied(start: Start) -> None:
    arena = start(prepare_gemini)
    arena.configure("gemini-cli", "--approve", "host", "--client-tools", "off")
    own: list[Say | Use] = [Use("write_file", {"file_path": "notes.txt", "content": CHANGED}), END]
    arena.server.model = scripted(own, mark="write_file")
    arena.run("gemini", "-m", "gemini-2.5-flash", "--yolo", "-p", "change the notes")
    assert (arena.project / "notes.txt").read_text() == "first line\n"
    assert "denied by policy" in arena.results[0]


def test_opencode_change_is_approved_in_the_client(start: Start) -> None:
    arena = start(
        prepare_opencode,
        Use("read_file", {"path": "notes.txt"}),
        Use("replace_string_in_file", {"path": "notes.txt", "old_string": "first line", "new_string": "changed"}),
    )
    arena.configure("opencode", "--approve", "host", "--client-tools", "off")
    with arena.screen("opencode") as screen:
        screen.until("Ask anything")
        arena.until_listed()
        screen.type("change the notes")
        screen.until("Allow once")
        assert (arena.project / "notes.txt").read_text() == "first line\n"
        screen.press("Enter")
        screen.until("That is all")
    assert (arena.project / "notes.txt").read_text() == CHANGED
    assert not {"bash", "edit", "write"} & arena.offered


def test_qwen_change_and_command_are_approved_in_the_client(start: Start) -> None:
    """Qwen Code runs in its auto mode, in which a model judges what no rule of the user decides."""
    arena = start(
        prepare_qwen,
        Use("read_file", {"file_path": "notes.txt"}),
        Use("write_file", {"file_path": "notes.txt", "content": CHANGED}),
        Use("run_shell_command", {"command": "wc -l notes.txt"}),
    )
    arena.configure("qwen-code", "--approve", "host", "--client-tools", "off")
    with arena.screen("qwen") as screen:
        screen.until("Approve this server")
        screen.press("Enter")
        arena.until_listed()
        screen.until("Type your message")
        screen.type("change the notes")
        screen.until(r"write_file(?s:.)*allow once")
        assert (arena.project / "notes.txt").read_text() == "first line\n"
        screen.press("Enter")
        screen.until(r"wc -l notes.txt(?s:.)*allow once")
        screen.press("Enter")
        screen.until("That is all")
    assert (arena.project / "notes.txt").read_text() == CHANGED
    assert "1 notes.txt" in arena.results[2]
    assert not {"edit", "run_shell_command", "write_file"} & arena.offered
