"""Recognises a content that a model probably did not mean."""

import re

_FENCE = re.compile(rb"(`{3,}|~{3,})[\w+.-]*[ \t]*\r?\n")
_FENCED_FILES = (".md", ".markdown", ".mdx", ".rst", ".txt", ".adoc", ".org")


def has_escaped_breaks(data: bytes) -> bool:
    r"""Return whether a content has no line break, but the two characters `\n` more than once."""
    return b"\n" not in data and data.count(b"\\n") > 1


def fence_around(path: str, data: bytes) -> str:
    """Return the first line of a content in a Markdown fence, unless the file is text about code."""
    opened = _FENCE.match(data)
    if not opened or path.lower().endswith(_FENCED_FILES) or data.count(opened[1]) != 2:
        return ""
    return opened[0].decode().strip() if data.rstrip().endswith(b"\n" + opened[1]) else ""
