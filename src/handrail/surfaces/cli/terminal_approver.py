"""Asks the approval question in a terminal and reads the user's answer."""

import re
from dataclasses import dataclass
from typing import TextIO, get_args

from handrail.errors import RuleError
from handrail.kernel.host.terminal import forget_typed, size, wants_colour
from handrail.model.approval import Keep, Question, Scope, Verdict
from handrail.model.limits import Limits
from handrail.ops.text.display import one_line
from handrail.policy.policy import rule_to_keep
from handrail.policy.rule_match import RuleMatcher, why_always_asked
from handrail.policy.rules import from_text
from handrail.surfaces.approval_text import QuestionView, display, happening, whole

SCOPES = get_args(Scope)
HELP = """\
  y                 allow this call once
  n [REASON]        refuse this call; the model receives the reason
  always            allow exactly this call from now on, in this project
  always SCOPE 8h   allow it in this session, project or for this user; a time
                    limit in hours (8h) or days (7d) is optional
  pattern           allow similar calls: take or replace a suggested pattern
  all               show the question again in full
"""
PATTERN_HELP = "Press Enter to use this pattern, type another one to replace it, or type - to go back.\n"
_ALWAYS = re.compile(rf"always(?:\s+({'|'.join(SCOPES)}))?(?:\s+(\d+(?:\.\d+)?)([hd]))?", re.IGNORECASE)
_NO = re.compile(r"(?:n|no)(?:\s+(\S.*))?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class TerminalApprover:
    """Shows a question in a terminal and asks until the user gives a valid answer."""

    reader: TextIO
    writer: TextIO
    limits: Limits

    def __call__(self, question: Question) -> Verdict:
        try:
            return self._ask(question)
        except OSError:  # the terminal was closed; some systems report the end of input instead
            return _no()

    def _ask(self, question: Question) -> Verdict:
        width, height = size()
        self._show(question, QuestionView(max(10, height * 2), width))
        while True:
            verdict = self._verdict(question, self._read_answer("Approve? (y/n/always): "))
            if verdict is not None:
                return verdict

    def _read_answer(self, prompt: str) -> str:
        """Discard earlier input, show the prompt and read one line; an empty string means the end of input."""
        forget_typed(self.reader)
        self.writer.write(prompt)
        self.writer.flush()
        line = self.reader.readline()
        if not line:  # Ctrl-D leaves the cursor behind the prompt
            self.writer.write("\n")
        return line

    def _show(self, question: Question, view: QuestionView) -> None:
        lines = happening(question, view, colour=wants_colour(self.writer))
        self.writer.write("\n".join([*lines, "", display(question, view), "", ""]))
        if view.cut:
            self.writer.write("Some text is not shown; answer all to see it.\n")

    def _verdict(self, question: Question, answer: str) -> Verdict | None:
        """Return the verdict that an answer gives; None means that the question is asked again."""
        words = answer.strip()
        if not answer or (no := _NO.fullmatch(words)):
            return _no(no[1] if answer and no else None)
        if words.lower() in ("y", "yes"):
            return Verdict(True, "user")
        if always := _ALWAYS.fullmatch(words):
            return self._always(question, _keep(always))
        if words.lower() == "pattern":
            return self._pattern(question)
        if words.lower() == "all":
            self._show(question, whole())
        else:
            self.writer.write(HELP)
        return None

    def _always(self, question: Question, keep: Keep) -> Verdict | None:
        """Return a verdict that allows the call and stores a rule; show that rule."""
        if not self._can_be_kept(question):
            return None
        verdict = Verdict(True, "user", always=True, keep=keep)
        try:
            rule = rule_to_keep(question, verdict, self.limits)
        except RuleError as error:
            self.writer.write(f"Allowed this time only: cannot store a rule: {one_line(str(error), 2000)}\n")
        else:
            self.writer.write(f"New rule ({_scope_text(keep)}): {rule.tool} {one_line(rule.covers, 2000)}\n")
        self.writer.flush()
        return verdict

    def _can_be_kept(self, question: Question) -> bool:
        why = why_always_asked(question)
        if why:
            self.writer.write(f"This call needs approval every time: {why}.\n")
        return not why

    def _pattern(self, question: Question) -> Verdict | None:
        """Let the user choose a pattern that covers this call, and a scope; return None if the user goes back."""
        if not self._can_be_kept(question):
            return None
        from handrail.policy.suggest import suggestion  # noqa: PLC0415  needed for this answer only

        pattern = self._read_pattern(question, suggestion(question, self.limits))
        scope = None if pattern is None else self._read_scope()
        return None if pattern is None or scope is None else self._always(question, scope._replace(rule=pattern))

    def _read_pattern(self, question: Question, suggested: str) -> str | None:
        """Ask until a pattern covers this call; return None if the user goes back."""
        self.writer.write(f"Suggested pattern: {whole().line(suggested)}\n{PATTERN_HELP}")
        while True:
            line = self._read_answer("Pattern: ")
            if not line or line.strip() == "-":
                return None
            pattern = line.strip() or suggested
            why = self._why_not_covered(question, pattern)
            if not why:
                return pattern
            self.writer.write(f"The pattern does not cover this call: {one_line(why, 2000)}\n")

    def _why_not_covered(self, question: Question, pattern: str) -> str:
        """Return why a pattern does not cover a call; an empty string means that it does."""
        try:
            rule = from_text(question.tool, pattern, "the pattern", self.limits)
        except RuleError as error:
            return str(error)
        return RuleMatcher(question, self.limits).why_not(rule)

    def _read_scope(self) -> Keep | None:
        """Ask until the user names a scope; return None at the end of input."""
        while True:
            line = self._read_answer("For (session/project/user): ")
            if not line:
                return None
            found = _ALWAYS.fullmatch(f"always {line.strip()}".strip())
            if found:
                return _keep(found)


def _no(reason: str | None = None) -> Verdict:
    why = f"the user said no: {reason}" if reason else "the user said no"
    return Verdict(False, "user", reason=why, remedy="Ask what to do instead")


def _keep(answer: "re.Match[str]") -> Keep:
    scope: Scope = answer[1].lower() if answer[1] else "project"  # type: ignore[assignment]  # _ALWAYS matches scopes only
    hours = float(answer[2]) * (24 if answer[3].lower() == "d" else 1) if answer[2] else None
    return Keep(scope, hours=hours)


def _scope_text(keep: Keep) -> str:
    until = "" if keep.hours is None else f", for {keep.hours:g} hours"
    return f"this {keep.scope}{until}"
