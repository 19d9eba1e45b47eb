"""Words the hints about usual mistakes, the same in every dialect."""

from handrail.model.hints import (
    AbsoluteGlob,
    BinaryShown,
    CarriageReturns,
    EscapedBreaks,
    FencedContent,
    FileWithSlash,
    HomeNotExpanded,
    NearestPath,
    OtherEncoding,
    PageMissing,
    ParameterIgnored,
    SlashedGlob,
)
from handrail.tools.messages import Facts, Message, Words


def _nearest(facts: Facts) -> str:
    return f"Did you mean {' or '.join(facts['names'])}?"


def _binary(facts: Facts) -> str:
    kind = f" ({facts['kind']})" if facts["kind"] else ""
    return (
        f"{facts['path']} is a binary file{kind}: its bytes cannot be shown as text; continue without its content, "
        "and do not write this text back"
    )


def _ignored(facts: Facts) -> str:
    near = f"did you mean {facts['near']}?" if facts["near"] else f"this tool takes {', '.join(facts['known'])}"
    return f"unknown parameter '{facts['name']}' was ignored; {near}"


HINTS: Words = {
    NearestPath: Message("note", _nearest),
    HomeNotExpanded: Message("note", "'~' is not expanded; write {instead}."),
    AbsoluteGlob: Message(
        "note", "no match; the glob {glob} is absolute, but globs are relative to the searched directory: use {instead}"
    ),
    SlashedGlob: Message("note", "no match; a backslash escapes the next character of a glob: use {instead}"),
    BinaryShown: Message("note", _binary),
    EscapedBreaks: Message(
        "note",
        "{path} is now one line that holds the characters \\n several times; if line breaks are meant, write the file "
        "again with real line breaks",
    ),
    FencedContent: Message(
        "note",
        "{path} now begins with the line {fence} and ends with a closing fence; if that is not part of the file, "
        "write the file again without these two lines",
    ),
    OtherEncoding: Message(
        "note",
        "{path} is {encoding} text, and tools for files take every text as UTF-8; "
        "the command iconv -f {encoding} -t UTF-8 shows or converts it",
    ),
    FileWithSlash: Message(
        "note", "{instead} is a file: to use it, leave out the final slash; otherwise name a directory"
    ),
    ParameterIgnored: Message("note", _ignored),
    CarriageReturns: Message(
        "note",
        "lines of the command end with a carriage return, which the shell takes as a part of the last word, "
        "for example of a file's name; send the command with plain line feeds",
    ),
    PageMissing: Message("note", lambda f: f"there is no page {f['page']}; the last page is {f['pages']}"),
}
