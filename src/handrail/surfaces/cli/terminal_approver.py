"""Asks the approval question in a terminal. One key answers."""

import re
from dataclasses import dataclass
from typing import TextIO, get_args

from handrail.errors import RuleError
from handrail.kernel.host.terminal import ask_for_key, forget_typed, size, wait_for_line, wants_colour
from handrail.model.approval import Keep, Question, Scope, Verdict
from handrail.model.limits import Limits
from handrail.model.withdrawal import Withdrawn
from handrail.ops.text.display import one_line, wrapped
from handrail.policy.policy import rule_to_keep
from handrail.policy.rule_match import RuleMatcher, why_nothing_kept
from handrail.policy.rules import exact_pattern, typed_rule
from handrail.policy.suggest import keeps
from handrail.surfaces.approval_text import SCOPE_WORDS, QuestionView, display, happening, keep_lines, whole

RULE_HELP = "Enter keeps this rule, other text replaces it (git status *, edit src/**, fetch HOST), - goes back.\n"
_ENDS = ("", "\x04")
"""The end of the input, and Ctrl-D."""
_WORDS = {"yes": "y", "session": "s", "always": "a", "edit": "e", "all": "d", "diff": "d"}
"""Words that stand for a key, if they come as one text."""
_NO = re.compile(r"(?:n|no)(?:\s+(\S.*))?", re.IGNORECASE | re.DOTALL)
_KEPT = {"s": "session", "a": "always"}
"""The keys that store a rule, and the answers that they give."""
_ONE_CALL = "This command makes one call, and its session ends with it; a or e keeps a rule.\n"


