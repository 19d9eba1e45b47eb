"""Tests `handrail approvals`: rules in a file that the user may also edit."""

import json
import os
import re
from pathlib import Path

import pytest
from support.command_line import USER, at_terminal, handrail, usage_error

PATTERN_A = r'^\{"path":"a\.txt".*'


@pytest.fixture
def file() -> Path:
    return Path(os.environ["HANDRAIL_CONFIG_DIR"]) / "approvals.toml"


def test_approvals_add_list_enable_and_remove(file: Path, root: Path) -> None:
    none = handrail("approvals", "list", "--root", str(root)).stdout
    assert none.startswith(f"No rules. User rules are stored in {file}, project rules in ")
    added = at_terminal("approvals", "add", *USER, "file.write", r'^\{"path":"a\.txt".*')
    means = f"  It allows the agent, in all projects, to call file.write with parameters that match {PATTERN_A}\n"
    assert (added.stdout, added.returncode) == (f"Added user rule 1: file.write {PATTERN_A}\n{means}  in {file}\n", 0)
    second = at_terminal("approvals", "add", *USER, "file.delete", ".*", "--expires-at", "2099-01-01T00:00:00+02:00")
    assert second.stdout.startswith("Added user rule 2: file.delete .*\n")
    words = at_terminal("approvals", "add", *USER, "shell", '["rm", "..."]', "--deny")
    means = '  It denies the agent, in all projects, to call shell with the words ["rm", "..."]\n'
    assert words.stdout == f'Added user rule 3: shell ["rm", "..."]\n{means}  in {file}\n'
    disabled = handrail("approvals", "disable", *USER, "1")
    assert disabled.stdout == f"Disabled user rule 1: file.write {PATTERN_A}\n  in {file}\n"
    assert handrail("approvals", "list").stdout == (
        f"user rules, in {file}:\n"
        '  1. file.write  ^\\{"path":"a\\.txt".*  (off, never used)\n'
        "  2. file.delete  .*  (on, until 2098-12-31T22:00:00+00:00, never used)\n"
        '  3. shell  ["rm", "..."]  (deny, on, never used)\n'
    )
    assert at_terminal("approvals", "enable", *USER, "1").stdout.startswith("Enabled user rule 1: ")
    common = {"scope": "user", "matches": [], "rejects": [], "enabled": True, "used": 0, "last_used": None}
    listed = json.loads(handrail("approvals", "list", "--json").stdout)
    assert [each.pop("sentence")[:10] for each in listed] == ["call file.", "call file.", "call shell"]
    assert listed == [
        {**common, "number": 1, "tool": "file.write", "pattern": '^\\{"path":"a\\.txt".*', "deny": False,
         "expires_at": None},
        {**common, "number": 2, "tool": "file.delete", "pattern": ".*", "deny": False,
         "expires_at": "2098-12-31T22:00:00+00:00"},
        {**common, "number": 3, "tool": "shell", "argv": ["rm", "..."], "deny": True, "expires_at": None},
    ]  # fmt: skip
    removed = handrail("approvals", "remove", *USER, "1")
    assert removed.stdout == f"Removed user rule 1: file.write {PATTERN_A}\n  in {file}\n"
    assert handrail("approvals", "list").stdout.startswith(f"user rules, in {file}:\n  1. file.delete  .*")


def test_approvals_add_same_rule_twice_keeps_one(file: Path) -> None:
    assert at_terminal("approvals", "add", *USER, "file.delete", "x").stdout.startswith(
        "Added user rule 1: file.delete x\n"
    )
    assert at_terminal("approvals", "add", *USER, "file.delete", "x").stdout.startswith(
        "Added user rule 1: file.delete x\n"
    )
    assert handrail("approvals", "list").stdout == f"user rules, in {file}:\n  1. file.delete  x  (on, never used)\n"


def test_approvals_remove_takes_several_numbers(file: Path) -> None:
    for pattern in ("a", "b", "c", "d"):
        at_terminal("approvals", "add", *USER, "file.delete", pattern)
    removed = handrail("approvals", "remove", *USER, "2", "1", "4", "2")
    assert re.findall(r"Removed user rule (\d: .*)", removed.stdout) == [
        "4: file.delete d",
        "2: file.delete b",
        "1: file.delete a",
    ]
    assert handrail("approvals", "list").stdout == f"user rules, in {file}:\n  1. file.delete  c  (on, never used)\n"


