"""Tests every answer to the approval question, at a real terminal."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import ARGV, USER, envelope, handrail
from support.pseudo_terminal import Terminal, unwrapped

from handrail.surfaces.cli.terminal_approver import RULE_HELP

PROMPT = "Approve? (y/n/a/e): "
IN_SESSION = "Approve? (y/n/s/a/e): "
CUT = "Approve? (y/n/a/e/d): "
SCOPE = "For (project/user, and 8h or 7d; Enter: project): "
ANSWERS = """\
  y  allow this call
  n  refuse it; N refuses it with a reason
  a  allow in this project: {}
  e  edit the rule of a, and choose how long it holds
"""
ANY_FILE = "create, change and delete any workspace file"
EXACTLY = ANSWERS.format("make exactly this call")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")  # no progress line, which would depend on the speed of the machine
    monkeypatch.setenv("SHELL", "/bin/sh")


def call(root: Path, tool: str, **params: object) -> Terminal:
    return Terminal(*ARGV, "call", tool, json.dumps(params), "--json", "--dialect", "copilot", "--root", str(root))


def session(root: Path, *calls: tuple[str, dict[str, object]]) -> Terminal:
    lines = "".join(json.dumps({"tool": tool, "params": params}) + "\n" for tool, params in calls)
    return Terminal(*ARGV, "run", "--dialect", "copilot", "--root", str(root), stdin=lines.encode())


def rules(root: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(handrail("approvals", "list", "--json", "--root", str(root)).stdout)
    return found


def test_question_command_shows_programs_directory_and_sandbox(root: Path) -> None:
    with call(root, "run_in_terminal", command="git log | head -n 1 && FOO=1 make") as terminal:
        assert terminal.until(PROMPT) == (
            "Command: git log | head -n 1 && FOO=1 make\n"
            "Programs: git, head, make\n"
            "Sets: FOO\n"
            "Directory: .\n"
            "Sandbox: strict, without network\n"
            "\n"
            "Tool: run_in_terminal\n"
            "Parameters:\n"
            "  command: git log | head -n 1 && FOO=1 make\n"
            "Files affected: (none)\n"
            "Risk level: dangerous\n"
            "\n" + EXACTLY + PROMPT
        )
        terminal.send("n\n")
        terminal.finish()


def test_question_command_shows_hidden_characters(root: Path) -> None:
    with call(root, "run_in_terminal", command="echo \x1b[2K\rrm\u202e\n\teval $x") as terminal:
        assert terminal.until("\nDirectory") == (
            "Command:\n"
            "  echo \\x1b[2K\\x0drm\\u202e\n"
            "  \\teval $x\n"
            "Programs: echo, eval, others that the text does not show\n"
            "Directory"
        )
        terminal.until(PROMPT)
        terminal.send("n\n")
        terminal.finish()


def test_question_escapes_blanks_that_look_like_spaces(root: Path) -> None:
    """`rm\xa0-rf` is one word, and U+2800 could push the rest of the line out of sight."""
    with call(root, "run_in_terminal", command="rm\xa0-rf a\u2800\u3164\U000e0041; ls") as terminal:
        asked = terminal.until(PROMPT)
        terminal.send("n\n")
        terminal.finish()
    assert asked.startswith("Command: rm\\xa0-rf a\\u2800\\u3164\\U000e0041; ls\nPrograms: rm\\xa0-rf, ls\n")
    assert "\n  command: rm\\xa0-rf a\\u2800\\u3164\\U000e0041; ls\n" in asked


@pytest.mark.parametrize(
    ("setting", "shown"),
    [("network", "strict, with network"), ("off", "off: not confined, with network")],
)
def test_question_names_sandbox_level(root: Path, setting: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_SANDBOX", setting)
    with call(root, "run_in_terminal", command="ls") as terminal:
        assert f"\nSandbox: {shown}\n" in terminal.until(PROMPT)
        terminal.send("n\n")
        terminal.finish()


def test_question_fetch_shows_host(root: Path) -> None:
    with call(root, "fetch_webpage", url="https://Example.COM/a/b?c=d") as terminal:
        first = "Host: example.com\nAddress: https://example.com/a/b?c=d\n\nTool: fetch_webpage\n"
        assert terminal.until(PROMPT).startswith(first)
        terminal.send("n\n")
        assert terminal.finish()[0] == 3


def test_question_fetch_url_is_never_shortened(root: Path) -> None:
    host = ".".join(["x" * 60] * 4)
    url = f"https://{host}/{'a' * 5000}?the=end"
    with call(root, "fetch_webpage", url=url) as terminal:
        shown = unwrapped(terminal.until(PROMPT))
        terminal.send("n\n")
        terminal.finish()
    assert f"Host: {host}\nAddress: {url}\n" in shown
    assert f"  url: {url}\n" in shown
    assert "not shown" not in shown


def test_question_guarded_path_warns_and_stores_no_rule(root: Path) -> None:
    prompt, every_time = "Approve? (y/n): ", "This call needs approval every time: the call reaches into .git, which is"
    with call(root, "create_file", path=".git/hooks/pre-commit", content="#!/bin/sh\n") as terminal:
        shown = terminal.until(prompt)
        assert "Careful: .git is guarded: your own tools may run its contents\n" in shown
        for key in "sae":
            terminal.send(key)
            assert terminal.until(prompt).startswith(f"{key}\n{every_time} guarded.\n")
        terminal.send("n")
        assert terminal.finish()[0] == 3
    assert rules(root) == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("n use tabs, not spaces", "the user said no: use tabs, not spaces"),
        ("no  Übung ✓ ", "the user said no: Übung ✓"),
        ("N", "the user said no"),
    ],
)
def test_answer_no_with_reason_reaches_model(root: Path, answer: str, reason: str) -> None:
    with call(root, "create_file", path="a", content="x") as terminal:
        terminal.until(PROMPT)
        terminal.send(f"{answer}\n")
        status, out, _ = terminal.finish()
    assert status == 3
    assert envelope(out)["error"] == {
        "code": "approval_denied",
        "message": f"create_file was not approved: {reason}",
        "suggestion": "Ask what to do instead",
    }


def test_answer_capital_n_asks_for_reason(root: Path) -> None:
    with call(root, "create_file", path="a", content="x") as terminal:
        terminal.until(PROMPT)
        terminal.send("N")
        terminal.until("Reason for the agent: ")
        terminal.send("use tabs\n")
        status, out, _ = terminal.finish()
    assert (status, envelope(out)["error"]["message"]) == (
        3,
        "create_file was not approved: the user said no: use tabs",
    )


@pytest.mark.parametrize("keys", ["?", "\n", " ", "x", "always forever", "nope", "yn", "\x1b[A", "\x1b", "\t", "ü"])
def test_answer_unknown_shows_list_of_answers(root: Path, keys: str) -> None:
    """Press other keys, also arrows, whose last byte is a letter, and paste text: nothing is answered."""
    with call(root, "create_file", path="a", content="x") as terminal:
        terminal.until(PROMPT)
        terminal.send(keys)
        shown = terminal.until(PROMPT)
        assert shown.endswith(f"\n{ANSWERS.format('create, change and delete a')}{PROMPT}")
        terminal.send("n")
        assert terminal.finish()[0] == 3
    assert os.listdir(root) == []


def test_answer_s_allows_all_edits_in_session(root: Path) -> None:
    writes: list[tuple[str, dict[str, object]]] = [
        ("create_file", {"path": "a", "content": "x"}),
        ("replace_string_in_file", {"path": "a", "old_string": "x", "new_string": "y"}),
        ("create_file", {"path": "deep/b", "content": "x"}),
        ("run_in_terminal", {"command": "true"}),
    ]
    with session(root, *writes) as terminal:
        terminal.until(IN_SESSION)
        terminal.send("s")
        assert terminal.until("\nCommand: ").startswith("s\nNew rule (in this session): edit **\n")
        terminal.until(IN_SESSION)
        terminal.send("n")
        status, out, _ = terminal.finish()
    assert status == 0
    assert [envelope(line)["success"] for line in out.splitlines()] == [True, True, True, False]
    assert rules(root) == []
    with session(root, ("create_file", {"path": "c", "content": "x"})) as terminal:
        terminal.until(IN_SESSION)
        terminal.send("n")
        terminal.finish()


def test_answer_s_for_one_call_is_not_offered(root: Path) -> None:
    with call(root, "create_file", path="a", content="x") as terminal:
        assert "session" not in terminal.until(PROMPT)
        terminal.send("s")
        shown = terminal.until(PROMPT)
        assert shown.startswith("s\nThis command makes one call, and its session ends with it; a or e keeps a rule.\n")
        terminal.send("e")
        terminal.until("Rule: ")
        terminal.send("\n")
        terminal.until(SCOPE)
        terminal.send("session\n")
        terminal.until(SCOPE)
        terminal.send("\x04")
        terminal.until(PROMPT)
        terminal.send("n")
        assert terminal.finish()[0] == 3
    assert rules(root) == []


def test_answer_a_keeps_shown_rule_in_project(root: Path) -> None:
    with call(root, "create_file", path="./src/a.txt", content="x") as terminal:
        shown = terminal.until(PROMPT)
        assert "\n  a  allow in this project: create, change and delete files below src/\n" in shown
        terminal.send("a")
        status, _, rest = terminal.finish()
    assert (status, rest) == (0, "a\nNew rule (in this project): edit src/**\n")
    (rule,) = rules(root)
    assert (rule["scope"], rule["calls"], rule["expires_at"]) == ("project", "edit src/**", None)
    with call(root, "create_file", path="src/b.txt", content="x") as terminal:
        assert terminal.finish()[::2] == (0, "")


def test_answer_e_enter_takes_the_suggestion(root: Path) -> None:
    with call(root, "run_in_terminal", command="git status --short") as terminal:
        terminal.until(PROMPT)
        terminal.send("e")
        assert terminal.until("\nRule: ") == f"e\nSuggested rule: git status *\n{RULE_HELP}Rule: "
        terminal.send("\n")
        assert "\nIt allows the agent to run commands that begin with `git status`\n" in terminal.until(SCOPE)
        terminal.send("project 8h\n")
        status, _, rest = terminal.finish()
    assert rest.endswith("New rule (in this project, for 8 hours): git status *\n")
    assert status in (0, 1)
    (rule,) = rules(root)
    assert (rule["calls"], rule["expires_at"] is not None) == ("git status *", True)
    covered = handrail("approvals", "test", "run_in_terminal", '{"command": "git status -b"}', "--root", str(root))
    assert covered.returncode == 0


def test_answer_e_typed_rule_must_cover_this_call(root: Path) -> None:
    with call(root, "create_file", path="notes/a.md", content="x\n") as terminal:
        terminal.until(PROMPT)
        terminal.send("e")
        terminal.until("Suggested rule: edit notes/**\r\n")
        terminal.until("\nRule: ")
        terminal.send("edit src/**\n")
        assert terminal.until("\nRule: ") == (
            "edit src/**\nThe rule does not cover this call: it does not cover notes/a.md\nRule: "
        )
        for refused, reason in (("(", "not a valid regular expression"), ("edit .git/**", "can never match")):
            terminal.send(f"{refused}\n")
            assert reason in terminal.until("\nRule: ")
        terminal.send(" edit notes/*.md\n")
        terminal.until(SCOPE)
        terminal.send("nonsense\n")
        terminal.until(SCOPE)
        terminal.send("user\n")
        assert terminal.finish()[0] == 0
    (rule,) = rules(root)
    assert (rule["scope"], rule["calls"]) == ("user", "edit notes/*.md")


def test_answer_e_goes_back_on_dash_and_end_of_input(root: Path) -> None:
    with call(root, "create_file", path="a", content="x") as terminal:
        terminal.until(PROMPT)
        for keys in ("-\n", " - \n", "\x04"):
            terminal.send("e")
            terminal.until("\nRule: ")
            terminal.send(keys)
            terminal.until(PROMPT)
        terminal.send("e")
        terminal.until("back.\r\nRule: ")
        terminal.send("\n")
        terminal.until(SCOPE)
        terminal.send("\x04")
        terminal.until(PROMPT)
        terminal.send("n")
        assert terminal.finish()[0] == 3
    assert rules(root) == []


def test_rule_prompt_escapes_control_characters(root: Path) -> None:
    with call(root, "create_file", path="\x1b[2J\u202e/a", content="x") as terminal:
        terminal.until(PROMPT)
        terminal.send("e")
        shown = terminal.until("back.\r\nRule: ")
        terminal.send("-\n")
        terminal.until(PROMPT)
        terminal.send("n\n")
        terminal.finish()
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_rule_prompt_interrupt_changes_nothing(root: Path) -> None:
    with call(root, "create_file", path="a", content="x") as terminal:
        terminal.until(PROMPT)
        terminal.send("e")
        terminal.until("back.\r\nRule: ")
        terminal.send("\x03\n")  # the line end wakes a read that began just after the signal came
        terminal.until("The call was not approved: nothing was changed")
        status, out, _ = terminal.finish()
    assert (status, out) == (130, "")
    assert not list(root.iterdir())
    assert rules(root) == []


@pytest.fixture
def outlives_its_terminal() -> Iterator[None]:
    """Ignore SIGHUP, as nohup does."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("outlives_its_terminal")
