"""Tests every answer to the approval question, at a real terminal."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command_line import ARGV, envelope, handrail
from support.pseudo_terminal import Terminal

from handrail.surfaces.cli.terminal_approver import HELP, PATTERN_HELP

PROMPT = "Approve? (y/n/always): "
SCOPE = "For (session/project/user): "


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
            "\n" + PROMPT
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
        assert terminal.until(PROMPT).startswith("Host: example.com\n\nTool: fetch_webpage\n")
        terminal.send("n\n")
        assert terminal.finish()[0] == 3


def test_question_fetch_url_is_never_shortened(root: Path) -> None:
    host = ".".join(["x" * 60] * 4)
    url = f"https://{host}/{'a' * 5000}?the=end"
    with call(root, "fetch_webpage", url=url) as terminal:
        shown = terminal.until(PROMPT)
        terminal.send("n\n")
        terminal.finish()
    assert f"Host: {host}\n" in shown
    assert f"  url: {url}\n" in shown
    assert "not shown" not in shown


def test_question_guarded_path_warns_and_stores_no_rule(root: Path) -> None:
    with call(root, "create_file", path=".git/hooks/pre-commit", content="#!/bin/sh\n") as terminal:
        shown = terminal.until(PROMPT)
        assert "Careful: .git is guarded: your own tools may run its contents\n" in shown
        for answer in ("always", "always user", "pattern"):
            terminal.send(f"{answer}\n")
            assert terminal.until(PROMPT) == (
                f"{answer}\nThis call needs approval every time: the call reaches into .git,"
                f" which is guarded.\n{PROMPT}"
            )
        terminal.send("n\n")
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


@pytest.mark.parametrize("answer", ["?", "help", "always forever", "always 8", "nope", "pattern x"])
def test_answer_unknown_shows_list_of_answers(root: Path, answer: str) -> None:
    with call(root, "create_file", path="a", content="x") as terminal:
        terminal.until(PROMPT)
        terminal.send(f"{answer}\n")
        assert terminal.until(PROMPT) == f"{answer}\n{HELP}{PROMPT}"
        terminal.send("n\n")
        terminal.finish()


def test_answer_always_session_rule_ends_with_session(root: Path) -> None:
    touch: tuple[str, dict[str, object]] = ("run_in_terminal", {"command": "echo x >> log"})
    with session(root, touch, touch) as terminal:
        terminal.until(PROMPT)
        terminal.send("always session\n")
        status, out, rest = terminal.finish()
    assert status == 0
    assert rest.startswith("always session\nNew rule (this session): run_in_terminal ^")
    assert [envelope(line)["success"] for line in out.splitlines()] == [True, True]
    assert (root / "log").read_text() == "x\nx\n"
    assert rules(root) == []
    with session(root, touch) as terminal:
        terminal.until(PROMPT)
        terminal.send("n\n")
        terminal.finish()


@pytest.mark.parametrize(
    ("answer", "scope", "expires"),
    [
        ("always", "project", False),
        ("always project", "project", False),
        ("ALWAYS User", "user", False),
        ("always user 8h", "user", True),
        ("always 2d", "project", True),
    ],
)
def test_answer_always_stores_rule_in_named_scope(root: Path, answer: str, scope: str, expires: bool) -> None:
    with call(root, "create_file", path="./a.txt", content="x") as terminal:
        terminal.until(PROMPT)
        terminal.send(f"{answer}\n")
        assert terminal.finish()[0] == 0
    (rule,) = rules(root)
    assert (rule["scope"], rule["expires_at"] is not None) == (scope, expires)
    assert rule["pattern"] == r'^\{"path":"a\.txt","content":"x"\}$'
    (root / "a.txt").unlink()
    with call(root, "create_file", path="a.txt", content="x") as terminal:
        assert terminal.finish()[::2] == (0, "")


def test_pattern_prompt_enter_takes_the_suggestion(root: Path) -> None:
    with call(root, "run_in_terminal", command="git status --short") as terminal:
        terminal.until(PROMPT)
        terminal.send("pattern\n")
        assert terminal.until("Pattern: ") == (
            f'pattern\nSuggested pattern: ["git", "status", "..."]\n{PATTERN_HELP}Pattern: '
        )
        terminal.send("\n")
        terminal.until(SCOPE)
        terminal.send("project 8h\n")
        status, _, rest = terminal.finish()
    assert rest.endswith('New rule (this project, for 8 hours): run_in_terminal ["git", "status", "..."]\n')
    assert status in (0, 1)
    (rule,) = rules(root)
    assert rule["argv"] == ["git", "status", "..."]
    covered = handrail("approvals", "test", "run_in_terminal", '{"command": "git status -b"}', "--root", str(root))
    assert covered.returncode == 0


def test_pattern_prompt_typed_pattern_must_cover_this_call(root: Path) -> None:
    with call(root, "create_file", path="notes/a.md", content="x\n") as terminal:
        terminal.until(PROMPT)
        terminal.send("pattern\n")
        suggested = r"""^\{"path":"notes/[^"/\\]+\.md","content":"(?:[^"\\]|\\.)*"\}$"""
        terminal.until(f"Suggested pattern: {suggested}\r\n")
        terminal.until("\nPattern: ")
        terminal.send("^no$\n")
        assert terminal.until("\nPattern: ") == (
            "^no$\nThe pattern does not cover this call: its pattern does not match\nPattern: "
        )
        terminal.send("(\n")
        assert "not a valid regular expression" in terminal.until("\nPattern: ")
        terminal.send(" .*content.*\n")
        terminal.until(SCOPE)
        terminal.send("nonsense\n")
        terminal.until(SCOPE)
        terminal.send("user\n")
        assert terminal.finish()[0] == 0
    (rule,) = rules(root)
    assert (rule["scope"], rule["pattern"]) == ("user", ".*content.*")


def test_pattern_prompt_goes_back_on_dash_and_end_of_input(root: Path) -> None:
    with call(root, "create_file", path="a", content="x") as terminal:
        terminal.until(PROMPT)
        for keys in ("-\n", " - \n", "\x04"):
            terminal.send("pattern\n")
            terminal.until("\nPattern: ")
            terminal.send(keys)
            terminal.until(PROMPT)
        terminal.send("pattern\n")
        terminal.until("\nPattern: ")
        terminal.send("\n")
        terminal.until(SCOPE)
        terminal.send("\x04")
        terminal.until(PROMPT)
        terminal.send("n\n")
        assert terminal.finish()[0] == 3
    assert rules(root) == []


def test_pattern_prompt_escapes_control_characters(root: Path) -> None:
    with call(root, "create_file", path="\x1b[2J\u202e/a", content="x") as terminal:
        terminal.until(PROMPT)
        terminal.send("pattern\n")
        shown = terminal.until("\nPattern: ")
        terminal.send("-\n")
        terminal.until(PROMPT)
        terminal.send("n\n")
        terminal.finish()
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_pattern_prompt_interrupt_changes_nothing(root: Path) -> None:
    with call(root, "create_file", path="a", content="x") as terminal:
        terminal.until(PROMPT)
        terminal.send("pattern\n")
        terminal.until("\nPattern: ")
        terminal.send("\x03")
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
@pytest.mark.parametrize("typed", [[], [("pattern\n", "\nPattern: ")], [("pattern\n", "\nPattern: "), ("\n", SCOPE)]])
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


def test_answer_all_shows_whole_change(root: Path) -> None:
    content = "".join(f"{n}\n" for n in range(300))
    with call(root, "create_file", path="a", content=content) as terminal:
        assert "lines not shown" in terminal.until(PROMPT)
        terminal.send("all\n")
        shown = terminal.until(PROMPT)
        assert "".join(f"+{n}\n" for n in range(300)) in shown
        assert "not shown" not in shown
        terminal.send("n\n")
        terminal.finish()


def test_answer_all_shows_whole_values(root: Path) -> None:
    (root / "a").write_text("x" * 1000)
    with call(root, "replace_string_in_file", path="a", old_string="x" * 1000, new_string="y" * 1000) as terminal:
        shown = terminal.until(PROMPT)
        assert f"  new_string: {'y' * 199}…\n" in shown
        assert shown.endswith(f"Some text is not shown; answer all to see it.\n{PROMPT}")
        terminal.send("all\n")
        shown = terminal.until(PROMPT)
        assert f"  new_string: {'y' * 1000}\n" in shown
        assert "not shown" not in shown
        terminal.send("n\n")
        terminal.finish()


def test_question_folds_one_long_line(root: Path) -> None:
    with call(root, "create_file", path="a", content="x" * 50_000) as terminal:
        shown = terminal.until(PROMPT)
        assert "characters not shown" in shown
        assert len(shown) < 48 * 80
        terminal.send("all\n")
        assert "x" * 50_000 in terminal.until(PROMPT)
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
        handrail("approvals", "add", "create_file", ".*", "--deny")
        terminal.send("y\n")
        status, out, _ = terminal.finish()
    assert status == 3
    assert "forbids it" in envelope(out)["error"]["message"]
    assert not (root / "a").exists()


def test_call_without_terminal_is_denied(root: Path) -> None:
    done = handrail("call", "create_file", "path=./a", "content=x", "--dialect", "copilot", "--root", str(root))
    assert (done.returncode, "approvals" in done.stdout + done.stderr) == (3, False)
    assert os.listdir(root) == []
