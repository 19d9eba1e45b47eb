"""Moves what a session remembers to another session: its directory, the files that it knows, its last command."""

from typing import Any

from handrail.kernel.process.bounded_output import Output
from handrail.model.faults import PathFault
from handrail.model.paths import quote
from handrail.runtime.command_checks import LastCommand
from handrail.runtime.session import Session

Json = dict[str, Any]


def memory_of(session: Session) -> Json:
    """Return what a session remembers, as JSON."""
    last = session.last_command
    made: Json = {"directory": session.directory, "files": [quote(place) for place in session.seen.known()]}
    if last is not None:
        streams = [_text(stream) for stream in (last.stdout, last.stderr)]
        made["last_command"] = [last.command, last.exit_code, *streams, last.executed_at]
    return made


def recall(session: Session, memory: Json) -> None:
    """Give a new session on the same files what another session remembered."""
    session.directory = memory["directory"]
    for path in memory["files"]:
        try:
            found = session.services.reader.read_if_there(path)
        except PathFault:
            continue  # it is no file any more
        if found is not None:
            session.seen.note(found.place, found.version, found.data)
    if last := memory.get("last_command"):
        command, exit_code, stdout, stderr, executed_at = last
        session.last_command = LastCommand(command, exit_code, _output(stdout), _output(stderr), executed_at)


def _text(stream: Output) -> list[Any]:
    head, tail = (part.decode("utf-8", "surrogateescape") for part in (stream.head, stream.tail))
    return [head, tail, stream.cut_bytes]


def _output(stored: list[Any]) -> Output:
    head, tail, cut = stored
    return Output(head.encode("utf-8", "surrogateescape"), tail.encode("utf-8", "surrogateescape"), cut)
