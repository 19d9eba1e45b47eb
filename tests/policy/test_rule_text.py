"""Tests the short form of rules: what it covers in every dialect, its sentence, and why it is refused."""

import os
from pathlib import Path
from typing import Any

import pytest
from support.command_line import at_terminal, handrail, usage_error

from handrail import Keep, Verdict, Workspace
from handrail.errors import RuleError
from handrail.policy.rule_text import brief
from handrail.policy.rules import Rule, short_rule
from handrail.policy.suggest import keeps, kept_sentence
from handrail.surfaces.rule_trial import try_call

PATCH = "*** Begin Patch\n*** Add File: src/new.py\n+x\n*** End Patch\n"
COVERED = [
    ("edit src/**", "file", "file.write", {"path": "src/new.py", "content": "x"}),
    ("edit src/**", "file", "file.delete", {"path": "src/old.py"}),
    ("edit src/**", "context", "append_file", {"path": "./src/../src/old.py", "content": "x"}),
    ("edit src/**", "copilot", "create_directory", {"path": "src/deep/er"}),
    ("edit src/**", "codex", "apply_patch_freeform", {"patch": PATCH}),
    ("edit **", "gemini", "write_file", {"file_path": "{root}/any.txt", "content": "x"}),
    ("edit docs/*.md {src,lib}/**", "file", "file.write", {"path": "src/new.py", "content": "x"}),
    ("edit /memories/**", "claude", "memory", {"command": "create", "path": "/memories/a.md", "file_text": "x"}),
    ("git status *", "copilot", "run_in_terminal", {"command": "git status --short"}),
    ("git status *", "codex", "shell", {"command": "git status"}),
    ("git status", "gemini", "run_shell_command", {"command": "git status"}),
    ("npm run *", "bash", "bash", {"command": "npm run build -- --watch"}),
    ("run edit *", "codex", "shell", {"command": "edit x"}),
    ("pytest * -q", "codex", "shell", {"command": "pytest tests -q"}),
    ("fetch docs.python.org", "copilot", "fetch_webpage", {"url": "HTTPS://DOCS.Python.org/3/"}),
    ("fetch *.python.org", "copilot", "fetch_webpage", {"url": "http://docs.python.org/"}),
    ("fetch localhost:8080", "copilot", "fetch_webpage", {"url": "http://localhost:8080/x"}),
]


@pytest.fixture
def opened(root: Path) -> Any:
    (root / "src").mkdir()
    (root / "src/old.py").write_text("old\n")
    with Workspace(str(root)) as workspace:
        yield workspace


def decided(workspace: Workspace, rule: Rule, dialect: str, tool: str, params: dict[str, Any]) -> bool | None:
    given = {name: str(value).replace("{root}", workspace.root) for name, value in params.items()}
    question, failed = try_call(workspace, dialect, tool, given)
    assert question is not None, failed
    workspace._rules.session.rules = [rule]
    return workspace._rules.decide(question).allowed


@pytest.mark.parametrize(("text", "dialect", "tool", "params"), COVERED)
def test_short_rule_covers_tools_of_all_dialects(
    opened: Workspace, text: str, dialect: str, tool: str, params: dict[str, Any]
) -> None:
    assert decided(opened, short_rule(text), dialect, tool, params) is True
    assert decided(opened, short_rule("git log"), dialect, tool, params) is None
    assert decided(opened, short_rule(text)._replace(deny=True), dialect, tool, params) is False


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("edit **", "create, change and delete any workspace file"),
        ("edit src/**", "create, change and delete files below src/"),
        ("edit src/** tests/**", "create, change and delete files below src/ and tests/"),
        ("edit docs/*.md a", "create, change and delete files that match docs/*.md and a"),
        ("edit README.md", "create, change and delete README.md"),
        ("git status *", "run commands that begin with `git status`"),
        ("npm test", "run `npm test`, exactly so"),
        ("pytest * -q", "run `pytest * -q`, where * is one word"),
        ("fetch docs.python.org", "fetch pages from docs.python.org"),
        ("fetch *.python.org a.b", "fetch pages from every host below python.org and a.b"),
        ("fetch *", "fetch pages from every host"),
    ],
)
def test_short_rule_reads_as_sentence(text: str, sentence: str) -> None:
    assert short_rule(text).sentence == sentence


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("edit **", "edit any workspace file"),
        ("edit src/** tests/**", "edit files below src/ and tests/"),
        ("git status *", "run `git status …`"),
        ("make 'a, b'", "run `make 'a, b'`"),
        ("pytest * -q", "run `pytest * -q`"),
        ("fetch docs.python.org", "fetch pages from docs.python.org"),
    ],
)
def test_short_rule_in_few_words_says_what_it_allows(text: str, words: str) -> None:
    assert brief(text) == words


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("edit", "edit needs a path"),
        ("edit /etc/**", "relative to the workspace"),
        ("edit ~/x", "relative to the workspace"),
        ("edit src/../../x", "no tool changes files outside the workspace"),
        ("edit .git/**", ".git is guarded"),
        ("edit src/** {.vscode,x}/**", ".vscode is guarded"),
        ("edit src/[", "is not a glob: unclosed bracket"),
        ("edit 'src", "no closing quotation"),
        ("fetch", "fetch needs a host"),
        ("fetch https://docs.python.org/3", "name only the host"),
        ("fetch user@x.y", "name only the host"),
        ("fetch do*cs.org", "is not a host name"),
        ("git status; ls", "a rule names one command"),
        ("git status > x", "a rule names one command"),
        ("git status $(ls)", "a rule names one command"),
        ("npm run test:*", "* stands for whole words"),
        ("A=1 make", "it sets a variable"),
        ("* x", "begins with a program"),
        ("find . -name '*'", "cannot name a word that is *"),
        ("sh *", "do not show which programs"),
        ("source x", "do not show which programs"),
        ("git -c a=b status", "do not show which programs"),
        ("env A=1 make", "it sets A"),
        ("python -c *", "they may be code"),
        ("git grep -O *", "they may be code"),
        ("sqlite3 *", "they may be code"),
        ("psql *", "they may be code"),
        (" ", "it names no command"),
    ],
)
def test_short_rule_that_can_never_match_is_refused(text: str, reason: str) -> None:
    with pytest.raises(RuleError) as refused:
        short_rule(text)
    assert reason in str(refused.value)


