"""Words what is wrong with the text of a patch, and what to send instead."""

from handrail.model.faults import BadPatch
from handrail.ops.text.display import one_line
from handrail.tools.messages import Facts, Message, Words

REASONS = {
    "not_text": "it is not text",
    "no_patch": "it contains no patch",
    "no_begin": "*** Begin Patch is missing",
    "no_end": "*** End Patch is missing",
    "no_sections": "it has no file sections",
    "no_file": "it names no file",
    "no_hunks": "it has no hunks",
    "no_lines": "a hunk has no lines",
    "bad_header": "a header is invalid",
    "bad_line": "a line does not begin with a space, + or -",
    "bad_end": "there is text after the end of the patch",
    "old_lines": "a new file has old lines",
    "combined": "combined diffs are not supported",
    "enveloped": "*** Begin Patch does not belong into the diff of one file",
    "escaped": "\\n stands between its lines instead of line breaks",
}
_HINTS = {
    "no_begin": "Put the line *** Begin Patch before the first section, and send the whole patch again",
    "no_end": "Put the line *** End Patch after the last section, and send the whole patch again",
    "bad_line": "Begin each context line with a space, each removed line with -, each added line with +",
    "bad_header": "Begin each section with *** Add File: , *** Update File: or *** Delete File: and the path",
    "no_hunks": "Add the lines to change: @@, then lines that begin with a space, - or +",
    "no_lines": "Add the lines to change: @@, then lines that begin with a space, - or +",
    "old_lines": "Begin every line of a new file with +",
    "enveloped": "Send only the lines from @@ on, between the header of the file and *** End Patch",
    "escaped": "Send the same patch with a line break in place of each \\n",
}


def _bad_patch(facts: Facts) -> str:
    where = f" (line {facts['line']} of the patch: {one_line(facts['text'])})" if facts["line"] else ""
    return f"Cannot read the patch: {REASONS[facts['why']]}{where}"


def _hint(facts: Facts) -> str:
    return _HINTS.get(facts["why"], "Send a unified diff, or *** Begin Patch … *** End Patch")


PATCHES: Words = {BadPatch: Message("invalid_patch", _bad_patch, _hint)}
