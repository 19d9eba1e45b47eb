"""Tests approval rules: a pattern must match the whole call as compact JSON in the order of the schema."""

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail import Question, Workspace
from handrail.errors import RuleError
from handrail.model.approval import compact
from handrail.model.effects import Effect
from handrail.model.limits import Limits
from handrail.policy.rule_match import PlacedRule, decide
from handrail.policy.rule_store import RuleFile
from handrail.policy.rules import Rule, checked, exact_pattern, fits

LIMITS = Limits()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "config"


def match(rules: RuleFile, tool: str, params: dict[str, Any]) -> int | None:
    """Return the number of the rule that approves a call without paths."""
    question = Question("t", tool, params, Effect.WRITE, resolved=params)
    standings = [PlacedRule(rule, "user", number) for number, rule in rules.now()]
    decision = decide(standings, question, LIMITS)
    return decision.by[0].number if decision.allowed else None


def book(home: Path) -> RuleFile:
    return RuleFile.load(str(home), LIMITS)


def book_of(home: Path, text: str | bytes) -> RuleFile:
    home.mkdir(exist_ok=True)
    (home / "approvals.toml").write_bytes(text.encode() if isinstance(text, str) else text)
    return book(home)


def test_rule_catalogue_example_matches(home: Path) -> None:
    r"""`^{"path":".*\\.txt"}$` matches `{"path":"test.txt"}`."""
    rules = book(home)
    rules.add(Rule("read_file", r'^{"path":".*\.txt"}$'))
    assert match(rules, "read_file", {"path": "test.txt"}) == 1
    assert match(rules, "read_file", {"path": "test.md"}) is None
    assert match(rules, "create_file", {"path": "test.txt"}) is None


def test_rule_pattern_must_match_whole_call(home: Path) -> None:
    rules = book(home)
    rules.add(Rule("t", r'\{"path":"a"'))
    rules.add(Rule("t", r'"path":"a"\}'))
    assert match(rules, "t", {"path": "a"}) is None
    rules.add(Rule("t", r'\{"path":"a"\}|x'))
    assert match(rules, "t", {"path": "a"}) == 3


def test_compact_is_json_without_escaped_letters() -> None:
    params = {"path": "ü\n\"'", "list": [1, 2.5, None, True], "nested": {"a": {}}}
    assert compact(params) == '{"path":"ü\\n\\"\'","list":[1,2.5,null,true],"nested":{"a":{}}}'


def test_rule_sees_parameters_in_schema_order(root: Path) -> None:
    seen: list[list[str]] = []

    def ask(question: Question) -> bool:
        seen.append(list(question.params))
        return False

    with Workspace(str(root), approver=ask) as workspace:
        workspace._rules.add(Rule("file.write", r'\{"path":"a","content":"x"\}'))
        assert workspace.call("file", "file.write", {"content": "x", "path": "a"}).success
        assert seen == []
        assert not workspace.call("file", "file.write", {"content": "y", "path": "a"}).success
    assert seen == [["path", "content"]]


def test_rule_first_in_force_decides(home: Path) -> None:
    now = datetime.now(UTC)
    rules = book(home)
    rules.add(Rule("t", ".*", enabled=False))
    rules.add(Rule("t", ".*", expires_at=now - timedelta(seconds=1)))
    assert match(rules, "t", {}) is None
    rules.add(Rule("t", ".*", expires_at=now + timedelta(hours=1)))
    rules.add(Rule("t", ".*"))
    assert match(rules, "t", {}) == 3


