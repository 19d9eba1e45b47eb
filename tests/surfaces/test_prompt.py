"""Tests the approval question at a real terminal."""

import json
from pathlib import Path

import pytest
from support.command_line import ARGV, envelope, handrail
from support.pseudo_terminal import Terminal

HELLO = 'print("hello world")'
SHOWN = """\
diff --git a/hello.py b/hello.py
new file mode 100644
--- /dev/null
+++ b/hello.py
@@ -0,0 +1 @@
+print("hello world")
\\ No newline at end of file

Tool: file.write
Parameters:
  path: hello.py
  content: <20 bytes>
Files affected: hello.py
Risk level: safe_write

"""
ANSWERS = """\
  y  allow this call
  n  refuse it; N refuses it with a reason
  a  allow in this project: create, change and delete hello.py
  e  edit the rule of a, and choose how long it holds
"""
EXACTLY = "make exactly this call"
PROMPT = "Approve? (y/n/a/e): "
IN_SESSION = "Approve? (y/n/s/a/e): "


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")  # no progress line, which would depend on the speed of the machine


def call(root: Path, tool: str, *arguments: str) -> Terminal:
    return Terminal(*ARGV, "call", tool, *arguments, "--json", "--root", str(root))


def write(root: Path, path: str = "hello.py", content: str = HELLO) -> Terminal:
    return call(root, "file.write", f"path={path}", f"content={content}")


@pytest.mark.parametrize("answer", ["y", "yes\n", "Y", "  yes  "])
def test_question_shows_diff_and_yes_allows(root: Path, answer: str) -> None:
    with write(root) as terminal:
        assert terminal.until(PROMPT) == SHOWN + ANSWERS + PROMPT
        assert not (root / "hello.py").exists()
        terminal.send(answer)
        status, out, rest = terminal.finish()
    assert (status, rest) == (0, f"{answer.strip()}\n")
    assert envelope(out)["files_affected"] == ["hello.py"]
    assert (root / "hello.py").read_text() == HELLO


@pytest.mark.parametrize("answer", ["n", "no\n", "N\n", "\x04"], ids=["n", "no", "N", "end of file"])
def test_question_no_or_end_of_input_changes_nothing(root: Path, answer: str) -> None:
    with write(root) as terminal:
        terminal.until(PROMPT)
        terminal.send(answer)
        status, out, _ = terminal.finish()
    assert status == 3
    assert envelope(out)["error"] == {
        "code": "approval_denied",
        "message": "file.write was not approved: the user said no",
        "suggestion": "Ask what to do instead",
    }
    assert not list(root.iterdir())


def test_question_other_answers_ask_again(root: Path) -> None:
    with write(root) as terminal:
        terminal.until(PROMPT)
        for junk in ("", "maybe", "yn", "ja"):
            terminal.send(f"{junk}\n")
            assert terminal.until(PROMPT) == f"{junk}\n{ANSWERS}{PROMPT}"
        assert not (root / "hello.py").exists()
        terminal.send("y\n")
        assert terminal.finish()[0] == 0


def test_question_always_stores_and_shows_rule(root: Path) -> None:
    with write(root) as terminal:
        terminal.until(PROMPT)
        terminal.send("always\n")
        status, _, rest = terminal.finish()
    assert (status, rest) == (0, "always\nNew rule (in this project): edit hello.py\n")
    here = ("--root", str(root))
    assert "  1. edit hello.py  (on, never used)\n" in handrail("approvals", "list", *here).stdout

    with write(root, content="x") as terminal:
        assert terminal.finish()[::2] == (0, "")  # not asked
    assert (root / "hello.py").read_text() == "x"

    for path in ("hello.pyc", "a/hello.py"):
        with write(root, path) as terminal:
            terminal.until(PROMPT)
            terminal.send("n")
            assert terminal.finish()[0] == 3


def test_question_always_unstorable_rule_approves_once(root: Path) -> None:
    with write(root, path="odd\nname", content="long " * 5000) as terminal:
        terminal.until("Approve? (y/n/a/e/d): ")
        terminal.send("a")
        status, out, shown = terminal.finish()
    assert status == 0
    why = "the rule: the pattern is too long, or repeats too much"
    assert shown == f"a\nAllowed this time only: cannot store a rule: {why}\n"
    (warning,) = envelope(out)["warnings"]
    assert warning == f"approved this time only: cannot store the rule: {why}"
    assert handrail("approvals", "list").stdout.startswith("No rules.")