@pytest.mark.parametrize("typed", [[], [("e", "back.\r\nRule: ")], [("e", "back.\r\nRule: "), ("\n", SCOPE)]])
def test_answer_terminal_hang_up_denies(root: Path, typed: list[tuple[str, str]]) -> None:
    with call(root, "create_file", path="a", content="x") as terminal:
        terminal.until(PROMPT)
        for keys, shown in typed:
            terminal.send(keys)
            terminal.until(shown)
        terminal.hang_up()
        status, out, _ = terminal.finish()
    assert status == 3
    assert envelope(out)["error"]["message"] == "create_file was not approved: the user said no"
    assert os.listdir(root) == []
    assert rules(root) == []


def test_answer_d_shows_whole_change(root: Path) -> None:
    content = "".join(f"{n}\n" for n in range(300))
    with call(root, "create_file", path="a", content=content) as terminal:
        assert "lines not shown" in terminal.until(CUT)
        terminal.send("d")
        shown = terminal.until(PROMPT)
        assert "".join(f"+{n}\n" for n in range(300)) in shown
        assert "not shown" not in shown
        assert "\n  y  allow this call\n" in shown
        terminal.send("n\n")
        terminal.finish()


def test_answer_d_shows_whole_values(root: Path) -> None:
    (root / "a").write_text("x" * 1000)
    with call(root, "replace_string_in_file", path="a", old_string="x" * 1000, new_string="y" * 1000) as terminal:
        shown = unwrapped(terminal.until(CUT))
        assert f"  new_string: {'y' * 199}…\n" in shown
        assert "\n  d  show everything: some text is left out above\n" in shown
        terminal.send("d")
        shown = unwrapped(terminal.until(PROMPT))
        assert f"  new_string: {'y' * 1000}\n" in shown
        assert "not shown" not in shown
        terminal.send("n\n")
        terminal.finish()