def test_approvals_remove_with_one_unknown_or_refused_number_removes_none(file: Path) -> None:
    at_terminal("approvals", "add", *USER, "shell", "x", "--deny")
    at_terminal("approvals", "add", *USER, "file.delete", "y")
    before = file.read_text()
    assert "rule 7 not found" in handrail("approvals", "remove", *USER, "2", "7").stderr
    assert handrail("approvals", "remove", *USER, "2", "1").returncode != 0  # a deny rule, and no terminal
    assert file.read_text() == before


def test_approvals_project_rule_holds_only_in_project(root: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    here, there = ("--root", str(root)), ("--root", str(tmp_path / "other"))
    assert at_terminal("approvals", "add", "file.write", ".*", "--scope", "project", *here).returncode == 0
    listed = handrail("approvals", "list", *here).stdout
    assert re.fullmatch(r"project rules, in /.*/approvals\.toml:\n  1\. file\.write .* \(on, never used\)\n", listed)
    assert handrail("approvals", "list", *there).stdout.startswith("No rules.")
    assert handrail("call", "file.write", "path=a", "content=x", *here).returncode == 0
    assert handrail("call", "file.write", "path=a", "content=x", *there).returncode == 3
    assert not list((tmp_path / "other").iterdir())
    assert [path.name for path in root.iterdir()] == ["a"]  # the rules of the project are not stored in the project
    removed = handrail("approvals", "remove", "1", "--scope", "project", *here)
    assert re.fullmatch(
        r"Removed project rule 1: file\.write \.\*\n  in /.*/state/.*/approvals\.toml\n", removed.stdout
    )


def test_approvals_list_shows_use_counts(root: Path) -> None:
    here = ("--root", str(root))
    at_terminal("approvals", "add", *USER, "file.write", r'\{"path":"[ab]","content":"x"\}')
    at_terminal("approvals", "add", *USER, "file.delete", ".*", "--deny")
    for name in ("a", "b", "c"):
        handrail("call", "file.write", f"path={name}", "content=x", *here)
    handrail("call", "file.delete", "path=a", *here)
    first, second = handrail("approvals", "list", *here).stdout.split("\n")[1:3]
    assert re.fullmatch(r".*\(on, used 2 times, last 20\d\d-.*\+00:00\)", first)
    assert re.fullmatch(r".*\(deny, on, used once, last 20\d\d-.*\+00:00\)", second)
    facts = json.loads(handrail("approvals", "list", "--json", *here).stdout)
    assert [each["used"] for each in facts] == [2, 1]


def test_use_counts_damaged_never_fail_call(root: Path) -> None:
    at_terminal("approvals", "add", *USER, "file.write", ".*")
    counts = Path(os.environ["HANDRAIL_STATE_DIR"]) / "approvals.json"
    counts.parent.mkdir(parents=True, exist_ok=True)
    for damage in ("half", "[]", '{"x": 1}', '{"x": [1, "yesterday"]}'):
        counts.write_text(damage)
        done = handrail("call", "file.write", "path=a", f"content={damage}", "--root", str(root))
        assert (done.returncode, done.stderr) == (0, "")
    counts.unlink()
    counts.mkdir()
    assert handrail("call", "file.write", "path=a", "content=y", "--root", str(root)).returncode == 0
    assert "(on, never used)" in handrail("approvals", "list", "--root", str(root)).stdout


def test_approvals_test_decides_without_making_call(root: Path) -> None:
    here = ("--root", str(root))
    pattern = r'\{"path":"a\.txt","content":"[^"]*"\}'
    at_terminal("approvals", "add", *USER, "file.write", pattern)
    at_terminal("approvals", "add", *USER, "file.delete", ".*")
    yes = handrail("approvals", "test", "file.write", '{"path": "./a.txt", "content": "x"}', *here)
    assert (yes.stdout, yes.returncode) == (
        f"Approved by user rule 1: {pattern}\n  not user rule 2: it is for another tool\n",
        0,
    )
    any_order = handrail("approvals", "test", "file.write", '{"content": "x", "path": "a.txt"}', *here)
    assert any_order.returncode == 0
    no = handrail("approvals", "test", "file.write", '{"path": "b.txt", "content": "x"}', *here)
    assert no.returncode == 3
    assert no.stdout == (
        "No rule decides this call: it would need approval\n"
        "  not user rule 1: its pattern does not match\n"
        "  not user rule 2: it is for another tool\n"
    )
    (root / "a.txt").write_text("x")
    at_terminal("approvals", "add", *USER, "*", '.*"a.txt".*', "--deny")
    denied = handrail("approvals", "test", "file.delete", '{"path": "a.txt"}', *here)
    assert (denied.stdout, denied.returncode) == ('Forbidden by user rule 3: .*"a.txt".*\n', 3)
    as_json = handrail("approvals", "test", "file.write", '{"path": "b", "content": "x"}', "--json", *here)
    assert json.loads(as_json.stdout) == {
        "decision": "No rule decides this call: it would need approval",
        "by": [],
        "others": [
            {"rule": "user rule 3", "why_not": "its pattern does not match"},
            {"rule": "user rule 1", "why_not": "its pattern does not match"},
            {"rule": "user rule 2", "why_not": "it is for another tool"},
        ],
    }
    assert [path.name for path in root.iterdir()] == ["a.txt"]


def test_approvals_test_names_calls_that_are_not_asked(root: Path) -> None:
    here = ("--root", str(root))
    missing = handrail("approvals", "test", "file.delete", '{"path": "a.txt"}', *here)
    assert (missing.stdout, missing.returncode) == (
        "The call would fail before any question: 'a.txt' does not exist\n",
        3,
    )
    outside = handrail(
        "approvals", "test", "create_file", '{"path": "../a", "content": ""}', "--dialect", "copilot", *here
    )
    assert outside.stdout == "The call would fail before any question: Path '../a' is outside working directory\n"
    reading = handrail("approvals", "test", "file.list", "{}", *here)
    assert (reading.stdout, reading.returncode) == ("The call would need no approval\n", 3)
    unknown = handrail("approvals", "test", "no.tool", "{}", *here)
    assert unknown.returncode == 3
    guarded = at_terminal("approvals", "add", *USER, "file.write", ".*")
    assert guarded.returncode == 0
    hook = handrail("approvals", "test", "file.write", '{"path": ".git/hooks/x", "content": ""}', *here)
    assert hook.stdout == (
        "The call would need approval under every policy: the call reaches into .git, which is guarded\n"
        "  not user rule 1: the call reaches into .git, which is guarded\n"
    )


def test_approvals_rule_allows_call_until_disabled(root: Path) -> None:
    at_terminal("approvals", "add", *USER, "file.write", r'\{"path":"[ab]\.txt","content":"x"\}')
    write = ("call", "file.write", "content=x", "--root", str(root))
    assert handrail(*write, "path=a.txt").returncode == 0
    assert handrail(*write, "path=c.txt").returncode == 3
    handrail("approvals", "disable", *USER, "1")
    assert handrail(*write, "path=b.txt").returncode == 3
    assert [path.name for path in root.iterdir()] == ["a.txt"]


def test_approvals_add_unknown_tool_is_refused(file: Path) -> None:
    said = "unknown tool file.wirte: no dialect has it; write a rule of several words as 'file.wirte .*'"
    assert usage_error(handrail("approvals", "add", *USER, "file.wirte", ".*")) == said
    assert not file.exists()
    for tool in ("file.write", "undo"):
        assert at_terminal("approvals", "add", *USER, tool, ".*").returncode == 0


def test_approvals_add_checks_examples(file: Path) -> None:
    good = '{"path":"a.txt"}'
    outside = '{"path":"../a.txt"}'
    pattern = r'\{"path":"[a-z]+\.txt"\}'
    done = at_terminal("approvals", "add", *USER, "file.delete", pattern, "--match", good, "--reject", outside)
    assert done.returncode == 0
    (kept,) = json.loads(handrail("approvals", "list", "--json").stdout)
    assert (kept["matches"], kept["rejects"]) == ([good], [outside])
    assert usage_error(handrail("approvals", "add", *USER, "file.delete", ".*", "--reject", outside)) == (
        f"the rule: must not match {outside}, but does"
    )
    assert usage_error(handrail("approvals", "add", *USER, "file.delete", "x", "--match", good)) == (
        f"the rule: must match {good}, but does not"
    )
    assert len(json.loads(handrail("approvals", "list", "--json").stdout)) == 1


def test_approvals_add_for_hours_expires(file: Path, root: Path) -> None:
    (root / "x").write_text("x")
    test = ("approvals", "test", "file.delete", '{"path": "x"}', "--root", str(root))
    at_terminal("approvals", "add", *USER, "file.delete", ".*", "--expires-at", "2020-01-01")
    assert "  1. file.delete  .*  (expired, until 20" in handrail("approvals", "list").stdout
    assert handrail(*test).stdout.endswith("  not user rule 1: it has expired\n")
    at_terminal("approvals", "add", *USER, "file.delete", ".*", "--for", "1.5h")
    assert handrail(*test).stdout.startswith("Approved by user rule 2: .*\n")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("add", "t", "("), "the rule: the pattern is not a valid regular expression: missing )"),
        (("add", "t", "(" * 5000 + ")" * 5000), "the rule: the pattern is not a valid regular expression: maximum rec"),
        (("add", "t", "a{1000}{1000}"), "the rule: the pattern is too long, or repeats too much"),
        (("add", "t", "(a{ 1000}){1000}"), "the rule: the pattern is too long, or repeats too much"),
        (("add", "t", "a{00099999999999999}"), "the rule: the pattern is too long, or repeats too much"),
        (("add", "t", "x" * 30_000), "the rule: the pattern is too long, or repeats too much"),
        (("add", "t", os.fsdecode(b"\xff")), "the rule: the pattern is not a valid regular expression: 'utf-8' codec"),
        (("add", "t", "x", "--expires-at", "tomorrow"), "not an ISO 8601 time: 'tomorrow'"),
        (("add", "t", "x", "--expires-at", "0001-01-01T00:00:00+23:00"), "not an ISO 8601 time: '0001-01-01T"),
        (("add", "t", "x", "--for", "1e300"), "--for 1e300: not a time above zero"),
        (("add", "t", "x", "--for", "nan"), "--for nan: not a time above zero"),
        (("add", "t", "x", "--for", "-1"), "--for -1: not a time above zero, such as 8h or 7d"),
        (("add", "t", "x", "--for", "0"), "--for 0: not a time above zero, such as 8h or 7d"),
        (("add", "t", "x", "--for", "9" * 30), f"--for {'9' * 30}: the expiry date is out of range"),
        (("add", "fetch localhost:99999"), "`localhost:99999`: there is no port 99999; ports are 1 to 65535"),
        (
            ("add", "edti src/**"),
            "`edti src/**` can never match: unknown kind of rule edti; did you mean `edit src/**`?",
        ),
        (
            ("add", "Edit src/**"),
            "`Edit src/**` can never match: unknown kind of rule Edit; did you mean `edit src/**`?",
        ),
        (("add", "write src/**"), "`write src/**` can never match: unknown kind of rule write; did you mean `edit src"),
        (("add", "read src/**"), "`read src/**` can never match: reading needs no rule, because it never asks"),
        (("add", "*", "x"), "the rule: only a deny rule can cover every tool"),
        (("add", "t", "[1]"), "the rule: invalid value for argv: [1]"),
        (("add", "t", "[" * 5000), "the rule: not a JSON list: "),
        (("add", "t", "[x"), "the rule: not a JSON list: "),
        (("add", "t", '["*"]'), "the rule: argv must begin with a program"),
        (("add", "t", ""), "the rule: needs exactly one of calls, pattern and argv"),
        (("add", "t", "x", "--scope", "session"), "Invalid value for '--scope': "),
        (("remove", "1"), "rule 1 not found"),
        (("enable", "0"), "rule 0 not found"),
        (("disable", "-1"), ""),
        (("remove", "one"), "rule `one` not found in "),
        (("test", "t", "{"), "the parameters are not valid JSON: "),
        (("test", "t", "[]"), "the parameters must be a JSON object"),
    ],
)
def test_approvals_bad_arguments_are_usage_errors(arguments: tuple[str, ...], complaint: str, file: Path) -> None:
    assert usage_error(handrail("approvals", *arguments)).startswith(complaint)
    assert not file.exists()