@dataclass(frozen=True, slots=True)
class TerminalApprover:
    """Shows a question in a terminal and asks until the user gives a valid answer."""

    reader: TextIO
    writer: TextIO
    limits: Limits
    one_call: bool = False
    """True if the session ends with this call, so that a rule for the session would be of no use."""

    def __call__(self, question: Question) -> Verdict:
        try:
            return self._ask(question)
        except KeyboardInterrupt:
            self.writer.write("\nThe call was not approved: nothing was changed\n")
            self.writer.flush()
            raise
        except Withdrawn:
            self.writer.write("\nAnswered on the page\n")
            self.writer.flush()
            raise
        except OSError:  # the terminal was closed; some systems report the end of input instead
            return _no()

    def _ask(self, question: Question) -> Verdict:
        width, height = size()
        view = QuestionView(max(10, height * 2), width)
        kept = keeps(question, self.limits)
        if self.one_call:
            kept.pop("session", None)
        self._show(question, view)
        keys = self._show_answers(question, kept, view)
        while True:
            typed = self._press(f"Approve? ({keys}): ")
            word = _first_line(typed)
            no = _NO.fullmatch(word)
            if no or typed in _ENDS:
                reason = self._line("Reason for the agent: ").strip() if typed == "N" else no and no[1]
                return _no(reason or "")
            key = _WORDS.get(word.lower(), word.lower())
            if key == "y":
                return Verdict(True, "user")
            if key == "d":
                view = whole()
                self._show(question, view)
            elif verdict := self._other_answer(question, kept, key):
                return verdict
            keys = self._show_answers(question, kept, view)

    def _press(self, prompt: str) -> str:
        """Show the prompt, and return and show what the user presses; an empty string means the end of input."""
        typed = ask_for_key(self.reader, self.writer, prompt)
        word = _first_line(typed)
        self.writer.write(f"{one_line(word) if word.isprintable() else ''}\n")
        self.writer.flush()
        return typed

    def _line(self, prompt: str) -> str:
        """Discard earlier input, show the prompt and read one line; an empty string means the end of input."""
        forget_typed(self.reader)
        self.writer.write(prompt)
        self.writer.flush()
        wait_for_line(self.reader)
        line = self.reader.readline()
        if not line:  # Ctrl-D leaves the cursor behind the prompt
            self.writer.write("\n")
        return line

    def _say(self, text: str) -> None:
        """Show a text that may have words of the model, each line of which is known as one line."""
        self.writer.write(wrapped(text, size()[0]))

    def _show(self, question: Question, view: QuestionView) -> None:
        lines = happening(question, view, colour=wants_colour(self.writer))
        self._say("\n".join([*lines, "", display(question, view), "", ""]))

    def _show_answers(self, question: Question, kept: dict[str, Keep], view: QuestionView) -> str:
        """Show what each key does, and return the keys."""
        sentences = keep_lines(question, kept, view)
        answers = {"y": "allow this call", "n": "refuse it; N refuses it with a reason"}
        answers |= {key: sentences[answer] for key, answer in _KEPT.items() if answer in sentences}
        answers |= {"e": "edit the rule of a, and choose how long it holds"} if kept else {}
        answers |= {"d": "show everything: some text is left out above"} if view.cut else {}
        self._say("".join(f"  {key}  {means}\n" for key, means in answers.items()))
        return "/".join(answers)

    def _other_answer(self, question: Question, kept: dict[str, Keep], key: str) -> Verdict | None:
        """Return the verdict of an answer that stores a rule; None means that the question is asked again."""
        if key in ("s", "a", "e") and not kept:
            why = why_nothing_kept(question)
            self.writer.write(f"{why[0].upper()}{why[1:]}.\n")
        elif key == "s" and self.one_call:
            self.writer.write(_ONE_CALL)
        elif key in _KEPT:
            return self._keep(question, kept[_KEPT[key]])
        elif key == "e":
            return self._edited(question, kept["always"].rule)
        return None

    def _keep(self, question: Question, keep: Keep) -> Verdict:
        """Return a verdict that allows the call and stores a rule; show that rule."""
        verdict = Verdict(True, "user", always=True, keep=keep)
        try:
            rule = rule_to_keep(question, verdict, self.limits)
        except RuleError as error:
            self._say(f"Allowed this time only: cannot store a rule: {one_line(str(error), 2000)}\n")
        else:
            until = "" if keep.hours is None else f", for {keep.hours:g} hours"
            self._say(f"New rule ({SCOPE_WORDS[keep.scope]}{until}): {one_line(rule.named, 2000)}\n")
        self.writer.flush()
        return verdict

    def _edited(self, question: Question, suggested: str) -> Verdict | None:
        """Let the user write a rule that covers this call, and choose a scope; return None if the user goes back."""
        text = self._read_rule(question, suggested or exact_pattern(question.meant or ""))
        keep = None if text is None else self._read_scope(text)
        return None if keep is None else self._keep(question, keep)

    def _read_rule(self, question: Question, suggested: str) -> str | None:
        """Ask until a rule covers this call; an empty line takes the suggested one. None if the user goes back."""
        self._say(f"Suggested rule: {whole().line(suggested)}\n{RULE_HELP}")
        while True:
            line = self._line("Rule: ")
            if not line or line.strip() == "-":
                return None
            text = line.strip() or suggested
            why = self._why_not_covered(question, text)
            if not why:
                return text
            self._say(f"The rule does not cover this call: {one_line(why, 2000)}\n")

    def _why_not_covered(self, question: Question, text: str) -> str:
        """Return why a rule does not cover a call and say what it allows; an empty string means that it covers it."""
        try:
            typed = typed_rule(question.tool, text, "the rule", self.limits)
        except RuleError as error:
            return str(error)
        rule = typed._replace(rights=question.rights.words)
        why = RuleMatcher(question, self.limits).why_not(rule)
        if not why:
            self._say(f"It allows the agent to {one_line(rule.sentence, 2000)}\n")
        return why

    def _read_scope(self, text: str) -> Keep | None:
        """Ask until the user names a scope; return None at the end of input. Enter means this project."""
        scopes = "/".join(get_args(Scope)[self.one_call :])
        form = re.compile(rf"({scopes.replace('/', '|')})?(?:\s*(\d+(?:\.\d+)?)([hd]))?", re.IGNORECASE)
        while True:
            line = self._line(f"For ({scopes}, and 8h or 7d; Enter: project): ")
            if not line:
                return None
            if found := form.fullmatch(line.strip()):
                scope: Scope = found[1].lower() if found[1] else "project"  # type: ignore[assignment]  # scopes only
                hours = float(found[2]) * (24 if found[3].lower() == "d" else 1) if found[2] else None
                return Keep(scope, text, hours)


def _first_line(typed: str) -> str:
    return typed.partition("\n")[0].strip()


def _no(reason: str = "") -> Verdict:
    why = f"the user said no: {reason}" if reason else "the user said no"
    return Verdict(False, "user", reason=why, remedy="Ask what to do instead")
