"""Tests rules that grant more rights than the sandbox gives, and how a question shows these."""

import pytest

from handrail import Question
from handrail.errors import RuleError
from handrail.model.effects import Effect
from handrail.model.limits import Limits
from handrail.model.rights import Rights, parse_rights
from handrail.ops.asked_rights import rights_by_rule
from handrail.policy.rule_match import PlacedRule, decide
from handrail.policy.rules import Rule, checked, from_entry, to_entry
from handrail.policy.suggest import keeps
from handrail.surfaces.approval_text import happening, keep_lines, keep_names, whole

LIMITS = Limits()


def asking(rights: Rights, command: str = "npm install x", guarded: str = "") -> Question:
    meant = {"command": command}
    return Question(
        "codex-2026", "exec_command", meant, Effect.RUN, command=command, resolved=meant, rights=rights, guarded=guarded
    )


@pytest.mark.parametrize(
    ("asked", "named", "granted"),
    [
        (["network a.test"], ["network a.test"], ["network a.test"]),
        (["network x.a.test"], ["network *.a.test"], ["network x.a.test"]),
        (["network *"], ["network a.test", "network b.test"], ["network a.test", "network b.test"]),
        (["network *"], ["network *"], ["network *"]),
        (["network a.test"], ["network *"], ["network a.test"]),
        (["network a.test:22"], ["network a.test"], None),
        (["network a.test"], ["network b.test"], None),
        (["network *"], ["read /srv"], None),
        (["read /srv/a"], ["read /srv"], ["read /srv/a"]),
        (["read /srv/a"], ["write /srv"], ["read /srv/a"]),
        (["write /srv/a"], ["read /srv"], None),
        (["write /srv-evil"], ["write /srv"], None),
        (["write /srv/../etc"], ["write /srv"], None),
        (["read /srv", "network a.test"], ["read /srv"], None),
        (["read /srv"], [], None),
    ],
)
def test_rule_grants_only_rights_that_it_names(asked: list[str], named: list[str], granted: list[str] | None) -> None:
    found = rights_by_rule(parse_rights(asked), parse_rights(named))
    assert found == (None if granted is None else parse_rights(granted))
    rule = Rule("exec_command", argv=("npm", "install", "..."), rights=tuple(named))
    decision = decide([PlacedRule(rule, "user", 1)], asking(parse_rights(asked)), LIMITS)
    assert (decision.allowed, decision.rights) == (None if granted is None else True, found)


def test_rule_never_grants_a_guarded_name() -> None:
    rule = Rule("exec_command", argv=("npm", "install", "..."), rights=("network *", "write /srv"))
    question = asking(Rights(guarded=(".vscode",)), guarded=".vscode")
    assert decide([PlacedRule(rule, "user", 1)], question, LIMITS).allowed is None
    assert rights_by_rule(question.rights, parse_rights(rule.rights)) is None


@pytest.mark.parametrize(
    "right", ["network", "network ", "network http://a.test", "network 127.1", "read srv", "write", "run x", "", "*"]
)
def test_rule_with_unknown_right_is_an_error(right: str) -> None:
    with pytest.raises(RuleError, match="the rule: "):
        checked(Rule("exec_command", ".*", rights=(right,)), "the rule", LIMITS)


def test_deny_rule_with_rights_is_an_error() -> None:
    with pytest.raises(RuleError, match="grants no rights"):
        checked(Rule("exec_command", ".*", deny=True, rights=("network *",)), "the rule", LIMITS)


def test_rule_with_rights_survives_its_file() -> None:
    rule = Rule("exec_command", argv=("npm", "ci"), rights=("network a.test", "read /srv"))
    assert from_entry(to_entry(rule), "the rule", LIMITS) == rule


def test_deny_rule_covers_command_with_rights() -> None:
    rule = Rule("exec_command", argv=("npm", "..."), deny=True)
    assert decide([PlacedRule(rule, "user", 1)], asking(Rights(("*",))), LIMITS).allowed is False


def test_question_shows_rights_whole_and_in_the_rule_to_keep() -> None:
    long = f"/srv/{'x' * 300}"
    question = asking(Rights(("*", "a.test"), (long,), ("/srv/w\x1b[2J",)))
    shown = f"network (every public host), network a.test, read {long}, write /srv/w\\x1b[2J"
    assert f"More rights, for this command only: {shown}" in happening(question, whole())
    sentences = keep_lines(question, keeps(question, LIMITS), whole())
    assert all(f", with {shown}" in each for each in sentences.values())
    assert set(sentences) == {"session", "always"}
    names = keep_names(question, keeps(question, LIMITS), whole())
    assert all(each.endswith(f", with {shown}") for each in names.values())


def test_question_with_network_right_does_not_say_without_network() -> None:
    host, directory = (asking(each)._replace(sandbox="strict") for each in (Rights(("a.test",)), Rights((), ("/srv",))))
    assert "Sandbox: strict, with network for this command only" in happening(host, whole())
    assert "Sandbox: strict, without network" in happening(directory, whole())
