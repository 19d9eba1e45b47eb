"""Runs one program for a caller of the library: with its own input, variables, directory and user, without a shell."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from handrail.kernel.process.runner import Command
from handrail.kernel.sandbox.view.command_user import user_number
from handrail.kernel.sandbox.view.visible_paths import USER
from handrail.model.faults import UserNotAvailable
from handrail.runtime.commands import Commands

if TYPE_CHECKING:
    from handrail.kernel.process.runner import CommandOutcome
    from handrail.runtime.call import Call


class Program(NamedTuple):
    """Says what to run and how."""

    argv: Sequence[str]
    stdin: bytes | None
    environment: Mapping[str, str]
    directory: str
    seconds: float | None
    user: str | None
    """The user inside the sandbox; None for the usual one."""


def execute(call: "Call", program: Program, text: str) -> "CommandOutcome":
    """Run a program in the sandbox after approval; record the files that it changes.

    `text` shows the program to the approver, as a shell would take it. Raises UserNotAvailable for a user whom the
    sandbox does not have.
    """
    commands = Commands(call)
    cwd = commands.place(program.directory)
    verdict = commands.ask(_with_input(text, program.stdin), cwd)
    command = Command(
        program.argv,
        cwd,
        environment=program.environment,
        stdin=program.stdin,
        timeout_seconds=program.seconds,
        output_bytes=call.limits.exec_output_bytes,
        keep_background=program.user is None,
        cancel=call.cancel,
    )
    with commands.recorded(text, verdict), call.session.part("sandbox.exec") as span:
        outcome = _run(call, program.user, command)
        commands.describe(span, outcome)
    commands.warn(text, outcome, cwd)
    return outcome


def _with_input(text: str, stdin: bytes | None) -> str:
    """Return a command as the question shows it: the input of a program may be a script, so rules must read it."""
    if not stdin:
        return text
    mark = "INPUT"
    shown = stdin.decode(errors="replace")
    while mark in shown:
        mark += "_"
    return f"{text} <<'{mark}'\n{shown}\n{mark}"


def _run(call: "Call", user: str | None, command: Command) -> "CommandOutcome":
    """Run a command in the sandbox of the session, or, for another user than the usual one, in one of its own."""
    if user is None:
        return call.session.processes.run(command)
    usual, services = call.session.processes, call.session.services
    number = user_number(user, services.boundary.fd)
    if number is None:
        raise UserNotAvailable(user)
    if number == user_number(USER, services.boundary.fd):
        return usual.run(command)
    if call.session.next_level() in ("off", "reduced", "reduced-network"):  # only a user namespace has other numbers
        raise UserNotAvailable(user)
    processes = usual.beside(usual.sandbox.settings._replace(user=number))
    try:
        return processes.run(command)
    finally:
        processes.sandbox.close()
