"""Writes a change as a list of hunks, each an object with its line numbers and signed lines."""

import re
from typing import Any

from handrail.ops.text.unified_diff import hunks

_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")
_NUMBERS = ("oldStart", "oldLines", "newStart", "newLines")


def structured_patch(before: bytes, after: bytes, most: int) -> list[dict[str, Any]]:
    """Return the hunks of a change; those that begin after `most` characters are left out."""
    made: list[dict[str, Any]] = []
    size = 0
    for line in hunks(before, after):
        if header := _HEADER.fullmatch(line):
            if size > most:
                break
            numbers = [1 if each is None else int(each) for each in header.groups()]
            made.append(dict(zip(_NUMBERS, numbers, strict=True)) | {"lines": []})
            continue
        size += len(line)
        made[-1]["lines"].append(line.removesuffix("\n").encode(errors="replace").decode())
    return made
