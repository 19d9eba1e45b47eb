"""Words a question for the page, with the same sentences as the terminal's question."""

import json
from typing import Any

from handrail.errors import RuleError
from handrail.model.approval import Keep, Question
from handrail.model.limits import Limits
from handrail.ops.text.display import one_line, visible
from handrail.policy.question_facts import question_of, why_not_kept
from handrail.policy.suggest import kept_sentence
from handrail.surfaces.approval_text import SCOPE_WORDS, named_facts, whole

_VALUE = 20_000
"""The most characters of a parameter on a card; the command and the diff are shown in full."""
_LINE = 2000


def question_card(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what a card shows of a question. Every text is visible: nothing hides, nothing moves."""
    question, view = question_of(facts), whole()
    keeps = {
        answer: {
            "rule": visible(each["rule"]),
            "sentence": f"{SCOPE_WORDS[scope]}: {one_line(each['sentence'], _LINE)}",
        }
        for answer, each in facts["keeps"].items()
        if (scope := {"session": "session", "always": "project"}[answer])
    }
    return {
        "root": one_line(question.root, _LINE),
        "dialect": one_line(question.dialect, 100),
        "tool": one_line(question.tool, 100),
        "risk": one_line(str(facts["risk"]), 40),
        "command": visible(question.command),
        "terminal": one_line(question.terminal, 200),
        "facts": [[name, visible(value)] for name, value in named_facts(question, view)],
        "careful": bool(question.guarded or question.doubt),
        "params": [[one_line(name, 200), _shown(question, name, value)] for name, value in question.params.items()],
        "targets": [one_line(each, _LINE) for each in question.targets[:100]],
        "keeps": keeps,
        "why_nothing_kept": one_line(facts["why_nothing_kept"], _LINE),
    }


def _shown(question: Question, name: str, value: Any) -> str:
    """Return a parameter; the content of a file only as its size, because the diff shows it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if name in question.bodies and isinstance(value, str):
        return f"<{len(text.encode(errors='replace'))} bytes>"
    shown = visible(text[:_VALUE])
    return shown if len(text) <= _VALUE else f"{shown}… ({len(text)} characters)"


def rule_sentence(facts: dict[str, Any], rule: str, limits: Limits) -> tuple[bool, str]:
    """Return whether a rule that the user types covers the question, and what it allows or why it does not."""
    keep = Keep("project", rule.strip())
    try:
        why = why_not_kept(question_of(facts), keep, limits)
    except (RuleError, ValueError, TypeError) as error:
        return False, visible(str(error))
    return (False, visible(why)) if why else (True, f"allow the agent to {visible(kept_sentence(keep))}")
