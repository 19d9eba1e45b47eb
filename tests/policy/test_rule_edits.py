"""Checks that the comments and the layout of a rule file survive when Handrail changes a rule."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import USER, at_terminal

from handrail.errors import RuleError
from handrail.model.limits import Limits
from handrail.ops.toml_edit import add_element
from handrail.policy.rule_store import RuleFile
from handrail.policy.rules import Rule, to_entry

TEXT = """\
# My rules. Think twice.

# notes are harmless
[[rule]]
pattern = '.*notes.*'   # any of them
tool = "file.write"

# [[rule]]
# tool = "file.delete"

  [[rule]]  # this is for tests
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


def to_toml(rule: Rule) -> str:
    return add_element("", "rule", to_entry(rule))


def book(home: Path) -> RuleFile:
    return RuleFile.load(str(home), Limits())


def test_rule_file_add_appends_rule(home: Path) -> None:
    rule = Rule("file.read", "x")
    assert (book(home).add(rule), book(home).add(rule)) == (4, 4)
    assert text(home) == f"{TEXT}\n{to_toml(rule)}"
    book(home).remove(4)
    assert text(home).startswith(TEXT[: TEXT.index("\n# the end")])


def test_enable_edits_the_value_or_adds_it_after_the_last_key(home: Path) -> None:
    book(home).enable(2, enabled=True)
    assert text(home) == TEXT
    book(home).enable(2, enabled=False)
    book(home).enable(1, enabled=False)
    off = TEXT.replace("enabled = true  # for", "enabled = false  # for")
    first = 'tool = "file.write"\n'
    assert text(home) == off.replace(first, f"{first}enabled = false\n")
    book(home).enable(1, enabled=True)
    book(home).enable(2, enabled=True)
    assert text(home) == TEXT.replace(first, f"{first}enabled = true\n")


def test_rule_file_remove_takes_only_comment_above(home: Path) -> None:
    begin, end = TEXT.index("# notes"), TEXT.index("# [[rule]]")
    book(home).remove(1)
    assert text(home) == TEXT[:begin] + TEXT[end:]
    book(home).remove(1)
    assert text(home) == TEXT[:begin] + TEXT[end : TEXT.index("  [[rule]]")] + TEXT[TEXT.index("# the last") :]


def test_string_that_looks_like_a_table_stays_a_string(home: Path) -> None:
    (home / "approvals.toml").write_text("# mine\n[[rule]]\ntool = 'file.write'\npattern = '''\n[[rule]]\nx'''\n")
    book(home).enable(1, enabled=False)
    assert text(home).endswith("x'''\nenabled = false\n")
    book(home).remove(1)
    assert text(home) == ""


def test_rules_in_an_inline_array_are_edited_in_place(home: Path) -> None:
    (home / "approvals.toml").write_text("# mine\nrule = [{tool = 'file.write', pattern = 'x'}]  # all\n")
    mine = book(home)
    assert mine.add(Rule("a", "b")) == 2
    mine.enable(1, enabled=False)
    assert text(home) == (
        "# mine\nrule = [{tool = 'file.write', pattern = 'x', enabled = false}, "
        '{tool = "a", pattern = "b", enabled = true}]  # all\n'
    )
    mine.remove(1)
    assert text(home) == '# mine\nrule = [{tool = "a", pattern = "b", enabled = true}]  # all\n'
    assert book(home).rules == mine.rules == [Rule("a", "b")]


def test_reading_rules_does_not_import_tomlkit(home: Path) -> None:
    read = "from handrail.policy.rule_store import RuleFile; from handrail.model.limits import Limits"
    program = f"import sys; {read}; RuleFile.load({str(home)!r}, Limits()); sys.exit('tomlkit' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_edit_that_would_lose_a_rule_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.ops.toml_edit.add_element", lambda text, key, entry: text)
    mine = book(home)
    with pytest.raises(
        RuleError, match=r"cannot edit .*approvals\.toml automatically: write each rule as a \[\[rule\]\]"
    ):
        mine.add(Rule("a", "b"))
    assert (text(home), len(mine.rules)) == (TEXT, 3)


@pytest.mark.parametrize(
    "hostile",
    [
        f"rule = {'[' * 5000}{']' * 5000}\n",
        f"{'.'.join('a' * 3000)} = 1\n",
        f"[[rule]]\ntool = 'x'\npattern = 'y'\nexpires_at = {'9' * 5000}\n",
    ],
    ids=["nesting", "dotted key", "number"],
)
def test_hostile_file_is_refused_before_tomlkit_reads_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, hostile: str
) -> None:
    mine = book(home)
    (home / "approvals.toml").write_text(hostile)
    monkeypatch.setattr("tomlkit.parse", lambda text: pytest.fail("tomlkit read it"))
    for change in (lambda: mine.add(Rule("a", "b")), lambda: mine.remove(1), lambda: mine.enable(1, enabled=False)):
        with pytest.raises(RuleError):
            change()
    assert text(home) == hostile


@pytest.mark.parametrize(
    "pattern", ["\x00\x7f\x1b", 'a"b\\c', "\u2028\U0001f600", "'''", "line\nline\r\n\t"], ids=ascii
)
def test_rule_with_odd_characters_is_stored_exactly(tmp_path: Path, pattern: str) -> None:
    rule = Rule("a", re.escape(pattern), matches=(pattern,))
    book(tmp_path).add(rule)
    assert book(tmp_path).rules == [rule]


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
        assert at_terminal("approvals", *arguments, *USER, "--root", str(root)).returncode == 0
    assert [line for line in TEXT.split("\n") if "#" in line and "notes" not in line and "any of" not in line] == [
        line for line in text(home).split("\n") if "#" in line
    ]


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
