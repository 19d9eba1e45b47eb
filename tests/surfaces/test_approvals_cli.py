"""`handrail approvals`: rules, kept in one file that a person may also write."""

import json
import os
from pathlib import Path

import pytest
from command import handrail, usage_error

PATTERN = r'^\{"path":"[a-z]+\.txt"'


@pytest.fixture
def file() -> Path:
    return Path(os.environ["HANDRAIL_CONFIG_DIR"]) / "approvals.toml"


def test_rules_are_added_listed_switched_and_removed(file: Path) -> None:
    assert handrail("approvals", "list").stdout == f"No rules. They live in {file}\n"
    added = handrail("approvals", "add", "file.write", r'^\{"path":"a\.txt".*')
    assert (added.stdout, added.returncode) == ('Added rule 1: file.write ^\\{"path":"a\\.txt".*\n', 0)
    second = handrail("approvals", "add", "file.delete", ".*", "--expires-at", "2099-01-01T00:00:00+02:00")
    assert second.stdout == "Added rule 2: file.delete .*\n"
    assert handrail("approvals", "disable", "1").stdout == 'Disabled rule 1: file.write ^\\{"path":"a\\.txt".*\n'
    assert handrail("approvals", "list").stdout == (
        '1. file.write  ^\\{"path":"a\\.txt".*  (off)\n2. file.delete  .*  (on, until 2098-12-31T22:00:00+00:00)\n'
    )
    assert handrail("approvals", "enable", "1").stdout.startswith("Enabled rule 1: ")
    assert json.loads(handrail("approvals", "list", "--json").stdout) == [
        {"number": 1, "tool": "file.write", "pattern": '^\\{"path":"a\\.txt".*', "enabled": True, "expires_at": None,
         "matches": [], "rejects": []},
        {"number": 2, "tool": "file.delete", "pattern": ".*", "enabled": True,
         "expires_at": "2098-12-31T22:00:00+00:00", "matches": [], "rejects": []},
    ]  # fmt: skip
    assert handrail("approvals", "remove", "1").stdout == 'Removed rule 1: file.write ^\\{"path":"a\\.txt".*\n'
    assert handrail("approvals", "list").stdout.startswith("1. file.delete  .*")


def test_the_same_rule_is_kept_once() -> None:
    assert handrail("approvals", "add", "file.delete", "x").stdout == "Added rule 1: file.delete x\n"
    assert handrail("approvals", "add", "file.delete", "x").stdout == "Added rule 1: file.delete x\n"
    assert handrail("approvals", "list").stdout == "1. file.delete  x  (on)\n"


def test_a_rule_can_be_tried_without_calling(file: Path) -> None:
    handrail("approvals", "add", "file.write", r'\{"path":"a\.txt","content":"[^"]*"\}')
    yes = handrail("approvals", "test", "file.write", '{"path": "a.txt", "content": "x"}')
    assert (yes.stdout, yes.returncode) == ("Approved by rule 1\n", 0)
    any_order = handrail("approvals", "test", "file.write", '{"content": "x", "path": "a.txt"}')
    assert (any_order.stdout, any_order.returncode) == ("Approved by rule 1\n", 0)
    no = handrail("approvals", "test", "file.write", '{"path": "b.txt", "content": "x"}')
    assert (no.stdout, no.returncode) == ("No rule approves this call: it would be asked\n", 3)
    other = handrail("approvals", "test", "file.delete", '{"path": "a.txt"}')
    assert other.returncode == 3
    unknown = handrail("approvals", "test", "no.tool", "{}")
    assert unknown.returncode == 3


def test_a_rule_lets_the_call_pass_until_it_is_switched_off(root: Path) -> None:
    handrail("approvals", "add", "file.write", r'\{"path":"[ab]\.txt","content":"x"\}')
    write = ("call", "file.write", "content=x", "--root", str(root))
    assert handrail(*write, "path=a.txt").returncode == 0
    assert handrail(*write, "path=c.txt").returncode == 3
    handrail("approvals", "disable", "1")
    assert handrail(*write, "path=b.txt").returncode == 3
    assert [path.name for path in root.iterdir()] == ["a.txt"]


def test_examples_are_checked_when_a_rule_is_added(file: Path) -> None:
    good = '{"path":"a.txt"}'
    outside = '{"path":"../a.txt"}'
    pattern = r'\{"path":"[a-z]+\.txt"\}'
    done = handrail("approvals", "add", "file.delete", pattern, "--match", good, "--reject", outside)
    assert done.returncode == 0
    (kept,) = json.loads(handrail("approvals", "list", "--json").stdout)
    assert (kept["matches"], kept["rejects"]) == ([good], [outside])
    assert usage_error(handrail("approvals", "add", "file.delete", ".*", "--reject", outside)) == (
        f"the rule: must not match {outside}, but does"
    )
    assert usage_error(handrail("approvals", "add", "file.delete", "x", "--match", good)) == (
        f"the rule: must match {good}, but does not"
    )
    assert len(json.loads(handrail("approvals", "list", "--json").stdout)) == 1


def test_a_rule_may_live_for_some_hours(file: Path) -> None:
    handrail("approvals", "add", "file.delete", ".*", "--for", "0")
    assert handrail("approvals", "list").stdout.startswith("1. file.delete  .*  (expired, until 20")
    assert handrail("approvals", "test", "file.delete", '{"path": "x"}').returncode == 3
    handrail("approvals", "add", "file.delete", ".*", "--for", "1.5")
    assert handrail("approvals", "test", "file.delete", '{"path": "x"}').stdout == "Approved by rule 2\n"


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
        (("add", "t", "x", "--for", "1e300"), "--for 1e+300 is not a number of hours that a calendar can hold"),
        (("add", "t", "x", "--for", "nan"), "--for nan is not a number of hours that a calendar can hold"),
        (("add", "t", "x", "--for", "-1"), "Invalid value for '--for': "),
        (("remove", "1"), "there is no rule 1"),
        (("enable", "0"), "there is no rule 0"),
        (("disable", "-1"), ""),
        (("remove", "one"), "Invalid value for 'NUMBER': 'one' is not a valid integer."),
        (("test", "t", "{"), "the parameters are not valid JSON: "),
        (("test", "t", "[]"), "the parameters must be a JSON object"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(arguments: tuple[str, ...], complaint: str, file: Path) -> None:
    assert usage_error(handrail("approvals", *arguments)).startswith(complaint)
    assert not file.exists()


def test_a_malformed_file_is_named_with_the_reason(file: Path, root: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("[[rule]]\ntool = \n")
    for command in (("approvals", "list"), ("call", "file.list", "--root", str(root))):
        assert usage_error(handrail(*command)) == f"{file} cannot be read: Invalid value (at line 2, column 8)"


def test_a_pattern_cannot_play_with_the_terminal(file: Path) -> None:
    handrail("approvals", "add", "file.write", "a\x1b.2Jb\u202ec")
    assert handrail("approvals", "list").stdout == "1. file.write  a\\x1b.2Jb\\u202ec  (on)\n"
    assert json.loads(handrail("approvals", "list", "--json").stdout)[0]["pattern"] == "a\x1b.2Jb\u202ec"
