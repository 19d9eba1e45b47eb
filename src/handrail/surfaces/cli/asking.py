"""What a person is shown before an answer: what would really happen, then the display of the contract."""

import json

from handrail.kernel.gate import Question
from handrail.ops.show import fold, one_line, visible

_COLOURS = {"+": "32", "-": "31", "@": "36"}
_SANDBOX = {
    "strict": "strict, without network",
    "network": "strict, but with network",
    "off": "off: nothing confines it, and it has network",
}


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


def happening(question: Question, *, colour: bool, most: int, width: int = 80) -> list[str]:
    """What would happen, in at most so many rows of a change or a command."""
    lines = diff_lines(question, colour=colour, most=most, width=width)
    if question.terminal:
        lines += _block(f"Typed into terminal {one_line(question.terminal)}", question.command, most, width)
    elif question.command:
        lines += [*_block("Command", question.command, most, width), *_about_command(question)]
    if question.host:
        lines.append(f"Host: {one_line(question.host)}")
    if question.guarded:
        lines.append(f"Careful: {one_line(question.guarded)} is guarded, since your own tools may run what it holds")
    elif question.doubt:
        lines.append(f"Careful: {one_line(question.doubt)}")
    return lines


def diff_lines(question: Question, *, colour: bool, most: int, width: int = 80) -> list[str]:
    from handrail.ops.preview import change_diff  # noqa: PLC0415  only where a change is shown

    lines = [line for change in question.changes for line in change_diff(change).split("\n")]
    body = [line for line in lines if line[:1] in ("+", "-", " ") and line[:4] not in ("+++ ", "--- ")]
    if all(line.endswith("\r") for line in body):  # its line ends are as they were: nothing to point at
        lines = [line.removesuffix("\r") for line in lines]
    shown = fold([visible(line) for line in lines if line], most, width)
    if not colour:
        return shown
    return [f"\x1b[{_COLOURS[line[0]]}m{line}\x1b[0m" if line[:1] in _COLOURS else line for line in shown]


def _block(title: str, text: str, most: int, width: int) -> list[str]:
    """One line beside its title, several beneath it."""
    lines = fold([visible(line).replace("\t", "\\t") for line in text.split("\n")], most, width)
    return [f"{title}: {lines[0]}"] if len(lines) == 1 else [f"{title}:", *(f"  {line}" for line in lines)]


def _about_command(question: Question) -> list[str]:
    from handrail.ops.commands import parse_command  # noqa: PLC0415  only where a command is shown

    line = parse_command(question.command)
    programs = [one_line(program) for program in line.programs]
    if line.unknown:
        programs.append("others that cannot be told from its text")
    lines = [f"Programs: {', '.join(programs) or '(none)'}"]
    if line.assigns:
        lines.append(f"Sets: {', '.join(map(one_line, line.assigns))}")
    lines.append(f"Directory: {one_line(question.directory) or '.'}")
    lines.append(f"Sandbox: {_SANDBOX.get(question.sandbox, question.sandbox)}")
    return lines