def test_question_interrupt_exits_130_and_changes_nothing(root: Path) -> None:
    with write(root) as terminal:
        terminal.until(PROMPT)
        terminal.send("\x03")
        status, out, rest = terminal.finish()
    assert (status, out, rest) == (130, "", "\nThe call was not approved: nothing was changed\n\n")
    assert not list(root.iterdir())


def test_question_edit_shows_real_diff(root: Path) -> None:
    (root / "real.txt").write_bytes(b"".join(b"line %d\r\n" % n for n in range(1, 10)))
    (root / "link").symlink_to("real.txt")
    patches = '[{"find": "line 5\\n", "replace": "line five\\nline \\u001b[31m5½\\n"}]'
    with call(root, "file.patch", "path=link", f"patches={patches}") as terminal:
        assert terminal.until(PROMPT) == (
            "diff --git a/link b/link\n"
            "--- a/link\n"
            "+++ b/link\n"
            "@@ -2,7 +2,8 @@\n"
            " line 2\n line 3\n line 4\n"
            "-line 5\n"
            "+line five\n"
            "+line \\x1b[31m5½\n"
            " line 6\n line 7\n line 8\n"
            "\n"
            "Tool: file.patch\n"
            "Parameters:\n"
            "  path: link\n"
            '  patches: [{"find": "line 5\\n", "replace": "line five\\nline \\u001b[31m5½\\n"}]\n'
            "Files affected: real.txt\n"
            "Risk level: safe_write\n"
            "\n" + ANSWERS.replace("hello.py", "real.txt") + PROMPT
        )
        terminal.send("n\n")
        terminal.finish()


def test_question_deletion_shows_lost_contents(root: Path) -> None:
    (root / "old.txt").write_text("precious\n")
    with call(root, "file.delete", "path=old.txt") as terminal:
        assert terminal.until(PROMPT) == (
            "diff --git a/old.txt b/old.txt\ndeleted file mode 100644\n"
            "--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-precious\n\n"
            "Tool: file.delete\nParameters:\n  path: old.txt\nFiles affected: old.txt\nRisk level: dangerous\n\n"
            + ANSWERS.replace("hello.py", "old.txt")
            + PROMPT
        )
        terminal.send("n\n")
        assert terminal.finish()[0] == 3
    assert (root / "old.txt").exists()


def test_question_deletion_of_link_names_link(root: Path) -> None:
    (root / "link").symlink_to("/etc/passwd")
    with call(root, "file.delete", "path=link") as terminal:
        assert terminal.until(PROMPT).startswith("deleted link\n\nTool: file.delete\n")
        terminal.send("y\n")
        assert terminal.finish()[0] == 0
    assert not (root / "link").is_symlink()


def test_question_long_diff_is_folded_to_screen(root: Path) -> None:
    content = "".join(f"{n}\n" for n in range(1000))
    with Terminal(
        *ARGV, "call", "file.write", "path=a", f"content={content}", "--root", str(root), rows=15
    ) as terminal:
        shown = terminal.until("Approve? (y/n/a/e/d): ").split("\n")
        terminal.send("n\n")
        terminal.finish()
    assert shown[2:6] == ["--- /dev/null", "+++ b/a", "@@ -0,0 +1,1000 @@", "+0"]
    assert shown[20] == "… 976 lines not shown …"
    assert shown[29:32] == ["+999", "", "Tool: file.write"]


def test_question_unknown_terminal_size_uses_default(root: Path) -> None:
    content = "".join(f"{n}\n" for n in range(1000))
    argv = [*ARGV, "call", "file.write", "path=a", f"content={content}", "--root", str(root)]
    with Terminal(*argv, rows=0, columns=0) as terminal:
        shown = terminal.until("Tool: ").split("\n")
        terminal.until("Approve? (y/n/a/e/d): ")
        terminal.send("n\n")
        terminal.finish()
    assert len(shown) == 48 + 2


def test_question_not_asked_at_foreign_terminal(root: Path) -> None:
    argv = [*ARGV, "call", "file.write", "path=a", "content=x", "--root", str(root)]
    with Terminal(*argv, controlling=False) as terminal:
        status, out, shown = terminal.finish()
    assert status == 3
    assert shown.startswith(
        "handrail: file.write: Run this command in a terminal, or with --approve auto, or keep a rule: "
    )
    assert out.startswith("✗ file.write was not approved: no approver can be asked\n")


