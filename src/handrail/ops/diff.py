"""Unified diffs of two versions of a file."""

import difflib

from handrail.paths import quote


def file_diff(path: str, before: bytes | None, after: bytes | None) -> str:
    old, new = _lines(before or b""), _lines(after or b"")
    source, target = ("/dev/null" if data is None else quote(s + path) for s, data in (("a/", before), ("b/", after)))
    return "\n".join(difflib.unified_diff(old, new, source, target, lineterm=""))


def _lines(data: bytes) -> list[str]:
    *lines, last = data.decode(errors="surrogateescape").split("\n")
    return [*lines, f"{last}\n\\ No newline at end of file"] if last else lines