SUGGESTED = [
    ("git status --short", "git status *"),
    ("npm run build", "npm run *"),
    ("pytest -q tests", "pytest *"),
    ("python -m pytest -x", "python -m pytest *"),
    ("python3 tools/make.py 1", "python3 tools/make.py *"),
    ("ls -la src", "ls *"),
    ("edit x", "run edit x *"),
    ("rm -rf build", "rm -rf build"),
    ("python -c 'print(1)'", "python -c 'print(1)'"),
    ("git grep -Oless x", "git grep -Oless x"),
    ("git status && ls", ""),
    ("sh x.sh", ""),
    ("echo x > y", ""),
]


@pytest.mark.parametrize(("command", "rule"), SUGGESTED)
def test_question_about_command_offers_its_first_words(opened: Workspace, command: str, rule: str) -> None:
    question, _ = try_call(opened, "codex", "shell", {"command": command})
    assert question is not None
    offered = keeps(question, opened.settings.limits)
    assert offered == {"session": Keep("session", rule), "always": Keep("project", rule)}


@pytest.mark.parametrize(
    ("path", "session", "always"),
    [
        ("src/a/b.py", "edit **", "edit src/**"),
        ("README.md", "edit **", "edit README.md"),
        (".github/x.yml", "edit **", "edit .github/x.yml"),
        ("my dir/x", "edit **", "edit 'my dir/**'"),
        ("a[b]/c", "edit **", "edit 'a\\[b\\]/**'"),
        ("x\ny", "", ""),
    ],
)
def test_question_about_edit_offers_all_edits_and_its_directory(
    opened: Workspace, path: str, session: str, always: str
) -> None:
    question, _ = try_call(opened, "file", "file.write", {"path": path, "content": "x"})
    assert question is not None
    offered = keeps(question, opened.settings.limits)
    assert (offered["session"].rule, offered["always"].rule) == (session, always)
    for keep in offered.values():
        assert kept_sentence(keep)


def test_question_about_guarded_file_offers_no_rule(opened: Workspace) -> None:
    question, _ = try_call(opened, "file", "file.write", {"path": ".git/hooks/x", "content": "x"})
    assert question is not None
    assert keeps(question, opened.settings.limits) == {}


def test_verdict_keeps_short_rule_for_all_tools(root: Path) -> None:
    asked: list[str] = []

    def ask(question: Any) -> Verdict:
        asked.append(question.tool)
        return Verdict.allow(remember=Keep("session", "edit notes/**"))

    with Workspace(str(root), approver=ask) as workspace:
        assert workspace.call("file", "file.write", {"path": "notes/a", "content": "x"}).success
        assert workspace.call("context", "create_file", {"path": "notes/b", "content": "x"}).success
        assert workspace.call("file", "file.delete", {"path": "notes/a"}).success
        assert asked == ["file.write"]
        assert workspace.call("file", "file.write", {"path": "a", "content": "x"}).success
    assert asked == ["file.write", "file.write"]


def test_approvals_add_takes_short_form_in_project(root: Path) -> None:
    here = ("--root", str(root))
    added = at_terminal("approvals", "add", "edit src/**", *here)
    assert added.stdout.startswith(
        "Added project rule 1: edit src/**\n"
        "  It allows the agent, in this project, to create, change and delete files below src/\n  in "
    )
    denied = handrail("approvals", "add", "fetch *", "--deny", "--scope", "user", *here)
    assert "It denies the agent, in all projects, to fetch pages from every host\n" in denied.stdout
    assert handrail("call", "file.write", "path=src/a", "content=x", *here).returncode == 0
    assert handrail("call", "file.write", "path=b", "content=x", *here).returncode == 3
    tested = handrail("approvals", "test", "file.write", "path=src/a", "content=y", *here).stdout
    assert tested == "Approved by project rule 1: edit src/**\n  not user rule 1: it is for other hosts\n"
    listed = handrail("approvals", "list", *here).stdout
    assert "  1. edit src/**  (on, used once, last " in listed
    assert usage_error(handrail("approvals", "add", "edit .git/**", *here)) == (
        "`.git/**` can never match: .git is guarded, so every change of it is asked about"
    )
    assert not os.path.exists(root / "b")
