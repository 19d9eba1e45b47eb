"""Parses the text of a patch, in either form, into a list of `FilePatch`."""

import re

from handrail.model.faults import BadPatch, BinaryPatch
from handrail.ops.patch import envelope, unified
from handrail.ops.patch.file_lines import BOM
from handrail.ops.patch.model import Action, FilePatch

_ESCAPED = re.compile(rb"\s*(?:\*\*\* Begin Patch|--- |diff --git ).*?\\n(?:\*\*\* |--- |\+\+\+ |@@|index )")
"""The first lines of a patch, with a literal `\\n` between them."""

_HEREDOC = re.compile(rb"[^<]*<<-?\s*['\"]?(\w+)['\"]?\s*")
_ESCAPED_SECTION = re.compile(rb"(?:@@.*?|[-+ ].*?)\\n(?:@@|[-+ ])")


def parse(text: str) -> list[FilePatch]:
    """Parse a patch. Raises BadPatch, BinaryPatch or SpecialMode."""
    lines = _lines(text)
    for index, line in enumerate(lines):
        if _ESCAPED.match(line):
            raise BadPatch("escaped")
        if envelope.begins(line):
            break
        if unified.begins(lines, index):
            return unified.parse(_without_transport_ends(lines, index))
    else:
        raise _no_patch(lines)
    lines = _without_transport_ends(lines, index)
    if not any(map(envelope.opens_section, lines)) and any(unified.begins(lines, i) for i in range(len(lines))):
        return unified.parse(lines)
    return envelope.parse(lines)


def parse_operation(action: Action, path: str, diff: str, target: str = "") -> FilePatch:
    """Parse the section of one file, without the lines around it. `target` moves the file. Raises BadPatch."""
    lines = _unwrapped(_lines(diff)) if diff else []
    if lines and _ESCAPED_SECTION.match(lines[0]):
        raise BadPatch("escaped")
    if any(map(envelope.begins, lines)):
        raise BadPatch("enveloped")
    if lines and action is Action.UPDATE:  # the file decides about its line ends; a new file takes those of the diff
        lines = _without_transport_ends(lines, 0)
    return envelope.parse_section(action, path, lines, target)


def _unwrapped(lines: list[bytes]) -> list[bytes]:
    """Return the lines of a section without a Markdown fence, a heredoc or the headers of a unified diff around it."""
    heredoc = _HEREDOC.fullmatch(lines[0])
    end = b"```" if lines[0].startswith(b"```") else heredoc[1] if heredoc else None
    if lines[-1].strip() == end:
        lines = lines[1:-1]
    headed = len(lines) > 2 and lines[0].startswith(b"--- ") and lines[1].startswith(b"+++ ")
    return lines[2:] if headed and lines[2].startswith(b"@@") else lines


def _lines(text: str) -> list[bytes]:
    try:
        raw = text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise BadPatch("not_text") from None
    if b"\n" not in raw:
        raw = raw.replace(b"\r", b"\n")
    return raw.removeprefix(BOM).removesuffix(b"\n").split(b"\n")


def _without_transport_ends(lines: list[bytes], header: int) -> list[bytes]:
    """Remove the CR of every line if the headers end in CRLF: the transport added it, the files do not have it."""
    if not lines[header].endswith(b"\r"):
        return lines
    return [line.removesuffix(b"\r") for line in lines]


def _no_patch(lines: list[bytes]) -> BadPatch | BinaryPatch:
    """Return the fault that says why the text contains no patch."""
    for number, line in enumerate(lines, 1):
        if envelope.opens_section(line):
            return BadPatch("no_begin", number, line.decode(errors="surrogateescape"))
        if line.startswith(b"@@ "):
            return BadPatch("no_file", number, line.decode(errors="surrogateescape"))
        if name := unified.binary_file(line):
            return BinaryPatch(name)
    return BadPatch("no_patch")