def test_approvals_malformed_file_is_named_with_reason(file: Path, root: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("[[rule]]\ntool = \n")
    for command in (("approvals", "list"), ("call", "file.list", "--root", str(root))):
        assert usage_error(handrail(*command)) == f"cannot read {file}: Invalid value (at line 2, column 8)"


def test_approvals_list_escapes_terminal_controls(file: Path) -> None:
    at_terminal("approvals", "add", *USER, "file.write", "a\x1b.2Jb\u202ec")
    listed = handrail("approvals", "list").stdout
    assert listed == f"user rules, in {file}:\n  1. file.write  a\\x1b.2Jb\\u202ec  (on, never used)\n"
    assert json.loads(handrail("approvals", "list", "--json").stdout)[0]["pattern"] == "a\x1b.2Jb\u202ec"


def test_approvals_add_right_is_kept_shown_and_checked(file: Path) -> None:
    added = at_terminal("approvals", "add", *USER, "npm install *", "--right", "network registry.test")
    assert ", with network registry.test\n" in added.stdout
    assert 'rights = ["network registry.test"]' in file.read_text()
    assert "(on, with network registry.test, never used)" in handrail("approvals", "list").stdout
    wrong = at_terminal("approvals", "add", *USER, "npm ci", "--right", "internet")
    assert wrong.returncode == 2
    assert "is not a right" in wrong.stdout + wrong.stderr


def test_approvals_add_help_shows_each_example_on_its_line() -> None:
    shown = handrail("approvals", "add", "--help").stdout
    assert "\\b" not in shown
    assert '\n    "npm test"                exactly this command\n' in shown


def test_approvals_add_for_days_names_the_expiry(root: Path) -> None:
    made = at_terminal("approvals", "add", "git status *", "--for", "7d", "--root", str(root))
    (rule,) = json.loads(handrail("approvals", "list", "--json", "--root", str(root)).stdout)
    assert f"in this project, until {rule['expires_at']}, to run commands" in str(made)


@pytest.mark.parametrize("named", ["src", "src/", "a.txt src"])
@pytest.mark.parametrize("more", [(), ("--deny",), USER])
def test_approvals_add_edit_of_directory_is_refused(root: Path, named: str, more: tuple[str, ...]) -> None:
    (root / "src").mkdir()
    done = at_terminal("approvals", "add", f"edit {named}", *more, "--root", str(root))
    directory = named.rsplit(maxsplit=1)[-1]
    said = f"{directory} is a directory: the rule covers no file in it; did you mean 'edit src/**'?"
    assert usage_error(done) == said
    assert at_terminal("approvals", "add", "edit src/** new", *more, "--root", str(root)).returncode == 0


def test_approvals_rules_are_named_by_text(root: Path) -> None:
    here = ("--root", str(root))
    for rule in (
        ("git status *",),
        ("git push *", "--deny"),
        ("file.delete", "x"),
        ("make",),
        ("make", "--sandbox=strict"),
    ):
        assert at_terminal("approvals", "add", *rule, *here).returncode == 0
    assert "Disabled project rule 1: git status *\n" in handrail("approvals", "disable", "git status *", *here).stdout
    assert "Enabled project rule 1: git status *\n" in at_terminal("approvals", "enable", "git status *", *here).stdout
    wrong = usage_error(handrail("approvals", "remove", "git statu *", "make", *here))
    assert re.fullmatch(r"rule `git statu \*` not found in /.*/approvals\.toml; did you mean git status \*\?", wrong)
    twice = usage_error(handrail("approvals", "remove", "make", *here))
    assert twice == "several rules are `make`; name one by its number in `handrail approvals list`"
    guarded = handrail("approvals", "remove", "git status *", "git push *", *here)
    assert "approvals remove of a deny rule weakens approval" in usage_error(guarded)
    assert at_terminal("approvals", "remove", "file.delete x", "git status *", "git push *", *here).returncode == 0
    assert [each["calls"] for each in json.loads(handrail("approvals", "list", "--json", *here).stdout)] == ["make"] * 2
