"""Unified diffs of two versions of a file."""

import difflib

from handrail.paths import quote


def file_diff(path: str, before: bytes | None, after: bytes | None) -> str:
    old, new = ((data or b"").decode(errors="surrogateescape").split("\n") for data in (before, after))
    source, target = ("/dev/null" if data is None else quote(s + path) for s, data in (("a/", before), ("b/", after)))
    return "\n".join(difflib.unified_diff(old, new, source, target, lineterm=""))