def test_question_escapes_terminal_controls(root: Path) -> None:
    with write(root, path="a\n\x1b[2J\u202etxt", content="x\x1b]0;title\x07\n") as terminal:
        assert terminal.until(PROMPT) == (
            'diff --git "a/a\\n\\033[2J\\342\\200\\256txt" "b/a\\n\\033[2J\\342\\200\\256txt"\n'
            "new file mode 100644\n"
            "--- /dev/null\n"
            '+++ "b/a\\n\\033[2J\\342\\200\\256txt"\n'
            "@@ -0,0 +1 @@\n"
            "+x\\x1b]0;title\\x07\n"
            "\n"
            "Tool: file.write\n"
            "Parameters:\n"
            "  path: a\\n\\x1b[2J\\u202etxt\n"
            "  content: <12 bytes>\n"
            'Files affected: "a\\n\\033[2J\\342\\200\\256txt"\n'
            "Risk level: safe_write\n"
            "\n"
            + ANSWERS.replace("create, change and delete any workspace file", EXACTLY).replace(
                "create, change and delete hello.py", EXACTLY
            )
            + PROMPT
        )
        terminal.send("n\n")
        terminal.finish()


def test_question_capable_terminal_gets_colours(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "xterm")
    with write(root, content="one\n") as terminal:
        assert terminal.until("Tool:") == (
            "diff --git a/hello.py b/hello.py\nnew file mode 100644\n"
            "\x1b[31m--- /dev/null\x1b[0m\n\x1b[32m+++ b/hello.py\x1b[0m\n"
            "\x1b[36m@@ -0,0 +1 @@\x1b[0m\n\x1b[32m+one\x1b[0m\n\nTool:"
        )
        terminal.until(PROMPT)
        terminal.send("n\n")
        terminal.finish()


def test_run_asks_at_terminal_while_calls_come_from_pipe(root: Path) -> None:
    lines = [
        {"tool": "file.write", "params": {"path": "a", "content": "1"}},
        {"tool": "file.write", "params": {"path": "a", "content": "1"}},
        {"tool": "file.write", "params": {"path": "b", "content": "2"}},
        {"tool": "file.read", "params": {"path": "a"}},
    ]
    stdin = "\n".join(map(json.dumps, lines)).encode()
    with Terminal(*ARGV, "run", "--root", str(root), stdin=stdin) as terminal:
        assert "path: a\n" in terminal.until(IN_SESSION)
        terminal.send("y\n")
        assert "path: b\n" in terminal.until(IN_SESSION)  # the second call changes nothing and asks nothing
        terminal.send("n\n")
        status, out, rest = terminal.finish()
    assert (status, rest) == (0, "n\n")
    assert [envelope(line)["success"] for line in out.splitlines()] == [True, True, False, True]


def test_call_reading_and_empty_edit_ask_nothing(root: Path) -> None:
    (root / "a.txt").write_text("same\n")
    for tool, *arguments in (
        ("file.read", "path=a.txt"),
        ("file.list",),
        ("file.write", "path=a.txt", "content=same\n"),
        ("file.patch", "path=a.txt", 'patches=[{"find": "same", "replace": "same"}]'),
        ("file.patch", "path=a.txt", 'patches=[{"find": "other", "replace": "x"}]'),
        ("file.write", "path=../a.txt", "content=x"),
    ):
        with call(root, tool, *arguments) as terminal:
            status, _, shown = terminal.finish()
        assert (status in (0, 1), shown) == (True, "")


def test_question_answer_from_stdin_is_ignored(root: Path) -> None:
    """Pipe an answer in: standard input is for calls, never for answers."""
    done = handrail("call", "file.write", "path=a", "content=x", "--root", str(root), stdin="y\ny\n")
    assert done.returncode == 3
    assert not list(root.iterdir())


def test_question_not_shown_by_other_policies(root: Path) -> None:
    told = 'handrail: file.write: Use --approve ask (in Python: approve="ask"), or the policy auto\n'
    for policy, status, said in (("auto", 0, ""), ("host", 0, ""), ("never", 3, told)):
        with Terminal(
            *ARGV, "call", "file.write", f"path={policy}", "content=x", "--approve", policy, "--root", str(root)
        ) as terminal:
            assert terminal.finish()[::2] == (status, said)


def test_call_without_terminal_is_denied(root: Path) -> None:
    done = handrail("call", "create_file", "path=./a", "content=x", "--dialect", "copilot", "--root", str(root))
    assert (done.returncode, "approvals" in done.stdout + done.stderr) == (3, False)
    assert not list(root.iterdir())
