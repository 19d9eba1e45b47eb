"""Tests `handrail approvals test` with calls, as `handrail call` takes them, and with undos."""

from pathlib import Path

import pytest
from support.command_line import USER, at_terminal, handrail, usage_error

ASKED = "No rule decides this call: it would need approval\n"


@pytest.fixture
def here(root: Path) -> tuple[str, str]:
    """Make a workspace with two journal entries."""
    for content in ("one", "two"):
        done = handrail("call", "file.write", "path=a", f"content={content}", "--root", str(root), "--approve", "auto")
        assert done.returncode == 0
    return "--root", str(root)


def test_approvals_test_takes_parameters_like_call(root: Path) -> None:
    here = ("--root", str(root))
    at_terminal("approvals", "add", *USER, "edit_lines", r'.*"start_line":1,.*')
    (root / "a").write_text("x\n")
    edit = ("edit_lines", "path=a", "operation=delete", "end_line=1")
    yes = handrail("approvals", "test", *edit, "start_line=1", *here)
    assert (yes.stdout, yes.returncode) == ('Approved by user rule 1: .*"start_line":1,.*\n', 0)
    number = handrail("approvals", "test", "file.write", "path=a", "content=5", *here)
    assert number.stdout.startswith(ASKED)
    assert usage_error(handrail("approvals", "test", "file.write", "a", *here)) == "expected KEY=VALUE, not 'a'"
    assert (root / "a").read_text() == "x\n"


def test_approvals_test_decides_about_undo(here: tuple[str, str], root: Path) -> None:
    rule = r'\{"entries":\[2\],"targets":\["a"\]\}'
    at_terminal("approvals", "add", *USER, "undo", rule)
    for arguments in ((), ("entries=[2]",), ("since=2",), ('{"entries": [2]}',)):
        tried = handrail("approvals", "test", "undo", *arguments, *here)
        assert (tried.stdout, tried.returncode) == (f"Approved by user rule 1: {rule}\n", 0)
    both = handrail("approvals", "test", "undo", "since=1", *here)
    assert (both.stdout, both.returncode) == (f"{ASKED}  not user rule 1: its pattern does not match\n", 3)
    assert (root / "a").read_text() == "two"
    assert handrail("undo", *here).returncode == 0
    redo = handrail("approvals", "test", "redo", *here)
    assert redo.stdout == f"{ASKED}  not user rule 1: it is for another tool\n"
    at_terminal("approvals", "add", *USER, "restore", ".*", "--deny")
    restore = handrail("approvals", "test", "restore", "path=a", "at=2", *here)
    assert restore.stdout == "Forbidden by user rule 2: .*\n"
    assert (root / "a").read_text() == "one"


def test_approvals_test_impossible_undo_is_explained(here: tuple[str, str], root: Path) -> None:
    begin = "The call would fail before any question: "
    gone = handrail("approvals", "test", "undo", "entries=[9]", *here)
    assert (gone.stdout, gone.returncode) == (f"{begin}entry 9 not found\n", 3)
    (root / "a").write_text("three")
    assert handrail("approvals", "test", "undo", *here).stdout == f"{begin}some files cannot be restored\n"
    said = "undo takes entries=[N], since=N or no parameter; redo takes none; restore takes path=PATH at=N"
    for arguments in (("undo", "n=1"), ("undo", "entries=[1,2]"), ("redo", "entries=[1]"), ("restore", "path=a")):
        assert usage_error(handrail("approvals", "test", *arguments, *here)) == said


@pytest.mark.parametrize(
    ("rule", "call", "said"),
    [
        ("git status *", "git status --short", "Approved by project rule 1: git status *\n"),
        ("git status *", "git push", f"{ASKED}  not project rule 1: its words do not cover `git push`\n"),
        ("make *", "run make test", "Approved by project rule 1: make *\n"),
        ("edit src/**", "edit src/new/a.py", "Approved by project rule 1: edit src/**\n"),
        ("edit src/**", "edit other.py", f"{ASKED}  not project rule 1: it does not cover other.py\n"),
        ("fetch *.python.org", "fetch docs.python.org", "Approved by project rule 1: fetch *.python.org\n"),
        ("fetch *.python.org", "fetch https://python.org/x", f"{ASKED}  not project rule 1: it is for other hosts"),
    ],
)
def test_approvals_test_takes_short_form(root: Path, rule: str, call: str, said: str) -> None:
    here = ("--root", str(root))
    assert at_terminal("approvals", "add", rule, *here).returncode == 0
    tried = handrail("approvals", "test", call, *here)
    assert tried.stdout.startswith(said)
    assert tried.returncode == (0 if said.startswith("Approved") else 3)
    assert list(root.iterdir()) == []


def test_approvals_test_unclear_short_form_is_explained(root: Path) -> None:
    here = ("--root", str(root))
    for wide in ("edit src/**", "edit a b"):
        error = "name one file to test, without *, as in `edit src/a.py`"
        assert usage_error(handrail("approvals", "test", wide, *here)) == error
    unquoted = handrail("approvals", "test", "git", "status", "now", *here)
    assert usage_error(unquoted) == "unknown tool git; write a call of several words as 'git status now'"
