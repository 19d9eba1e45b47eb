"""Puts what matters most into the first lines of a question: Claude Code shows only three lines of it."""

import re
from itertools import pairwise, takewhile

from handrail.ops.text.display import visible

_FILE = "diff --git "
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_USUAL = ("--- ", "+++ ", "index ", "new file mode 100644", "deleted file mode ")
_FIRST = ("Careful: ", "More rights")


def outlined(lines: list[str], targets: tuple[str, ...]) -> list[str]:
    """Return the lines of a question with warnings first, and one line instead of the header of each changed file.

    The lines of a file begin with a sign or a space and those of a command with a space, so no content can look like a
    header or a warning.
    """
    first = [line for line in lines if line.startswith(_FIRST)]
    rest = [line for line in lines if not line.startswith(_FIRST)]
    starts = [at for at, line in enumerate(rest) if line.startswith(_FILE)]
    if not starts:
        return [*first, *rest]
    name = visible(targets[0]) if len(targets) == len(starts) == 1 else ""
    parts = pairwise([*starts, len(rest)])
    return [*first, *rest[: starts[0]], *(line for part in parts for line in _block(rest[slice(*part)], name))]


def _block(lines: list[str], name: str) -> list[str]:
    """Return the lines of one file: what happens to it, then its changed lines."""
    header = [*takewhile(lambda line: not line.startswith("@@"), lines)]
    unusual = [line for line in header[1:] if not line.startswith(_USUAL)]
    title = f"{_verb(header)} {name or _path(header)}"
    body = lines[len(header) :]
    hunk = _HUNK.match(body[0]) if body else None
    if not hunk:
        return [title, *unusual, *body]
    before = [*takewhile(lambda line: line.startswith(" "), body[1:])]
    where = f" at line {int(hunk[1]) + len(before)}" if title.startswith("Change") else ""
    return [f"{title}{where}", *unusual, *body[1 + len(before) :]]


def _verb(header: list[str]) -> str:
    if any(line.startswith("new file mode") for line in header):
        return "Create"
    return "Delete" if any(line.startswith("deleted file mode") for line in header) else "Change"


def _path(header: list[str]) -> str:
    """Return the name of the file as its header shows it."""
    names = [line[4:] for line in header if line.startswith(("+++ ", "--- ")) and not line.endswith("/dev/null")]
    return re.sub(r'^("?)[ab]/', r"\1", names[-1]) if names else header[0].removeprefix(_FILE)
