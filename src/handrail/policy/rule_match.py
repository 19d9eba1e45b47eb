"""Decides which rules cover a call, and says why the others do not.

A pattern alone would approve nearly every hostile call: `../../x`, `.GIT/hooks`, `git status; rm -rf ~`. So patterns
match resolved paths, no rule approves a path below a guarded name, and a rule approves a command only if the parser
understands it completely.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from handrail.model.approval import KINDS, Question
from handrail.model.effects import Effect
from handrail.model.limits import Limits
from handrail.model.paths import stem_of, unquote
from handrail.model.rights import Rights, parse_rights
from handrail.policy.rule_text import FETCH, ONE, REST, covers_file, covers_host, parse_rule
from handrail.policy.rules import ANY_TOOL, LEVELS, Rule, covers_command, exact_pattern, fits, words_fit

if TYPE_CHECKING:
    from handrail.ops.shell.command_programs import CommandLine
    from handrail.ops.shell.started import Argv

_EDITS = Effect.READ | Effect.CREATE | Effect.WRITE | Effect.DELETE
_PLAIN_WORD = re.compile(r"[\w./+-]*")
_WHOLE_WORD = r"(?<![\w.+-]){}(?![\w.+/-])"


class PlacedRule(NamedTuple):
    """Holds a rule with its scope and its number in that scope."""

    rule: Rule
    scope: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.scope} rule {self.number}"


Reasons = list[tuple[PlacedRule, str]]
"""Rules that do not decide, each with the reason."""


class Decision(NamedTuple):
    """Holds what the rules say about a call."""

    allowed: bool | None
    """None if no rule decides."""
    by: tuple[PlacedRule, ...] = ()
    """The rules that decide."""
    others: tuple[tuple[PlacedRule, str], ...] = ()
    """The rules that do not decide, each with the reason."""
    doubt: str = ""
    """Why only the user can approve the call; empty if a rule or a policy could."""
    rights: Rights | None = None
    """The rights beyond the sandbox that the rule grants; None if the call asks for none."""


def decide(placed_rules: Iterable[PlacedRule], question: Question, limits: Limits) -> Decision:
    """Decide a call by rules: deny rules first, then single allow rules, then the words of several rules together."""
    matcher = RuleMatcher(question, limits)
    denying, allowing = list[PlacedRule](), list[PlacedRule]()
    for each in placed_rules:
        (denying if each.rule.deny else allowing).append(each)
    forbids, others = _first_denying(matcher, denying)
    if forbids is not None:
        return Decision(False, (forbids,), tuple(others))
    doubt = why_always_asked(question) or next(filter(None, map(matcher.doubt, denying)), "")
    allows, not_allowing = _first_allowing(matcher, allowing, doubt)
    others += not_allowing
    if allows is not None:
        granted = matcher.granted(allows.rule) if question.rights else None
        return Decision(True, (allows,), tuple(others), rights=granted)
    together = () if doubt else _together(matcher, allowing)
    if together:
        return Decision(True, together, tuple(pair for pair in others if pair[0] not in together))
    return Decision(None, (), tuple(others), doubt)


def _first_denying(matcher: "RuleMatcher", denying: list[PlacedRule]) -> tuple[PlacedRule | None, Reasons]:
    """Return the first deny rule that covers the call, and why the rules before it do not."""
    others: Reasons = []
    for each in denying:
        why = matcher.why_not(each.rule)
        if not why:
            return each, others
        others.append((each, why))
    return None, others


def _first_allowing(
    matcher: "RuleMatcher", allowing: list[PlacedRule], doubt: str
) -> tuple[PlacedRule | None, Reasons]:
    """Return the first allow rule that covers the call, and why all the others do not decide."""
    allows: PlacedRule | None = None
    others: Reasons = []
    for each in allowing:
        why = matcher.why_not(each.rule) or doubt
        if why:
            others.append((each, why))
        elif allows is None:
            allows = each
        else:
            others.append((each, f"{allows.name} already allows the call"))
    return allows, others


def _together(matcher: "RuleMatcher", allowing: list[PlacedRule]) -> tuple[PlacedRule, ...]:
    """Return the rules with words that cover a compound command together, and no others; empty if they do not."""
    words = [each for each in allowing if each.rule.words and not matcher.why_not_in_force(each.rule)]
    return tuple(words[at] for at in matcher.covered_together([each.rule for each in words]))


def why_always_asked(question: Question) -> str:
    """Return why no rule and no policy can approve this call; empty if one could."""
    if question.doubt:
        return question.doubt
    if question.resolved is None:
        return "a path leaves the workspace"
    return f"the call reaches into {question.guarded}, which is guarded" if question.guarded else ""


def why_nothing_kept(question: Question) -> str:
    """Return why no answer to this question can store a rule; empty if one could."""
    if why := why_always_asked(question):
        return f"this call needs approval every time: {why}"
    return f"the answer to a question about {question.tool} counts only once" if question.tool in KINDS else ""


class RuleMatcher:
    """Compares one call with rules."""

    def __init__(self, question: Question, limits: Limits) -> None:
        self._question, self._limits = question, limits

    def why_not(self, rule: Rule) -> str:
        """Return why a rule does not cover this call; empty if it does."""
        idle = self.why_not_in_force(rule)
        if idle:
            return idle
        return self._why_not_denied(rule) if rule.deny else self._why_not_allowed(rule) or self._why_not_granted(rule)

    def why_not_in_force(self, rule: Rule) -> str:
        """Return why a rule does not apply to any such call now; empty if it applies."""
        if rule.tool != self._question.tool and not (rule.tool == ANY_TOOL and (rule.deny or rule.calls)):
            return "it is for another tool"
        if not rule.enabled:
            return "it is disabled"
        if rule.expired:
            return "it has expired"
        weakest, level = rule.sandbox, self._question.sandbox
        weaker = weakest and level and not rule.deny and not LEVELS[weakest] <= LEVELS[level]
        return f"it requires sandbox level {weakest} or stronger, not {level}" if weaker else ""

    def doubt(self, placed: PlacedRule) -> str:
        """Return why a deny rule with words may cover this call although the call does not show the words."""
        rule = placed.rule
        if not (rule.deny and rule.words) or self.why_not_in_force(rule):
            return ""
        if not (self._line.unknown or self._line.code or self._may_be_started(rule)):
            return ""
        return f"the command may run what {placed.name} forbids: its text does not show every program that it runs"

    def _may_be_started(self, rule: Rule) -> bool:
        """Return whether a program may run the rule's words as a command: `prlimit rm x`, `PAGER=rm less`."""
        from handrail.ops.shell.program_kinds import may_start, takes_values_as_data  # noqa: PLC0415  only for commands
        from handrail.ops.shell.wrappers import is_followed  # noqa: PLC0415  only for commands

        wanted = (_last_name(rule.words[0]), *rule.words[1:])
        programs = [each for each in self._line.commands if each[0] and not is_followed(_last_name(each[0]))]
        started = [inner for each in programs for inner in may_start(each)]
        if any(words_fit(wanted, (_last_name(first), *rest), unsure=True) for first, *rest in started if first):
            return True
        texts = [word for word, *_ in started if word and not _PLAIN_WORD.fullmatch(word)]
        if not all(takes_values_as_data(each, self._line.assigns) for each in programs):
            texts += self._line.texts
        named = [re.compile(_WHOLE_WORD.format(re.escape(word))) for word in wanted if word not in (ONE, REST)]
        return bool(named) and any(all(word.search(text) for word in named) for text in texts)

    def _why_not_denied(self, rule: Rule) -> str:
        """Return why a deny rule does not cover the call; empty if it does.

        Uncertainty counts as a match: either form of the call, a pattern timeout, or an unknown argument.
        """
        if rule.words:
            wanted = (_last_name(rule.words[0]), *rule.words[1:])
            found = [form for command in self._line.commands for form in _without_options(command)]
            return "" if any(words_fit(wanted, each, unsure=True) for each in found) else "no command has its words"
        if rule.calls:
            return self._why_short_not_denied(rule.calls)
        forms = {self._question.given, self._question.meant or ""}
        denied = any(fits(rule.pattern, form, self._limits) is not False for form in forms if form)
        return "" if denied else "its pattern does not match"

    def _why_not_allowed(self, rule: Rule) -> str:
        """Return why an allow rule does not cover the call; empty if it certainly does."""
        question = self._question
        if question.resolved is None or question.guarded:
            return why_always_asked(question)
        if rule.pattern and rule.pattern == exact_pattern(self._meant):
            return ""
        if question.terminal or question.shell:
            return f"{question.shell or 'input typed into a terminal'} needs a rule for exactly this call"
        if rule.words or rule.calls:
            short = not rule.words
            return self._why_short_not_allowed(rule.calls) if short else self._why_words_do_not_cover(rule)
        if question.command and self._line.simple is None:
            return "the command is not simple: it has operators, redirections, expansions or assignments"
        fitting = fits(rule.pattern, self._meant, self._limits)
        return "" if fitting else "its pattern takes too long" if fitting is None else "its pattern does not match"

    def _why_short_not_allowed(self, text: str) -> str:
        """Return why a rule for edits or hosts does not cover the call; empty if it covers all that the call does."""
        question, short = self._question, parse_rule(text)
        if short.kind == FETCH:
            if not question.host or question.effects not in Effect.READ | Effect.FETCH:
                return "the call does not only fetch a page"
            return "" if covers_host(short.words, question.host) else "it is for other hosts"
        if not question.targets or question.effects not in _EDITS or question.command or question.host:
            return "the call does not only change files"
        other = next((each for each in question.targets if not covers_file(short.words, unquote(each))), "")
        return f"it does not cover {other}" if other else ""

    def _why_short_not_denied(self, text: str) -> str:
        """Return why a rule that denies edits or hosts does not cover the call; any file that it names is enough."""
        question, short = self._question, parse_rule(text)
        if short.kind == FETCH:
            hosts = {question.host, re.sub(r":\d+$", "", question.host)} - {""}
            return "" if any(covers_host(short.words, host) for host in hosts) else "it is for other hosts"
        if not question.targets:
            return "the call changes no files"
        given = [str(question.params.get(name)).removeprefix(stem_of(question.root)) for name in question.paths]
        places = [*map(unquote, question.targets), *(each.removeprefix("./") for each in given)]
        denied = any(covers_file(short.words, each, fold_case=True) for each in places)
        return "" if denied else "it is for other files"

    def _why_not_granted(self, rule: Rule) -> str:
        """Return why an allow rule does not grant the rights that the call asks for; empty if it does, or none are."""
        rights = self._question.rights
        if not rights or self.granted(rule) is not None:
            return ""
        return f"the call asks for more rights than the rule names: {', '.join(rights.words)}"

    def granted(self, rule: Rule) -> Rights | None:
        """Return the rights that a rule grants to this call; None if it does not name all of them."""
        from handrail.ops.asked_rights import rights_by_rule  # noqa: PLC0415  few calls ask for rights

        return rights_by_rule(self._question.rights, parse_rights(rule.rights))

    def covered_together(self, rules: list[Rule]) -> list[int]:
        """Return which rules with words cover the commands of the call: for each the first. Empty if it takes one."""
        typed = self._question.terminal or self._question.shell or self._question.rights
        if typed or self._why_not_plain():
            return []
        covering = [self._first_covering(rules, command) for command in self._line.commands]
        found = {at for at in covering if at is not None}
        return sorted(found) if len(found) > 1 and None not in covering else []

    @staticmethod
    def _first_covering(rules: list[Rule], command: tuple[str | None, ...]) -> int | None:
        return next((at for at, rule in enumerate(rules) if covers_command(rule, command)), None)

    def _why_words_do_not_cover(self, rule: Rule) -> str:
        """Return why the words of the rule do not cover every command of the call; empty if they do."""
        if why := self._why_not_plain():
            return why
        for command in self._line.commands:
            if not covers_command(rule, command):
                shown = " ".join("…" if word is None else word for word in command)
                return f"its words do not cover `{shown}`"
        return ""

    def _why_not_plain(self) -> str:
        """Return why no words can cover the call; empty if it runs only commands that can be read for certain."""
        line = self._line
        if not line.commands:
            return "the call runs no command" if not self._question.command else "the text holds no readable command"
        if line.unknown:
            return "the command may run programs that its text does not show"
        if line.redirects:
            return "the command redirects input or output"
        if line.assigns:
            return f"the command sets {', '.join(line.assigns)}"
        return ""

    @cached_property
    def _meant(self) -> str:
        """The call as rules see it. The content of a large file takes long to write as JSON, so this is done once."""
        return self._question.meant or ""

    @cached_property
    def _line(self) -> "CommandLine":
        """The parsed command of the call; without commands if the call runs none."""
        from handrail.ops.shell.command_programs import CommandLine, parse_command  # noqa: PLC0415  only for commands

        question = self._question
        if not question.command:
            return CommandLine()
        line = parse_command(question.command, self._limits.command_chars)
        # The input typed before and the program that reads it are unknown, as are the names in a changed shell.
        return replace(line, unknown=True) if question.terminal or question.shell else line


def _last_name(program: str) -> str:
    return program.rpartition("/")[2]


def _without_options(command: "Argv") -> Iterator["Argv"]:
    """Yield the command, then the same command without its first options; each may take the next word as its value."""
    program, *words = command
    if program is None:
        return
    is_option = False
    for at in range(max(1, len(words))):
        yield (_last_name(program), *words[at:])
        word = words[at] if words else ""
        was_option, is_option = is_option, word is None or word.startswith("-")
        if not is_option and not was_option:
            return
