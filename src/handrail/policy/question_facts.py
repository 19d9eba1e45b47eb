"""Turns a question into JSON values and back, so that another process can show it and check rules against it."""

from typing import Any

from handrail.model.approval import Keep, Question, Verdict
from handrail.model.effects import Effect
from handrail.model.limits import Limits
from handrail.model.paths import stem_of
from handrail.model.rights import Rights
from handrail.ops.text.change_preview import change_diff
from handrail.policy.policy import rule_to_keep
from handrail.policy.rule_match import RuleMatcher, why_nothing_kept
from handrail.policy.suggest import keeps, kept_sentence

_SETS = ("bodies", "paths")
_LEFT_OUT = ("changes", "effects", "rights", *_SETS)


def question_facts(question: Question, limits: Limits) -> dict[str, Any]:
    """Return a question as JSON values: its fields, its finished changes as a diff, and the rules that it may keep."""
    facts = {name: value for name, value in question._asdict().items() if name not in _LEFT_OUT}
    facts |= {name: sorted(getattr(question, name)) for name in _SETS}
    kept = keeps(question, limits)
    return {
        **facts,
        "effects": question.effects.value,
        "rights": question.rights._asdict(),
        "risk": question.risk,
        "keeps": {answer: {"rule": keep.rule, "sentence": kept_sentence(keep)} for answer, keep in kept.items()},
        "why_nothing_kept": why_nothing_kept(question),
    }


def question_diff(question: Question) -> str:
    """Return the finished changes of a question as one diff, with names relative to the root."""
    changes = (change._replace(path=change.path.removeprefix(stem_of(question.root))) for change in question.changes)
    return "".join(map(change_diff, changes))


def question_of(facts: dict[str, Any]) -> Question:
    """Return the question without its changes: all that rules look at."""
    known: dict[str, Any] = {name: facts[name] for name in Question._fields if name in facts and name not in _LEFT_OUT}
    known |= {name: frozenset(facts[name]) for name in _SETS}
    rights = Rights(**{name: tuple(each) for name, each in facts["rights"].items()})
    known["targets"] = tuple(known["targets"])
    return Question(**known, effects=Effect(facts["effects"]), rights=rights)


def why_not_kept(question: Question, keep: Keep, limits: Limits) -> str:
    """Return why a rule cannot be kept for a question; empty if it can. Raises RuleError for a text that is no rule."""
    rule = rule_to_keep(question, Verdict(True, "user", always=True, keep=keep), limits)
    return RuleMatcher(question, limits).why_not(rule)
