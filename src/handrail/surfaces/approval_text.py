"""Words the approval question: first the effects of the call, then the display that the contract defines."""

import json
from collections.abc import Iterator

from handrail.model.approval import Keep, Question
from handrail.model.record import record
from handrail.model.rights import EVERY_HOST
from handrail.ops.text.display import fold, one_line, visible

_WHOLE = 10**9
_WHOLE_NETWORK = f"network {EVERY_HOST}"
_COLOURS = {"+": "32", "-": "31", "@": "36"}
SCOPE_WORDS = {"session": "in this session", "project": "in this project", "user": "in all projects"}
_SANDBOX = {
    "strict": "strict, without network",
    "hosts": "strict, with the hosts in `network`",
    "network": "strict, with network",
    "reduced": "reduced (Landlock alone), without network",
    "reduced-network": "reduced (Landlock alone), with network",
    "off": "off: not confined, with network",
}


@record
class QuestionView:
    """Limits how much of a question is shown, and records whether text was left out."""

    rows: int
    """The most rows for a change or a command."""
    width: int = 80
    """The columns of the screen."""
    value: int = 200
    """The most characters for one value."""
    cut: bool = False
    """True after text was left out."""

    def fold(self, lines: list[str]) -> list[str]:
        shown = fold(lines, self.rows, self.width)
        self.cut |= shown != lines
        return shown

    def line(self, text: str) -> str:
        shown = one_line(text, self.value)
        self.cut |= shown.endswith("…") and shown != one_line(text, _WHOLE)
        return shown


def whole() -> QuestionView:
    """Return a view that leaves nothing out."""
    return QuestionView(_WHOLE, _WHOLE, _WHOLE)


def display(question: Question, view: QuestionView) -> str:
    """Return the approval display of the contract; the address of a fetch is never shortened."""
    value_view = whole() if question.host else view
    lines = [f"Tool: {question.tool}", "Parameters:"]
    for name, value in question.params.items():
        body = name in question.bodies and isinstance(value, str)
        shown = (
            f"<{len(value.encode(errors='replace'))} bytes>"
            if body
            else value_view.line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        )
        lines.append(f"  {name}: {shown}")
    lines.append(f"Files affected: {visible(', '.join(question.targets)) or '(none)'}")
    lines.append(f"Risk level: {question.risk}")
    return "\n".join(lines)


def happening(question: Question, view: QuestionView, *, colour: bool = False) -> list[str]:
    """Return the lines that describe the effects of the call."""
    lines = _diff_lines(question, view, colour=colour)
    if question.terminal:
        lines += _block(f"Typed into terminal {view.line(question.terminal)}", question.command, view)
    elif question.command:
        lines += _block("Command", question.command, view)
    for name, value in named_facts(question, view):
        lines += _block(name, value, view) if value == question.justification else [f"{name}: {value}"]
    return lines


def named_facts(question: Question, view: QuestionView) -> Iterator[tuple[str, str]]:
    """Yield what else the user should know about a call, besides its text and its changes, each with its name."""
    if question.command and not question.terminal:
        yield from _about_command(question, view)
    if question.rights:
        yield "More rights, for this command only", _rights(question)
    if question.justification:
        yield "The model says why", question.justification
    if question.host:
        yield "Host", whole().line(question.host)
        yield "Address", whole().line(question.address)
    if question.guarded:
        yield "Careful", f"{view.line(question.guarded)} is guarded: your own tools may run its contents"
    elif question.doubt:
        yield "Careful", view.line(question.doubt)


def keep_lines(question: Question, kept: dict[str, Keep], view: QuestionView) -> dict[str, str]:
    """Return for each answer that stores a rule the sentence that says what the rule allows."""
    from handrail.policy.suggest import kept_sentence  # noqa: PLC0415  needed for questions only

    line = whole().line if question.host else view.line
    confined = question.sandbox in ("", "strict")
    end = _with_rights(question)
    end += "" if confined else f" (sandbox: {_SANDBOX.get(question.sandbox, question.sandbox)})"
    return {
        answer: f"allow {SCOPE_WORDS[keep.scope]}: {line(kept_sentence(keep))}{end}" for answer, keep in kept.items()
    }


def keep_names(question: Question, kept: dict[str, Keep], view: QuestionView) -> dict[str, str]:
    """Return for each answer that stores a rule a short name, for clients that list the answers."""
    from handrail.policy.suggest import kept_words  # noqa: PLC0415  needed for questions only

    return {answer: f"{view.line(kept_words(keep))}{_with_rights(question)}" for answer, keep in kept.items()}


def _diff_lines(question: Question, view: QuestionView, *, colour: bool) -> list[str]:
    from handrail.policy.question_facts import question_diff  # noqa: PLC0415  needed for questions about changes only

    shown = view.fold(visible_lines(question_diff(question)))
    if not colour:
        return shown
    return [f"\x1b[{_COLOURS[line[0]]}m{line}\x1b[0m" if line[:1] in _COLOURS else line for line in shown]


def visible_lines(diff: str) -> list[str]:
    """Return the lines of a diff as a user can read them."""
    lines = diff.split("\n")
    body = [line for line in lines if line[:1] in ("+", "-", " ") and line[:4] not in ("+++ ", "--- ")]
    if all(line.endswith("\r") for line in body):  # all lines keep CRLF: do not show it
        lines = [line.removesuffix("\r") for line in lines]
    return [visible(line) for line in lines if line]


def _with_rights(question: Question) -> str:
    return f", with {_rights(question)}" if question.rights else ""


def _rights(question: Question) -> str:
    """Return the rights that a question asks for, never shortened."""
    words = ["network (every public host)" if each == _WHOLE_NETWORK else each for each in question.rights.words]
    return whole().line(", ".join(words))


def _block(title: str, text: str, view: QuestionView) -> list[str]:
    """Return one line of text after its title, or several lines below the title."""
    lines = view.fold([visible(line).replace("\t", "\\t") for line in text.split("\n")])
    return [f"{title}: {lines[0]}"] if len(lines) == 1 else [f"{title}:", *(f"  {line}" for line in lines)]


def _about_command(question: Question, view: QuestionView) -> Iterator[tuple[str, str]]:
    from handrail.ops.shell.command_programs import parse_command  # noqa: PLC0415  needed for questions about commands only

    line = parse_command(question.command)
    programs = [view.line(program) for program in line.programs]
    if line.unknown:
        programs.append("others that the text does not show")
    yield "Programs", ", ".join(programs) or "(none)"
    if line.assigns:
        yield "Sets", ", ".join(map(view.line, line.assigns))
    yield "Directory", view.line(question.directory) or "."
    if question.shell:
        yield "Shell", view.line(question.shell)
    yield "Sandbox", _sandbox(question)


def _sandbox(question: Question) -> str:
    shown = _SANDBOX.get(question.sandbox, question.sandbox)
    network = any(each.startswith("network ") for each in question.rights.words)
    return shown.replace("without network", "with network for this command only") if network else shown
