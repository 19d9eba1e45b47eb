"""The question in a terminal, and the answers that a person may give."""

import re
from dataclasses import dataclass
from typing import TextIO, get_args

from handrail.errors import RuleError
from handrail.kernel.host.line_edit import edit_line
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
  y                 this once
  n [REASON]        no; the reason is told to the model
  always            exactly this call from now on, in this project
  always SCOPE 8h   for this session, project or user; if you like, only for
                    some hours (8h) or days (7d)
  pattern           calls like this one: you may change the pattern first
  all               show everything again, nothing left out
"""
_ALWAYS = re.compile(rf"always(?:\s+({'|'.join(SCOPES)}))?(?:\s+(\d+(?:\.\d+)?)([hd]))?", re.IGNORECASE)
_NO = re.compile(r"(?:n|no)(?:\s+(\S.*))?", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class TerminalApprover:
    reader: TextIO
    writer: TextIO
    limits: Limits

    def __call__(self, question: Question) -> Verdict:
        try:
            return self._ask(question)
        except OSError:  # the terminal is gone, which is as often told as the end of its input
            return _no()

    def _ask(self, question: Question) -> Verdict:
        width, height = size()
        self._show(question, QuestionView(max(10, height * 2), width))
        while True:
            verdict = self._understand(question, self._answer("Approve? (y/n/always): "))
            if verdict is not None:
                return verdict

    def _answer(self, prompt: str) -> str:
        forget_typed(self.reader)
        self.writer.write(prompt)
        self.writer.flush()
        said = self.reader.readline()
        if not said:  # Ctrl-D leaves the cursor behind the prompt
            self.writer.write("\n")
        return said

    def _show(self, question: Question, view: QuestionView) -> None:
        lines = happening(question, view, colour=wants_colour(self.writer))
        self.writer.write("\n".join([*lines, "", display(question, view), "", ""]))
        if view.cut:
            self.writer.write("Something is left out; all shows it.\n")

    def _understand(self, question: Question, said: str) -> Verdict | None:
        """What an answer means; None: ask again."""
        words = said.strip()
        if not said or (no := _NO.fullmatch(words)):
            return _no(no[1] if said and no else None)
        if words.lower() in ("y", "yes"):
            return Verdict(True, "person")
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
        """A yes, and what will be remembered of it."""
        if not self._can_be_kept(question):
            return None
        verdict = Verdict(True, "person", always=True, keep=keep)
        try:
            rule = rule_to_keep(question, verdict, self.limits)
        except RuleError as error:
            self.writer.write(f"This time only, since it cannot be remembered: {one_line(str(error), 2000)}\n")
        else:
            self.writer.write(f"New rule ({_where(keep)}): {rule.tool} {one_line(rule.covers, 2000)}\n")
        self.writer.flush()
        return verdict

    def _can_be_kept(self, question: Question) -> bool:
        why = why_always_asked(question)
        if why:
            self.writer.write(f"This is asked every time: {why}.\n")
        return not why

    def _pattern(self, question: Question) -> Verdict | None:
        """Shown, changed, tested against this call, and only then stored."""
        if not self._can_be_kept(question):
            return None
        from handrail.policy.suggest import suggestion  # noqa: PLC0415  only where it is wanted

        self.writer.write("Change it if you like; Enter takes it, an empty line goes back.\n")
        text = suggestion(question, self.limits)
        while True:
            edited = edit_line(self.reader, self.writer, "Pattern: ", text)
            if not edited:
                return None
            text = edited
            why = self._why_not(question, text)
            if not why:
                break
            self.writer.write(f"It does not cover this call: {one_line(why, 2000)}\n")
        scope = self._scope()
        return None if scope is None else self._always(question, scope._replace(rule=text))

    def _why_not(self, question: Question, text: str) -> str:
        try:
            rule = from_text(question.tool, text, "the pattern", self.limits)
        except RuleError as error:
            return str(error)
        return RuleMatcher(question, self.limits).why_not(rule)

    def _scope(self) -> Keep | None:
        while True:
            said = self._answer("For (session/project/user): ")
            if not said:
                return None
            found = _ALWAYS.fullmatch(f"always {said.strip()}".strip())
            if found:
                return _keep(found)


def _no(reason: str | None = None) -> Verdict:
    why = f"the person said no: {reason}" if reason else "the person said no"
    return Verdict(False, "person", reason=why, remedy="Ask what to do instead")


def _keep(said: "re.Match[str]") -> Keep:
    scope: Scope = said[1].lower() if said[1] else "project"  # type: ignore[assignment]  # the pattern names them all
    hours = float(said[2]) * (24 if said[3].lower() == "d" else 1) if said[2] else None
    return Keep(scope, hours=hours)


def _where(keep: Keep) -> str:
    until = "" if keep.hours is None else f", for {keep.hours:g} hours"
    return f"this {keep.scope}{until}"
