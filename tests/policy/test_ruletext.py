"""Tests that Handrail edits one rule and keeps everything else that the user wrote into the file."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import at_terminal, usage_error

from handrail.model.limits import Limits
from handrail.policy.rule_store import RuleFile
from handrail.policy.rules import BadRule, Rule, to_toml

TEXT = """\
# My rules. Think twice.

# notes are harmless
[[rule]]
pattern = '.*notes.*'   # any of them
tool = "file.write"

# [[rule]]
# tool = "file.delete"

  [["rule"]]  # this is for tests
  tool = 'shell'
  argv = [
    "npm",  # not yarn
    "test",
  ]
  enabled = true  # for now
# the last one
[[rule]]
tool = "file.delete"
deny = true
pattern = '''
#[[rule]] no more'''

# the end
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "approvals.toml").write_text(TEXT)
    return tmp_path


def text(home: Path) -> str:
    return (home / "approvals.toml").read_text()


def book(home: Path) -> RuleFile:
    return RuleFile.load(str(home), Limits())


def test_rule_file_add_appends_rule(home: Path) -> None:
    rule = Rule("file.read", "x")
    assert (book(home).add(rule), book(home).add(rule)) == (4, 4)
    assert text(home) == f"{TEXT}\n{to_toml(rule)}"
    book(home).remove(4)
    assert text(home).startswith(TEXT[: TEXT.index("\n# the end")])


def test_rule_file_enable_edits_in_place(home: Path) -> None:
    book(home).enable(2, enabled=True)
    assert text(home) == TEXT
    book(home).enable(2, enabled=False)
    book(home).enable(1, enabled=False)
    off = TEXT.replace("enabled = true  # for", "enabled = false  # for")
    assert text(home) == off.replace("harmless\n[[rule]]\n", "harmless\n[[rule]]\nenabled = false\n")
    book(home).enable(1, enabled=True)
    book(home).enable(2, enabled=True)
    assert text(home) == TEXT.replace("harmless\n[[rule]]\n", "harmless\n[[rule]]\nenabled = true\n")


def test_rule_file_remove_takes_only_comment_above(home: Path) -> None:
    begin, end = TEXT.index("# notes"), TEXT.index("# [[rule]]")
    book(home).remove(1)
    assert text(home) == TEXT[:begin] + TEXT[end:]
    book(home).remove(1)
    assert text(home) == TEXT[:begin] + TEXT[end : TEXT.index('  [["rule"]]')] + TEXT[TEXT.index("# the last") :]


def test_rule_file_without_rule_tables_is_not_edited(home: Path) -> None:
    odd = "# mine\n[[rule]]\ntool = 'file.write'\npattern = '''\n[[rule]]\nx'''\n"
    (home / "approvals.toml").write_text(odd)
    with pytest.raises(BadRule, match="is written in a way that only its writer can change"):
        book(home).remove(1)
    assert text(home) == odd
    inline = "# mine\nrule = [{tool = 'file.write', pattern = 'x'}]\n"
    (home / "approvals.toml").write_text(inline)
    mine = book(home)
    for change in (lambda: mine.add(Rule("a", "b")), lambda: mine.remove(1), lambda: mine.enable(1, enabled=False)):
        with pytest.raises(BadRule, match=r"use \[\[rule\]\] tables"):
            change()
    assert (text(home), mine.rules) == (inline, [Rule("file.write", "x")])


def test_rule_file_last_rule_can_be_removed(tmp_path: Path) -> None:
    mine = book(tmp_path)
    mine.add(Rule("a", "b"))
    mine.remove(1)
    assert text(tmp_path) == ""
    assert mine.add(Rule("a", "c")) == 1


def test_approvals_command_keeps_comments(root: Path) -> None:
    home = Path(os.environ["HANDRAIL_CONFIG_DIR"])
    home.mkdir(parents=True)
    (home / "approvals.toml").write_text(TEXT)
    for arguments in (("disable", "2"), ("enable", "2"), ("add", "file.list", "x"), ("remove", "4"), ("remove", "1")):
        assert at_terminal("approvals", *arguments, "--root", str(root)).returncode == 0
    assert [line for line in TEXT.split("\n") if "#" in line and "notes" not in line and "any of" not in line] == [
        line for line in text(home).split("\n") if "#" in line
    ]
    (home / "approvals.toml").write_text("rule = [{tool = 'file.write', pattern = 'x'}]\n")
    for arguments in (("add", "file.list", "x"), ("remove", "1"), ("disable", "1")):
        assert "only its writer can change" in usage_error(at_terminal("approvals", *arguments))


comments = st.lists(st.sampled_from(["# one", "", "  # [[rule]]", "# tool = 'x'"]), max_size=3).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_rule_file_any_edit_changes_only_its_rule(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("rules")
    rules = [Rule(f"t{n}", f"{n}\n[[rule]]\u2028") for n in range(data.draw(st.integers(1, 4)))]
    written = "".join(data.draw(comments) + to_toml(rule) for rule in rules) + data.draw(comments)
    (home / "approvals.toml").write_text(written)
    number, mine = data.draw(st.integers(1, len(rules))), book(home)
    change = data.draw(st.sampled_from(["add", "remove", "disable"]))
    if change == "add":
        mine.add(Rule("new", "new"))
        wanted = [*rules, Rule("new", "new")]
        assert text(home).startswith(written.rstrip("\n"))
    elif change == "remove":
        mine.remove(number)
        wanted = [*rules[: number - 1], *rules[number:]]
    else:
        mine.enable(number, enabled=False)
        wanted = [rule._replace(enabled=rule is not rules[number - 1]) for rule in rules]
        assert text(home).replace("false", "true") == written
    assert book(home).rules == mine.rules == wanted
