"""Approval rules: a regular expression that the whole call must match, as compact JSON in the schema's order."""

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail import Question, Workspace
from handrail.limits import Limits
from handrail.policy.rules import BadRule, Rule, RuleBook, call_text, exact_pattern

LIMITS = Limits()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "config"


def book(home: Path) -> RuleBook:
    return RuleBook.load(str(home), LIMITS)


def book_of(home: Path, text: str | bytes) -> RuleBook:
    home.mkdir(exist_ok=True)
    (home / "approvals.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    return book(home)


def test_the_example_of_the_catalogue(home: Path) -> None:
    r"""`^{"path":".*\\.txt"}$` matches `{"path":"test.txt"}`."""
    rules = book(home)
    rules.add(Rule("read_file", r'^{"path":".*\.txt"}$'))
    assert rules.match("read_file", {"path": "test.txt"}) == 1
    assert rules.match("read_file", {"path": "test.md"}) is None
    assert rules.match("create_file", {"path": "test.txt"}) is None


def test_the_whole_call_must_match(home: Path) -> None:
    rules = book(home)
    rules.add(Rule("t", r'\{"path":"a"'))
    rules.add(Rule("t", r'"path":"a"\}'))
    assert rules.match("t", {"path": "a"}) is None
    rules.add(Rule("t", r'\{"path":"a"\}|x'))
    assert rules.match("t", {"path": "a"}) == 3


def test_calls_are_compact_json_and_keep_their_letters() -> None:
    params = {"path": "ü\n\"'", "list": [1, 2.5, None, True], "nested": {"a": {}}}
    assert call_text(params) == '{"path":"ü\\n\\"\'","list":[1,2.5,null,true],"nested":{"a":{}}}'


def test_rules_see_the_schemas_order_whatever_the_callers_was(root: Path) -> None:
    seen: list[list[str]] = []

    def ask(question: Question) -> bool:
        seen.append(list(question.params))
        return False

    with Workspace(str(root), asker=ask) as workspace:
        workspace.rules.add(Rule("file.write", r'\{"path":"a","content":"x"\}'))
        assert workspace.call("file", "file.write", {"content": "x", "path": "a"}).success
        assert seen == []
        assert not workspace.call("file", "file.write", {"content": "y", "path": "a"}).success
    assert seen == [["path", "content"]]


def test_the_first_rule_in_force_answers(home: Path) -> None:
    now = datetime.now(UTC)
    rules = book(home)
    rules.add(Rule("t", ".*", enabled=False))
    rules.add(Rule("t", ".*", expires_at=now - timedelta(seconds=1)))
    assert rules.match("t", {}) is None
    rules.add(Rule("t", ".*", expires_at=now + timedelta(hours=1)))
    rules.add(Rule("t", ".*"))
    assert rules.match("t", {}) == 3


def test_a_persons_file_is_understood(home: Path) -> None:
    rules = book_of(
        home,
        r"""
        # allow notes
        [[rule]]
        tool = "file.write"
        pattern = '^\{"path":"notes/[^"/]+\.md",.*$'
        expires_at = 2099-12-31T23:59:59
        matches = ['{"path":"notes/a.md","content":""}']
        rejects = ['{"path":"notes/../a.md","content":""}']

        [[rule]]
        tool = "file.delete"
        pattern = ".*"
        enabled = false
        expires_at = "2099-01-01T00:00:00+01:00"
        """,
    )
    first, second = rules.rules
    assert (first.enabled, first.expires_at) == (True, datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC))
    assert (second.enabled, second.expires_at) == (False, datetime(2098, 12, 31, 23, tzinfo=UTC))
    assert rules.match("file.write", {"path": "notes/b.md", "content": "x"}) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[rule]\n", "{file} cannot be read: Expected ']]' at the end of an array declaration"),
        (b"# \xff", "{file} cannot be read: 'utf-8' codec can't decode byte 0xff"),
        ("[[rules]]\n", "{file}: unknown key 'rules'; rules are [[rule]] tables"),
        ("rule = 5", "{file}: rules are [[rule]] tables"),
        ("rule = [5]", "{file}: rules are [[rule]] tables"),
        ("[rule]\ntool = 'a'", "{file}: rules are [[rule]] tables"),
        ("[[rule]]\n", "rule 1 in {file}: needs tool"),
        ("[[rule]]\ntool = 'a'", "rule 1 in {file}: needs pattern"),
        ("[[rule]]\ntool = 1\npattern = ''", "rule 1 in {file}: tool cannot be 1"),
        ("[[rule]]\ntool = 'a'\npattern = ['x']", "rule 1 in {file}: pattern cannot be ['x']"),
        ("[[rule]]\ntool = 'a'\npattern = ''\nenabled = 'no'", "rule 1 in {file}: enabled cannot be 'no'"),
        ("[[rule]]\ntool = 'a'\npattern = ''\nmatches = 'x'", "rule 1 in {file}: matches cannot be 'x'"),
        ("[[rule]]\ntool = 'a'\npattern = ''\nrejects = [1]", "rule 1 in {file}: rejects cannot be [1]"),
        ("[[rule]]\ntool = 'a'\npattern = ''\nexpires_at = 5", "rule 1 in {file}: expires_at cannot be 5"),
        (
            "[[rule]]\ntool = 'a'\npattern = ''\nexpires_at = 2025-01-01",
            "rule 1 in {file}: expires_at cannot be datetime.date(2025, 1, 1)",
        ),
        ("[[rule]]\ntool = 'a'\npattern = ''\nexpires_at = 'soon'", "rule 1 in {file}: not an ISO 8601 time: 'soon'"),
        ("[[rule]]\ntool = 'a'\npattern = ''\nexpire = 1", "rule 1 in {file}: unknown key 'expire'"),
        (
            "[[rule]]\ntool = 'a'\npattern = 'x'\n[[rule]]\ntool = 'a'\npattern = '('",
            "rule 2 in {file}: the pattern is not a valid regular expression: missing ) at position 1",
        ),
        ("[[rule]]\ntool = 'a'\npattern = 'x'\nmatches = ['y']", "rule 1 in {file}: must match y, but does not"),
        ("[[rule]]\ntool = 'a'\npattern = '.'\nrejects = ['y']", "rule 1 in {file}: must not match y, but does"),
    ],
)
def test_a_file_that_makes_no_sense_is_a_clear_error(text: str | bytes, complaint: str, home: Path) -> None:
    with pytest.raises(BadRule) as raised:
        book_of(home, text)
    assert str(raised.value).startswith(complaint.format(file=home / "approvals.toml"))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(a|aa)+$", "a" * 200),
        (r"(a|a?)+$", "a" * 200),
        (r"(x+x+)+y", "x" * 100_000),
        (r"(.*){1,30}[bc]", "a" * 200_000),
        (r".*(?R)?a?(?R)", "a" * 1000),
    ],
)
def test_an_evil_pattern_approves_nothing_and_hangs_nothing(pattern: str, text: str, home: Path) -> None:
    rules = book(home)
    rules.add(Rule("t", rf'\{{"p":"{pattern}z"\}}'))
    started = time.monotonic()
    assert rules.match("t", {"p": text}) is None
    assert time.monotonic() - started < 30  # seconds, not years


