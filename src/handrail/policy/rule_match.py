"""Which rules cover a call, and why the others do not.

A pattern alone would approve nearly everything that is hostile: `../../x`, `.GIT/hooks`, `git status; rm -rf ~`. So
paths are matched as the places that they mean, nothing beneath a guarded name is ever approved by a rule, and of
commands only what a parser is sure about.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from handrail.model.approval import Question
from handrail.model.limits import Limits
from handrail.policy.rules import ANY_TOOL, ONE, REST, Rule, exact_pattern, fits, words_fit
from handrail.settings import SANDBOX

if TYPE_CHECKING:
    from handrail.ops.shell.command_programs import CommandLine
    from handrail.ops.shell.started import Argv

_PLAIN_WORD = re.compile(r"[\w./+-]*")
_WHOLE_WORD = r"(?<![\w.+-]){}(?![\w.+/-])"


class PlacedRule(NamedTuple):
    """A rule, and where it stands."""

    rule: Rule
    scope: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.scope} rule {self.number}"


class Decision(NamedTuple):
    allowed: bool | None
    """None: no rule decides."""
    by: tuple[PlacedRule, ...] = ()
    others: tuple[tuple[PlacedRule, str], ...] = ()
    """The rules that did not decide, and why not."""
    doubt: str = ""
    """Why nothing but a person can approve it."""


def decide(standings: Iterable[PlacedRule], question: Question, limits: Limits) -> Decision:
    """Denying rules before allowing ones; the words of several rules may together cover a compound command."""
    matcher, others, words = RuleMatcher(question, limits), list[tuple[PlacedRule, str]](), list[PlacedRule]()
    ordered = sorted(standings, key=lambda standing: not standing.rule.deny)
    doubt = why_always_asked(question) or next(filter(None, map(matcher.doubt, ordered)), "")
    allowing: PlacedRule | None = None
    for each in ordered:
        why = matcher.why_not(each.rule)
        if not why and each.rule.deny:
            return Decision(False, (each,), tuple(others))
        why = why or doubt
        if allowing is not None:
            why = why or f"{allowing.name} came first"
        elif not why:
            allowing = each
            continue
        elif each.rule.argv and not each.rule.deny and not matcher.why_not_in_force(each.rule):
            words.append(each)
        others.append((each, why))
    if allowing is not None:
        return Decision(True, (allowing,), tuple(others))
    together = tuple(words) if not doubt and matcher.covered_together([each.rule for each in words]) else ()
    if together:
        return Decision(True, together, tuple(pair for pair in others if pair[0] not in together))
    return Decision(None, (), tuple(others), doubt)


def why_always_asked(question: Question) -> str:
    """Why no rule and no policy can approve this call; empty where one could."""
    if question.doubt:
        return question.doubt
    if question.resolved is None:
        return "a path leaves the workspace"
    return f"it reaches into {question.guarded}, which is guarded" if question.guarded else ""


class RuleMatcher:
    """One call, held against rules."""

    def __init__(self, question: Question, limits: Limits) -> None:
        self._question, self._limits = question, limits

    def why_not(self, rule: Rule) -> str:
        """Why a rule says nothing about this call; empty: it covers it."""
        idle = self.why_not_in_force(rule)
        if idle:
            return idle
        return self._why_not_denied(rule) if rule.deny else self._why_not_allowed(rule)

    def why_not_in_force(self, rule: Rule) -> str:
        if rule.tool != self._question.tool and not (rule.deny and rule.tool == ANY_TOOL):
            return "it is for another tool"
        if not rule.enabled:
            return "it is switched off"
        if rule.expired:
            return "it has expired"
        weakest, level = rule.sandbox, self._question.sandbox
        weaker = weakest and level and not rule.deny and SANDBOX.index(level) < SANDBOX.index(weakest)
        return f"it was given for sandbox {weakest}, not {level}" if weaker else ""

    def doubt(self, standing: PlacedRule) -> str:
        """Why a rule that forbids words may be about this call, although they are not found in it."""
        rule = standing.rule
        if not (rule.deny and rule.argv) or self.why_not_in_force(rule):
            return ""
        if not (self._line.unknown or self._line.code or self._may_be_started(rule)):
            return ""
        return f"it may run what {standing.name} forbids: what it runs cannot be told from its text"

    def _may_be_started(self, rule: Rule) -> bool:
        """Whether its words stand where a program may take them for a command: `prlimit rm x`, `PAGER=rm less`."""
        from handrail.ops.shell.program_kinds import may_start, takes_data  # noqa: PLC0415  only where a command is judged
        from handrail.ops.shell.wrappers import is_followed  # noqa: PLC0415  the same

        wanted = (_last_name(rule.argv[0]), *rule.argv[1:])
        programs = [each for each in self._line.commands if each[0] and not is_followed(_last_name(each[0]))]
        started = [inner for each in programs for inner in may_start(each)]
        if any(words_fit(wanted, (_last_name(first), *rest), unsure=True) for first, *rest in started if first):
            return True
        texts = [word for word, *_ in started if word and not _PLAIN_WORD.fullmatch(word)]
        if not all(map(takes_data, programs)):
            texts += self._line.texts
        named = [re.compile(_WHOLE_WORD.format(re.escape(word))) for word in wanted if word not in (ONE, REST)]
        return bool(named) and any(all(word.search(text) for word in named) for text in texts)

    def _why_not_denied(self, rule: Rule) -> str:
        """Here doubt covers: both forms of the call, a pattern that takes too long, an argument that is not known."""
        if rule.argv:
            wanted = (_last_name(rule.argv[0]), *rule.argv[1:])
            found = [form for command in self._line.commands for form in _without_options(command)]
            return "" if any(words_fit(wanted, each, unsure=True) for each in found) else "no command is of its words"
        forms = {self._question.given, self._question.meant or ""}
        denied = any(fits(rule.pattern, form, self._limits) is not False for form in forms if form)
        return "" if denied else "its pattern does not match"

    def _why_not_allowed(self, rule: Rule) -> str:
        question = self._question
        if question.meant is None or question.guarded:
            return why_always_asked(question)
        if rule.pattern == exact_pattern(question.meant):
            return ""
        if question.terminal:
            return "only a rule for exactly this call covers what is typed into a terminal"
        if rule.argv:
            return self._why_words_do_not_cover((rule,))
        if question.command and self._line.simple is None:
            return "the command is not one simple command: it has operators, redirections, expansions or assignments"
        fitting = fits(rule.pattern, question.meant, self._limits)
        return "" if fitting else "its pattern takes too long" if fitting is None else "its pattern does not match"

    def covered_together(self, rules: list[Rule]) -> bool:
        return len(rules) > 1 and not self._question.terminal and not self._why_words_do_not_cover(rules)

    def _why_words_do_not_cover(self, rules: Iterable[Rule]) -> str:
        line = self._line
        if not line.commands:
            return "it runs no command" if not self._question.command else "no command can be read from it"
        if line.unknown:
            return "it may run programs that cannot be told from its text"
        if line.redirects:
            return "it redirects"
        if line.assigns:
            return f"it sets {', '.join(line.assigns)}"
        for command in line.commands:
            if not any(words_fit(rule.argv, command) for rule in rules):
                shown = " ".join("…" if word is None else word for word in command)
                return f"its words do not cover `{shown}`"
        return ""

    @cached_property
    def _line(self) -> "CommandLine":
        from handrail.ops.shell.command_programs import CommandLine, parse_command  # noqa: PLC0415  only where a command is judged

        question = self._question
        if not question.command:
            return CommandLine()
        line = parse_command(question.command, self._limits.command_chars)
        # What was typed before, and what reads it, is not known.
        return replace(line, unknown=True) if question.terminal else line


def _last_name(program: str) -> str:
    return program.rpartition("/")[2]


def _without_options(command: "Argv") -> Iterator["Argv"]:
    """The command, and the same without its first options, of which any may take the word that follows it."""
    program, *words = command
    if program is None:
        return
    option = False
    for at in range(max(1, len(words))):
        yield (_last_name(program), *words[at:])
        word = words[at] if words else ""
        before, option = option, word is None or word.startswith("-")
        if not option and not before:
            return