def test_rule_file_written_by_user_is_read(home: Path) -> None:
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
    assert match(rules, "file.write", {"path": "notes/b.md", "content": "x"}) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[rule]\n", "cannot read {file}: Expected ']]' at the end of an array declaration"),
        (b"# \xff", "cannot read {file}: 'utf-8' codec can't decode byte 0xff"),
        (f"rule = {'[' * 5000}{']' * 5000}", "cannot read {file}: it is nested too deeply"),
        (f"[[rule]]\ntool{'.a' * 5000} = 1", "cannot read {file}: it is nested too deeply"),
        ("[[rules]]\n", "{file}: unknown key 'rules'; write each rule as a [[rule]] table"),
        ("rule = 5", "{file}: write each rule as a [[rule]] table"),
        ("rule = [5]", "{file}: write each rule as a [[rule]] table"),
        ("[rule]\ntool = 'a'", "{file}: write each rule as a [[rule]] table"),
        ("[[rule]]\n", "rule 1 in {file}: the key tool is missing"),
        ("[[rule]]\ntool = 'a'", "rule 1 in {file}: needs exactly one of calls, pattern and argv"),
        ("[[rule]]\ntool = 'a'\npattern = 'x'\nargv = ['x']", "rule 1 in {file}: needs exactly one of calls"),
        ("[[rule]]\ncalls = 'ls'\npattern = 'x'", "rule 1 in {file}: needs exactly one of calls"),
        ("[[rule]]\ncalls = 'ls'\ntool = 'a'", "rule 1 in {file}: calls needs no tool"),
        ("[[rule]]\ncalls = 'a; b'", "rule 1 in {file}: `a; b` can never match"),
        ("[[rule]]\ncalls = 'ls *'\nrejects = ['ls -l']", "rule 1 in {file}: must not match ls -l, but does"),
        ("[[rule]]\ncalls = 'edit a/**'\nmatches = ['b']", "rule 1 in {file}: must match b, but does not"),
        ("[[rule]]\ncalls = 'fetch a.b'\nmatches = ['b']", "rule 1 in {file}: must match b, but does not"),
        ("[[rule]]\ntool = 'a'\nargv = 'git'", "rule 1 in {file}: invalid value for argv: 'git'"),
        ("[[rule]]\ntool = 'a'\nargv = ['*', 'x']", "rule 1 in {file}: argv must begin with a program"),
        ("[[rule]]\ntool = 'a'\nargv = ['x', '...', 'y']", "rule 1 in {file}: only the last word of argv can be ..."),
        ("[[rule]]\ntool = '*'\npattern = 'x'", "rule 1 in {file}: only a deny rule can cover every tool"),
        ("[[rule]]\ntool = 'a'\npattern = 'x'\ndeny = 1", "rule 1 in {file}: invalid value for deny: 1"),
        ("[[rule]]\ntool = 'a'\nargv = ['x']\nmatches = ['x; y']", "rule 1 in {file}: must match x; y, but does not"),
        (
            "[[rule]]\ntool = 'a'\nargv = ['x', '...']\nrejects = ['x y']",
            "rule 1 in {file}: must not match x y, but does",
        ),
        ("[[rule]]\ntool = 1\npattern = ''", "rule 1 in {file}: invalid value for tool: 1"),
        ("[[rule]]\ntool = 'a'\npattern = ['x']", "rule 1 in {file}: invalid value for pattern: ['x']"),
        ("[[rule]]\ntool = 'a'\npattern = ''\nenabled = 'no'", "rule 1 in {file}: invalid value for enabled: 'no'"),
        ("[[rule]]\ntool = 'a'\npattern = ''\nmatches = 'x'", "rule 1 in {file}: invalid value for matches: 'x'"),
        ("[[rule]]\ntool = 'a'\npattern = ''\nrejects = [1]", "rule 1 in {file}: invalid value for rejects: [1]"),
        ("[[rule]]\ntool = 'a'\npattern = ''\nexpires_at = 5", "rule 1 in {file}: invalid value for expires_at: 5"),
        (
            "[[rule]]\ntool = 'a'\npattern = ''\nexpires_at = 2025-01-01",
            "rule 1 in {file}: invalid value for expires_at: datetime.date(2025, 1, 1)",
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
def test_rule_file_malformed_is_an_error(text: str | bytes, complaint: str, home: Path) -> None:
    with pytest.raises(RuleError) as raised:
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
def test_rule_slow_pattern_approves_nothing_and_ends(pattern: str, text: str, home: Path) -> None:
    rules = book(home)
    rules.add(Rule("t", rf'\{{"p":"{pattern}z"\}}'))
    started = time.process_time()
    assert match(rules, "t", {"p": text}) is None
    assert time.process_time() - started < 30  # seconds, not years


def test_rule_file_changes_apply_during_session(home: Path) -> None:
    session, asked_user = book(home), book(home)
    session.add(Rule("t", "a"))
    asked_user.add(Rule("t", ".*"))
    assert match(session, "t", {}) == 2
    asked_user.remove(2)
    assert match(session, "t", {}) is None
    asked_user.enable(1, enabled=False)
    session.add(Rule("t", "b"))  # does not bring back a rule that the user removed or disabled
    assert book(home).rules == [Rule("t", "a", enabled=False), Rule("t", "b")]
    (home / "approvals.toml").unlink()
    assert match(session, "t", {}) is None
    asked_user.add(Rule("t", ".*"))
    (home / "approvals.toml").write_text("half an edi")
    assert match(session, "t", {}) is None  # a file that cannot be read approves nothing


def test_rule_file_parallel_additions_are_all_kept(home: Path) -> None:
    books = [book(home) for _ in range(8)]
    threads = [
        threading.Thread(target=rules.add, args=(Rule("t", f"pattern {number}"),)) for number, rules in enumerate(books)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(rule.pattern for rule in book(home).rules) == [f"pattern {number}" for number in range(8)]


def test_rule_file_is_private(home: Path) -> None:
    book(home).add(Rule("t", "x"))
    assert (home / "approvals.toml").stat().st_mode & 0o077 == 0
    assert [path.name for path in home.iterdir()] == ["approvals.toml"]


def test_rule_file_failed_write_leaves_old_rules(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = book(home)
    rules.add(Rule("t", "x"))

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.rename", refuse)
    with pytest.raises(OSError, match="No space left"):
        rules.add(Rule("t", "y"))
    monkeypatch.undo()
    assert [path.name for path in home.iterdir()] == ["approvals.toml"]
    assert match(rules, "t", {}) is None
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
    call = compact({draw(text): draw(text)})
    matches, rejects = (call,), tuple(draw(st.lists(text.map("no".__add__), max_size=2)))
    tool, deny = draw(text.filter("*".__ne__)), draw(st.booleans())
    if draw(st.booleans()):
        return Rule(tool, argv=(draw(text.filter(lambda word: word not in ("", "*", "..."))), draw(text)), deny=deny)
    return Rule(tool, exact_pattern(call), draw(st.booleans()), draw(times), matches, rejects, deny=deny)


@settings(deadline=None, max_examples=60)
@given(rules=st.lists(rules_with_examples(), max_size=3, unique=True))
def test_rule_file_round_trips_any_rule(rules: list[Rule], tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("rules")
    kept = book(home)
    for rule in rules:
        kept.add(rule)
    assert book(home).rules == rules


@settings(deadline=None)
@given(params=st.dictionaries(text, values, max_size=4), other=st.dictionaries(text, values, max_size=4))
def test_exact_pattern_covers_only_its_call(params: dict[str, Any], other: dict[str, Any]) -> None:
    pattern = exact_pattern(compact(params))
    # checked() raises RuleError if an example does not hold.
    checked(Rule("t", pattern, matches=(compact(params),)), "it", LIMITS)
    if compact(other) != compact(params):
        checked(Rule("t", pattern, rejects=(compact(other), compact(params) + "\n")), "it", LIMITS)


def test_deny_rule_overrides_allow_rule(home: Path) -> None:
    rules = book(home)
    rules.add(Rule("t", ".*"))
    assert match(rules, "t", {"a": "x"}) == 1
    rules.add(Rule("*", r'\{"a":"x"\}', deny=True))
    standings = [PlacedRule(rule, "user", number) for number, rule in rules.now()]
    question = Question("t", "t", {"a": "x"}, Effect.WRITE, resolved={"a": "x"})
    decision = decide(standings, question, LIMITS)
    assert (decision.allowed, decision.by[0].name) == (False, "user rule 2")
    assert match(rules, "t", {"a": "y"}) == 1


@pytest.mark.parametrize(
    ("argv", "command", "denied"),
    [
        (("rm", "..."), "rm -rf x", True),
        (("rm", "..."), "/bin/rm x", True),
        (("rm", "..."), "git status && rm x", True),
        (("rm", "..."), "sh -c 'rm x'", True),
        (("rm", "..."), "find . -exec rm {} +", True),
        (("rm", "..."), "rm $x > y", True),
        (("rm", "..."), "A=1 sudo rm x", True),
        (("rm", "..."), "git rm x", False),
        (("git", "push", "..."), "git $x", True),
        (("git", "push", "..."), "git pull", False),
        (("/usr/bin/rm", "..."), "rm x", True),
    ],
)
def test_deny_rule_finds_argv_in_compound_commands(argv: tuple[str, ...], command: str, denied: bool) -> None:
    params = {"command": command}
    question = Question("t", "t", params, Effect.RUN, command=command, resolved=params)
    standing = PlacedRule(Rule("t", argv=argv, deny=True), "user", 1)
    assert decide([standing], question, LIMITS).allowed is (False if denied else None)


def test_deny_rule_checks_given_and_resolved_call() -> None:
    standing = PlacedRule(Rule("t", r'\{"path":"secret\.txt"\}', deny=True), "user", 1)
    for said, meant in (("secret.txt", "secret.txt"), ("./x/../secret.txt", "secret.txt"), ("secret.txt", "real.txt")):
        question = Question("t", "t", {"path": said}, Effect.WRITE, resolved={"path": meant})
        assert decide([standing], question, LIMITS).allowed is False
    left = Question("t", "t", {"path": "secret.txt"}, Effect.WRITE, resolved=None)
    assert decide([standing], left, LIMITS).allowed is False


def test_deny_rule_undecided_pattern_denies() -> None:
    standing = PlacedRule(Rule("t", r'\{"p":"(a|aa)+$z"\}', deny=True), "user", 1)
    question = Question("t", "t", {"p": "a" * 200}, Effect.WRITE, resolved={"p": "a" * 200})
    assert fits(standing.rule.pattern, question.given, LIMITS) is None
    assert decide([standing], question, LIMITS).allowed is False


def test_rule_file_damaged_keeps_only_deny_rules(home: Path) -> None:
    rules = book(home)
    rules.add(Rule("t", ".*"))
    rules.add(Rule("t", '.*"x".*', deny=True))
    (home / "approvals.toml").write_text("half an edi")
    assert [rule.deny for _, rule in rules.now()] == [True]


def test_rule_never_covers_path_outside_workspace() -> None:
    question = Question("t", "t", {"path": "../x"}, Effect.WRITE, resolved=None)
    decision = decide([PlacedRule(Rule("t", ".*"), "user", 1)], question, LIMITS)
    assert decision.allowed is None
    assert [why for _, why in decision.others] == ["a path leaves the workspace"]


def test_decision_says_why_other_rules_did_not_decide() -> None:
    now = datetime.now(UTC)
    rules = [
        Rule("other", ".*"),
        Rule("t", ".*", enabled=False),
        Rule("t", ".*", expires_at=now - timedelta(seconds=1)),
        Rule("t", "x"),
        Rule("t", argv=("git",)),
        Rule("t", ".*"),
        Rule("t", ".*b.*"),
        Rule("t", "no", deny=True),
    ]
    question = Question("t", "t", {"a": "b"}, Effect.WRITE, resolved={"a": "b"})
    decision = decide([PlacedRule(rule, "user", n) for n, rule in enumerate(rules, 1)], question, LIMITS)
    assert (decision.allowed, [each.number for each in decision.by]) == (True, [6])
    assert {standing.number: why for standing, why in decision.others} == {
        1: "it is for another tool",
        2: "it is disabled",
        3: "it has expired",
        4: "its pattern does not match",
        5: "the call runs no command",
        7: "user rule 6 already allows the call",
        8: "its pattern does not match",
    }
