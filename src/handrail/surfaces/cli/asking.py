"""The question in a terminal: what would really happen, then the display of the contract, then an answer."""

import json

from handrail.kernel.gate import Approver, Question, Verdict
from handrail.kernel.terminal import open_terminal, size, wants_colour
from handrail.ops.preview import change_diff
from handrail.ops.show import fold, one_line, visible
from handrail.policy.rules import exact_pattern

_COLOURS = {"+": "32", "-": "31", "@": "36"}


def display(question: Question) -> str:
    """The approval display, as the contract prints it."""
    lines = [f"Tool: {question.tool}", "Parameters:"]
    for name, value in question.params.items():
        body = name in question.bodies and isinstance(value, str)
        shown = (
            f"<{len(value.encode(errors='replace'))} bytes>"
            if body
            else one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        )
        lines.append(f"  {name}: {shown}")
    lines.append(f"Files affected: {', '.join(question.targets) or '(none)'}")
    lines.append(f"Risk level: {question.risk}")
    return "\n".join(lines)


def diff_lines(question: Question, *, colour: bool, most: int) -> list[str]:
    lines = [line for change in question.changes for line in change_diff(change).split("\n")]
    body = [line for line in lines if line[:1] in ("+", "-", " ") and line[:4] not in ("+++ ", "--- ")]
    if all(line.endswith("\r") for line in body):  # its line ends are as they were: nothing to point at
        lines = [line.removesuffix("\r") for line in lines]
    shown = fold([visible(line) for line in lines if line], most)
    if not colour:
        return shown
    return [f"\x1b[{_COLOURS[line[0]]}m{line}\x1b[0m" if line[:1] in _COLOURS else line for line in shown]


def terminal_asker() -> Approver | None:
    """Somebody to ask, where there is a terminal."""
    terminal = open_terminal()
    if terminal is None:
        return None
    reader, writer = terminal

    def ask(question: Question) -> Verdict:
        lines = diff_lines(question, colour=wants_colour(writer), most=max(10, size()[1] * 2))
        writer.write("\n".join([*lines, "", display(question), "", ""]))
        while True:
            writer.write("Approve? (y/n/always): ")
            writer.flush()
            answer = reader.readline()
            word = answer.strip().lower()
            if word in ("y", "yes"):
                return Verdict(True, "person")
            if word == "always":
                writer.write(f"New rule: {question.tool} {one_line(exact_pattern(question.params), 2000)}\n")
                writer.flush()
                return Verdict(True, "person", always=True)
            if not answer or word in ("n", "no"):
                return Verdict(False, "person", reason="the person said no", remedy="Ask what to do instead")

    return ask