def test_rules_follow_the_file_while_a_session_runs(home: Path) -> None:
    session, person = book(home), book(home)
    session.add(Rule("t", "a"))
    person.add(Rule("t", ".*"))
    assert session.match("t", {}) == 2
    person.remove(2)
    assert session.match("t", {}) is None
    person.enable(1, enabled=False)
    session.add(Rule("t", "b"))  # does not bring back what the person removed or switched off
    assert book(home).rules == [Rule("t", "a", enabled=False), Rule("t", "b")]
    (home / "approvals.toml").unlink()
    assert session.match("t", {}) is None
    person.add(Rule("t", ".*"))
    (home / "approvals.toml").write_text("half an edi")
    assert session.match("t", {}) is None  # what makes no sense approves nothing


def test_rules_stored_at_once_are_all_kept(home: Path) -> None:
    books = [book(home) for _ in range(8)]
    threads = [
        threading.Thread(target=rules.add, args=(Rule("t", f"pattern {number}"),)) for number, rules in enumerate(books)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(rule.pattern for rule in book(home).rules) == [f"pattern {number}" for number in range(8)]


def test_only_the_person_can_read_the_rules(home: Path) -> None:
    book(home).add(Rule("t", "x"))
    assert (home / "approvals.toml").stat().st_mode & 0o077 == 0
    assert [path.name for path in home.iterdir()] == ["approvals.toml"]


def test_a_rule_that_cannot_be_written_leaves_no_trace(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = book(home)
    rules.add(Rule("t", "x"))

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.rename", refuse)
    with pytest.raises(OSError, match="No space left"):
        rules.add(Rule("t", "y"))
    monkeypatch.undo()
    assert [path.name for path in home.iterdir()] == ["approvals.toml"]
    assert rules.match("t", {}) is None
    assert rules.rules == [Rule("t", "x")]


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
times = st.none() | st.integers(-(2**31), 2**34).map(lambda seconds: datetime.fromtimestamp(seconds + 0.25, UTC))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def rules_with_examples(draw: st.DrawFn) -> Rule:
    params = {draw(text): draw(text)}
    matches, rejects = (call_text(params),), tuple(draw(st.lists(text.map("no".__add__), max_size=2)))
    return Rule(draw(text), exact_pattern(params), draw(st.booleans()), draw(times), matches, rejects)


@settings(deadline=None, max_examples=60)
@given(rules=st.lists(rules_with_examples(), max_size=3, unique=True))
def test_any_rule_comes_back_from_its_file(rules: list[Rule], tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("rules")
    kept = book(home)
    for rule in rules:
        kept.add(rule)
    assert book(home).rules == rules


@settings(deadline=None)
@given(params=st.dictionaries(text, values, max_size=4), other=st.dictionaries(text, values, max_size=4))
def test_an_exact_rule_covers_its_call_and_no_other(params: dict[str, Any], other: dict[str, Any]) -> None:
    rules = RuleBook("", LIMITS)
    pattern = exact_pattern(params)
    rules.checked(Rule("t", pattern, matches=(call_text(params),)), "it")
    if call_text(other) != call_text(params):
        rules.checked(Rule("t", pattern, rejects=(call_text(other), call_text(params) + "\n")), "it")
