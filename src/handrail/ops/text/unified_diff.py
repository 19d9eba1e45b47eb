"""Writes unified diffs as git prints them, for previews and approvals. `ops/patch` can apply every such diff."""

from collections.abc import Iterator

from handrail.model.paths import quote
from handrail.ops.text.line_diff import OPEN, Span, changes, lines_of

_CONTEXT = 3
_EXECUTABLE, _PLAIN = "100755", "100644"


def unified(
    path: str,
    before: bytes | None,
    after: bytes | None,
    *,
    old_mode: int | None = None,
    new_mode: int | None = None,
    exact: bool = False,
) -> str:
    """Return the diff of one file; `""` if nothing changes. None stands for a file that does not exist.

    `exact`: show all known bits of the modes, not only the executable bit that git keeps.
    """
    old_git, new_git = (_exact_mode(mode) if exact else _git_mode(mode) for mode in (old_mode, new_mode))
    head = [f"diff --git {quote('a/' + path)} {quote('b/' + path)}\n"]
    if before is None:
        head.append(f"new file mode {new_git}\n")
    elif after is None:
        head.append(f"deleted file mode {old_git}\n")
    elif old_mode is not None and new_mode is not None and old_git != new_git:
        head.append(f"old mode {old_git}\nnew mode {new_git}\n")
    body = "".join(hunks(before or b"", after or b""))
    if body:
        head.append(f"--- {_name('a/' + path, exists=before is not None)}\n")
        head.append(f"+++ {_name('b/' + path, exists=after is not None)}\n")
    return "".join(head) + body if body or len(head) > 1 else ""


def hunks(before: bytes, after: bytes) -> Iterator[str]:
    """Yield the lines of all hunks, their `@@` lines included."""
    old, new = lines_of(before), lines_of(after)
    for group in _grouped(changes(old, new)):
        start, end = max(group[0][0] - _CONTEXT, 0), min(group[-1][1] + _CONTEXT, len(old))
        new_start = group[0][2] - (group[0][0] - start)
        new_end = group[-1][3] + end - group[-1][1]
        yield f"@@ -{_range(start, end)} +{_range(new_start, new_end)} @@\n"
        at = start
        for low, high, new_low, new_high in group:
            yield from _signed(" ", old[at:low])
            yield from _signed("-", old[low:high])
            yield from _signed("+", new[new_low:new_high])
            at = high
        yield from _signed(" ", old[at:end])


def _grouped(spans: list[Span]) -> Iterator[list[Span]]:
    """Yield groups of spans that are near enough to share one hunk."""
    group: list[Span] = []
    for span in spans:
        if group and span[0] - group[-1][1] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(span)
    if group:
        yield group


def _signed(sign: str, lines: list[bytes]) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{line.removesuffix(OPEN).decode(errors='surrogateescape')}\n"
        if line.endswith(OPEN):
            yield "\\ No newline at end of file\n"


def _range(start: int, end: int) -> str:
    if end - start == 1:
        return str(start + 1)
    return f"{start + (end > start)},{end - start}"


def _name(name: str, *, exists: bool) -> str:
    """Return a name for a header; as in git, a tab marks the end of a name with spaces."""
    if not exists:
        return "/dev/null"
    return quote(name) + ("\t" if " " in name else "")


def _git_mode(mode: int | None) -> str:
    return _EXECUTABLE if mode is not None and mode & 0o100 else _PLAIN


def _exact_mode(mode: int | None) -> str:
    return _PLAIN if mode is None else f"10{mode & 0o7777:04o}"
