"""Tests rules against tables of calls: those that a rule must cover, and those that it must not."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail import Workspace
from handrail.model.approval import Question
from handrail.policy.rules import exact_pattern, from_text
from handrail.surfaces.rule_trial import try_call

STATUS = '["git", "status", "..."]'
STATUS_PATTERN = r'\{"command":"git status.*"\}'
ANY_COMMAND = r'\{"command":".*"\}'
TESTS = '["pytest", "*", "-q"]'

COVERED = [
    # one simple command, by words
    (STATUS, "git status"),
    (STATUS, "git status --short"),
    (STATUS, "git 'status' -s"),
    (STATUS, 'git "status" --porcelain'),
    (STATUS, "git status # look"),
    (STATUS, "  git   status  \n"),
    (TESTS, "pytest tests/test_a.py -q"),
    ('["make"]', "make"),
    ('["echo", "..."]', "echo '$(rm -rf ~)' '`id`' ';' '&&' '>'"),
    ('["echo", "*"]', "echo 'a b; rm -rf ~'"),
    # several commands, each with the words of the rule
    (STATUS, "git status && git status -s"),
    (STATUS, "git status; git status"),
    (STATUS, "git status || git status --long"),
    (STATUS, "(git status)"),
    # one simple command, by pattern
    (STATUS_PATTERN, "git status"),
    (STATUS_PATTERN, "git status --short"),
    (ANY_COMMAND, "ls -l 'a b'"),
    (r'\{"command":"npm (test|run [a-z:]+)"\}', "npm run build:prod"),
    (r'\{"command":"echo [^"]*"(,"timeout_seconds":[0-9]+)?\}', "echo hi"),
]  # fmt: skip

NOT_COVERED = [
    # operators
    (STATUS, "git status; rm -rf ~"),
    (STATUS, "git status && rm -rf ~"),
    (STATUS, "git status || rm -rf ~"),
    (STATUS, "git status | sh"),
    (STATUS, "git status & rm -rf ~"),
    (STATUS, "git status\nrm -rf ~"),
    (STATUS, "git status\r\nrm -rf ~"),
    # the grammar reads these as blanks, no shell does
    (STATUS, "git status\r"),
    (STATUS, "git status\x0b-s"),
    (STATUS, "git status\x0c-s"),
    (STATUS, "git\rstatus"),
    (STATUS, "git status |& sh"),
    (STATUS, "{ git status; rm -rf ~; }"),
    (STATUS, "if git status; then rm -rf ~; fi"),
    (STATUS, "! git status && rm x"),
    (STATUS, "rm -rf ~ ; git status"),
    # redirections
    (STATUS, "git status > ~/.bashrc"),
    (STATUS, "git status >> x"),
    (STATUS, "git status < /etc/passwd"),
    (STATUS, "git status 2>&1"),
    (STATUS, "git status <<< x"),
    (STATUS, "git status <<EOF\nx\nEOF"),
    # substitutions and expansions
    (STATUS, "git status $(rm -rf ~)"),
    (STATUS, "git status `rm -rf ~`"),
    (STATUS, 'git status "$(rm -rf ~)"'),
    (STATUS, "git status <(rm -rf ~)"),
    (STATUS, "git status ${x:-$(rm)}"),
    (STATUS, "git status $HOME"),
    (STATUS, "git status ~"),
    (STATUS, "git status *"),
    (STATUS, "git status {a,b}"),
    (STATUS, "git status $'\\x24(id)'"),
    (STATUS, "git status $((1+1))"),
    (STATUS, "$x status"),
    # words whose meaning the shell changes
    (STATUS, "PATH=. git status"),
    (STATUS, "GIT_PAGER=x git status"),
    (STATUS, "export PATH=.; git status"),
    (STATUS, "env PATH=. git status"),
    (STATUS, "alias git=rm; git status"),
    (STATUS, "git() { rm -rf ~; }; git status"),
    (STATUS, "hash -p ./evil git; git status"),
    (STATUS, "for i in 1; do git status; done"),
    # other programs and other words
    (STATUS, "git -c core.pager=x status"),
    (STATUS, "git --exec-path=. status"),
    (STATUS, "git stash"),
    (STATUS, "git"),
    (STATUS, "GIT status"),
    (STATUS, "./git status"),
    (STATUS, "/tmp/git status"),
    (STATUS, "gitstatus"),
    (STATUS, "sudo git status"),
    (STATUS, "xargs git status"),
    (STATUS, "sh -c 'git status; rm -rf ~'"),
    (STATUS, "bash -c 'git status'"),
    (STATUS, "eval git status"),
    (STATUS, "find . -exec git status {} +"),
    (STATUS, "timeout 5 git status"),
    (STATUS, "git 'status; rm -rf ~'"),
    (STATUS, "git status '"),
    ('["git", "st", "..."]', "git st\\\natus"),
    (STATUS, "#git status\nrm -rf ~"),
    (TESTS, "pytest --pdbcls=evil:Evil -q"),
    (TESTS, "pytest a b -q"),
    (TESTS, "pytest -q"),
    ('["make"]', "make install"),
    # the same by pattern: it matches, but a pattern covers only one simple command
    (STATUS_PATTERN, "git status; rm -rf ~"),
    (STATUS_PATTERN, "git status && rm -rf ~"),
    (STATUS_PATTERN, "git status | sh"),
    (STATUS_PATTERN, "git status > ~/.bashrc"),
    (STATUS_PATTERN, "git status $(rm -rf ~)"),
    (STATUS_PATTERN, "git status `id`"),
    (STATUS_PATTERN, "git status\nrm -rf ~"),
    (STATUS_PATTERN, "git status $HOME"),
    (ANY_COMMAND, "A=1 ls"),
    (ANY_COMMAND, "ls *"),
    (ANY_COMMAND, "ls &"),
    (ANY_COMMAND, 'ls "$(id)"'),
    (r'\{"command":"git status', "git status"),
    (r'"command":"git status"', "git status"),
    # a quotation mark in the command does not end the JSON string
    (r'\{"command":"git status [a-z]*"\}', 'git status","x":"'),
    (r'\{"command":"git status [^"]*"\}', 'git status "; rm'),
]  # fmt: skip


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("table")
    patch = pytest.MonkeyPatch()
    for name in ("STATE", "CONFIG"):
        patch.setenv(f"HANDRAIL_{name}_DIR", str(tmp_path_factory.mktemp(name.lower())))
    for directory in ("src/sub", ".git/hooks", ".vscode", "vendored/.git", "notes", "secret"):
        (root / directory).mkdir(parents=True)
    (root / "src/a.txt").write_text("one\n")
    (root / "way").symlink_to("src")
    (root / "notes/way.md").symlink_to("../src/a.txt")
    (root / "sec").symlink_to("secret")
    (root / "hooks").symlink_to(".git/hooks")
    (root / "a.txt").write_text("one\n")
    with Workspace(str(root)) as opened:
        yield opened
    patch.undo()


def asked(workspace: Workspace, dialect: str, tool: str, params: dict[str, Any]) -> Question:
    question, result = try_call(workspace, dialect, tool, params)
    assert question is not None, result
    return question


def covers(workspace: Workspace, dialect: str, tool: str, params: dict[str, Any], rule: str) -> bool:
    workspace._rules.session.rules = [from_text(tool, rule, "it", workspace.settings.limits)]
    return workspace._rules.decide(asked(workspace, dialect, tool, params)).allowed is True


@pytest.mark.parametrize(("rule", "command"), COVERED)
def test_rule_covers_matching_command(workspace: Workspace, rule: str, command: str) -> None:
    assert covers(workspace, "copilot", "run_in_terminal", {"command": command}, rule)


@pytest.mark.parametrize(("rule", "command"), NOT_COVERED)
def test_rule_does_not_cover_other_command(workspace: Workspace, rule: str, command: str) -> None:
    assert not covers(workspace, "copilot", "run_in_terminal", {"command": command}, rule)


@pytest.mark.parametrize("command", [command for _, command in NOT_COVERED])
def test_exact_rule_covers_only_same_command(workspace: Workspace, command: str) -> None:
    params = {"command": command}
    exact = exact_pattern(json.dumps(params, separators=(",", ":"), ensure_ascii=False))
    assert covers(workspace, "copilot", "run_in_terminal", params, exact)
    assert not covers(workspace, "copilot", "run_in_terminal", {"command": command + " "}, exact)


def test_argv_rules_cover_compound_command_together(workspace: Workspace) -> None:
    texts = ('["ls", "..."]', STATUS, '["make", "*"]', '["make", "..."]')
    rules = [from_text("run_in_terminal", text, "it", workspace.settings.limits) for text in texts]
    workspace._rules.session.rules = rules
    both = asked(workspace, "copilot", "run_in_terminal", {"command": "make all && git status"})
    decision = workspace._rules.decide(both)
    assert (decision.allowed, [each.name for each in decision.by]) == (True, ["session rule 2", "session rule 3"])
    for command in ("make all && git status > x", "make all && git status && rm x", "make $x && git status"):
        question = asked(workspace, "copilot", "run_in_terminal", {"command": command})
        assert workspace._rules.decide(question).allowed is None


TXT = r'\{"path":"[^"]*\.txt","content":"[^"]*"\}'
IN_SRC = r'\{"path":"src/[^"/]+","content":"[^"]*"\}'
ANYTHING = r"(?s:.*)"
PATHS = [
    (TXT, "new.txt", True),
    (TXT, "./src/../new.txt", True),
    (TXT, "src/sub/new.txt", True),
    (TXT, "new.md", False),
    (TXT, ".git/new.txt", False),
    (TXT, ".GIT/hooks/new.txt", False),
    (TXT, ".Git/new.txt", False),
    (TXT, ".git /new.txt", False),
    (TXT, ".git./new.txt", False),
    (TXT, ".g\u200cit/new.txt", False),
    (TXT, "git~1/new.txt", False),
    (TXT, ".\uff47\uff49\uff54/new.txt", False),
    (TXT, "vendored/.git/new.txt", False),
    (TXT, "hooks/new.txt", False),
    (TXT, "src/../.git/hooks/new.txt", False),
    (TXT, ".vscode/new.txt", False),
    (TXT, ".VSCode/new.txt", False),
    (ANYTHING, ".handrail.toml", False),
    (ANYTHING, ".handrailignore", False),
    (ANYTHING, "src/.mcp.json", False),
    (IN_SRC, "src/new.py", True),
    (IN_SRC, "way/new.py", True),
    (IN_SRC, "src/../new.py", False),
    (IN_SRC, "src/sub/new.py", False),
    (IN_SRC, "src\\..\\new.py", False),
    (IN_SRC, 'src/new.py","content":"', False),
    (IN_SRC, "src/new.py\n", False),
    (r'\{"path":"way/.*', "way/new.py", False),
]


@pytest.mark.parametrize(("rule", "path", "expected"), PATHS)
def test_rule_matches_resolved_path(workspace: Workspace, rule: str, path: str, expected: bool) -> None:
    assert covers(workspace, "copilot", "create_file", {"path": path, "content": "x"}, rule) is expected


def test_rule_matches_absolute_path_as_relative(workspace: Workspace) -> None:
    params = {"path": f"{workspace.root}/src/new.py", "content": "x"}
    assert covers(workspace, "copilot", "create_file", params, IN_SRC)
    written = {"file_path": f"{workspace.root}/a.txt", "content": "x"}
    assert covers(workspace, "gemini", "write_file", written, r'\{"file_path":"a\.txt","content":"x"\}')


@pytest.mark.parametrize("path", ["../../x.txt", "/etc/x.txt", "src/../../x.txt"])
def test_path_outside_workspace_asks_nothing(workspace: Workspace, path: str) -> None:
    question, failed = try_call(workspace, "copilot", "create_file", {"path": path, "content": "x"})
    assert question is None
    assert failed.endswith("is outside working directory")


def test_exact_rule_does_not_cover_guarded_path(workspace: Workspace) -> None:
    params = {"path": ".git/hooks/pre-commit", "content": "x"}
    question = asked(workspace, "copilot", "create_file", params)
    assert question.meant is not None
    assert not covers(workspace, "copilot", "create_file", params, exact_pattern(question.meant))
    assert question.guarded == ".git"


def test_rule_does_not_cover_patch_of_guarded_path(workspace: Workspace) -> None:
    def patch(name: str) -> dict[str, str]:
        return {"patch": f"*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n"}

    assert covers(workspace, "codex", "apply_patch_freeform", patch("src/new"), ANYTHING)
    for name in (".git/hooks/x", "hooks/x", "SRC/../.git/x", ".claude/settings.json"):
        question, _ = try_call(workspace, "codex", "apply_patch_freeform", patch(name))
        workspace._rules.session.rules = [from_text("apply_patch_freeform", ANYTHING, "it", workspace.settings.limits)]
        assert question is None or workspace._rules.decide(question).allowed is None


NOTES = r'^\{"patch":"(?:[^"\\]|\\.)*","targets":\["notes/[^"/]+\.md"(?:,"notes/[^"/]+\.md")*\]\}$'
NAMED = r'\{"patch":"\*\*\* Begin Patch\\n\*\*\* (Add|Update) File: notes/[^"/\\]+\.md\\n(?:[^"\\]|\\.)*".*'
PATCHES = [
    (NOTES, "Add", "notes/new.md", True),
    (NOTES, "Add", "./src/../notes/new.md", True),
    (NOTES, "Add", '"notes/n\\145w.md"', True),
    (NOTES, "Update", "notes/way.md", False),
    (NOTES, "Add", "notes/sub/new.md", False),
    (NOTES, "Add", "src/new.md", False),
    (NOTES, "Add", 'src/new.md\n+"],"targets":["notes/new.md"]}', False),
    (NAMED + r'"targets":\["notes/.*', "Update", "notes/way.md", False),
    (r'\{"patch":"(?:[^"\\]|\\.)*"\}', "Add", "notes/new.md", False),
]


@pytest.mark.parametrize(("rule", "kind", "name", "expected"), PATCHES)
def test_rule_matches_patch_with_changed_paths(
    workspace: Workspace, rule: str, kind: str, name: str, expected: bool
) -> None:
    body = "@@\n-one\n+two" if kind == "Update" else "+x"
    patch = f"*** Begin Patch\n*** {kind} File: {name}\n{body}\n*** End Patch\n"
    assert covers(workspace, "codex", "apply_patch_freeform", {"patch": patch}, rule) is expected


def test_exact_rule_covers_patch_only_while_paths_resolve_same(workspace: Workspace) -> None:
    patch = {"patch": "*** Begin Patch\n*** Update File: notes/way.md\n@@\n-one\n+two\n*** End Patch\n"}
    exact = exact_pattern(asked(workspace, "codex", "apply_patch_json", patch).meant or "")
    assert covers(workspace, "codex", "apply_patch_json", patch, exact)
    link = Path(workspace.root, "notes/way.md")
    link.unlink()
    link.write_text("one\n")
    assert not covers(workspace, "codex", "apply_patch_json", patch, exact)
    link.unlink()
    link.symlink_to("../src/a.txt")


@pytest.mark.parametrize("name", ["sec/x", '"sec\\162et/x"', "./secret/x"])
def test_deny_rule_covers_every_spelling_of_path(workspace: Workspace, name: str) -> None:
    deny = from_text("any", ".*secret.*", "it", workspace.settings.limits)._replace(tool="*", deny=True)
    workspace._rules.session.rules = [deny]
    patch = {"patch": f"*** Begin Patch\n*** Add File: {name}\n+x\n*** End Patch\n"}
    assert workspace._rules.decide(asked(workspace, "codex", "apply_patch_json", patch)).allowed is False


def test_rule_does_not_cover_command_in_guarded_directory(workspace: Workspace) -> None:
    command = {"command": "ls", "workdir": "src"}
    assert covers(workspace, "codex", "shell", command, '["ls"]')
    assert covers(workspace, "codex", "shell", {**command, "workdir": "way"}, r'\{"command":"ls","workdir":"src"\}')
    assert not covers(workspace, "codex", "shell", {**command, "workdir": ".git/hooks"}, '["ls"]')


def test_terminal_input_covered_only_by_exact_rule(root: Path) -> None:
    with Workspace(str(root), approve="auto") as workspace:
        started = workspace.call("codex", "exec_command", {"session_id": "s", "cmd": "echo up; cat"})
        assert started.success
        limits, asking = workspace.settings.limits, list[Question]()
        from handrail.model.approval import Verdict
        from handrail.policy.policy import Policy

        def note(question: Question) -> Verdict:
            asking.append(question)
            return Verdict(False, "test")

        rules = workspace._rules.for_session()
        rules.session.rules = [
            from_text("write_stdin", text, "it", limits)
            for text in ('["ls", "..."]', r"(?s:.*)", r'^\{"session_id":"s","chars":"ls\\\\n"\}$')
        ]
        session = workspace._default._session
        session.approver = Policy("ask", rules, note)
        call = workspace.tools("codex").call
        assert not call("write_stdin", {"session_id": "s", "chars": "ls\n"}).success
        assert [question.command for question in asking] == ["ls\n"]
        meant = asking[0].meant
        assert meant is not None
        rules.session.rules.append(from_text("write_stdin", exact_pattern(meant), "it", limits))
        assert call("write_stdin", {"session_id": "s", "chars": "ls\n"}).success
        assert not call("write_stdin", {"session_id": "s", "chars": "ls\nrm x\n"}).success


FETCHED = [
    (r'\{"url":"https://example\.com/.*"\}', "https://example.com/a?b=c", True),
    (r'\{"url":"https://example\.com/.*"\}', "https://example.com.evil.example/a", False),
    (r'\{"url":"https://example\.com.*"\}', "http://example.com/", False),
    (r'\{"url":"https://[^/"]+/"\}', "https://example.com/\u2028x", False),
    (r'\{"url":"https://example\.com/.*"\}', "HTTPS://EXAMPLE\u3002com:443", True),
]


@pytest.mark.parametrize(("rule", "url", "expected"), FETCHED)
def test_rule_matches_fetched_url(workspace: Workspace, rule: str, url: str, expected: bool) -> None:
    workspace._rules.session.rules = [from_text("fetch_webpage", rule, "it", workspace.settings.limits)]
    question, _ = try_call(workspace, "copilot", "fetch_webpage", {"url": url})
    assert (question is not None and workspace._rules.decide(question).allowed is True) is expected


@pytest.mark.parametrize("host", ["evil.com", "EVIL.com", "evil\u3002com", "evil.com:80"])
def test_deny_rule_covers_every_spelling_of_host(workspace: Workspace, host: str) -> None:
    deny = from_text("fetch_webpage", r".*://evil\.com/.*", "it", workspace.settings.limits)
    workspace._rules.session.rules = [deny._replace(deny=True)]
    question = asked(workspace, "copilot", "fetch_webpage", {"url": f"http://{host}/"})
    assert workspace._rules.decide(question).allowed is False


def test_rule_tables_have_enough_cases() -> None:
    assert len(COVERED) + len(NOT_COVERED) >= 60
    assert len(COVERED) >= 15