def test_question_folds_one_long_line(root: Path) -> None:
    with call(root, "create_file", path="a", content="x" * 50_000) as terminal:
        shown = terminal.until(CUT)
        assert "characters not shown" in shown
        assert len(shown) < 48 * 80
        terminal.send("d")
        assert "x" * 50_000 in unwrapped(terminal.until(PROMPT))
        terminal.send("n\n")
        terminal.finish()


def test_question_file_changed_meanwhile_asks_again(root: Path) -> None:
    """Swap the file during the question: an approval counts only for the content, path and version that were shown."""
    file = root / "a.txt"
    file.write_text("old\n")
    with call(root, "replace_string_in_file", path="a.txt", old_string="old", new_string="new") as terminal:
        assert "-old\n+new\n" in terminal.until(PROMPT)
        file.write_text("secret old\n")
        terminal.send("y\n")
        assert "-secret old\n+secret new\n" in terminal.until(PROMPT)
        assert file.read_text() == "secret old\n"
        (root / "b.txt").write_text("other old\n")
        file.unlink()
        file.symlink_to("b.txt")
        terminal.send("y\n")
        shown = terminal.until(PROMPT)
        assert "-other old\n+other new\n" in shown
        assert "Files affected: b.txt\n" in shown
        terminal.send("y\n")
        status, out, _ = terminal.finish()
    assert (status, envelope(out)["files_affected"]) == (0, ["b.txt"])
    assert (root / "b.txt").read_text() == "other new\n"


def test_deny_rule_added_during_question_overrides_yes(root: Path) -> None:
    with call(root, "create_file", path="a", content="x") as terminal:
        terminal.until(PROMPT)
        handrail("approvals", "add", *USER, "create_file", ".*", "--deny")
        terminal.send("y\n")
        status, out, _ = terminal.finish()
    assert status == 3
    assert "forbids it" in envelope(out)["error"]["message"]
    assert not (root / "a").exists()
