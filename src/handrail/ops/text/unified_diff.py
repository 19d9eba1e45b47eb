"""Unified diffs as git prints them, for previews and approvals. What is printed here, `ops/patch` applies."""

from collections.abc import Iterable, Iterator

from handrail.model.paths import quote
from handrail.ops.patch.model import PatchedContent, PatchOutcome
from handrail.ops.text.line_diff import OPEN, Span, changes, lines_of

_CONTEXT = 3
_EXECUTABLE, _PLAIN = "100755", "100644"


def show(outcomes: Iterable[PatchOutcome]) -> str:
    """All that a patch does, file by file. A move is shown once, at its new name."""
    outcomes = list(outcomes)
    sources = {outcome.path: outcome.before for outcome in outcomes}
    shown = []
    for outcome in outcomes:
        before = sources[outcome.moved_from] if outcome.moved_from else outcome.before
        if not outcome.moved_to:
            shown.append(_change(outcome, before))
    return "".join(shown)


def _change(outcome: PatchOutcome, before: PatchedContent | None) -> str:
    after = outcome.after
    return unified(
        outcome.path,
        before.data if before else None,
        after.data if after else None,
        moved_from=outcome.moved_from,
        old_mode=before.mode if before else None,
        new_mode=after.mode if after else None,
    )


def unified(
    path: str,
    before: bytes | None,
    after: bytes | None,
    *,
    moved_from: str = "",
    old_mode: int | None = None,
    new_mode: int | None = None,
    exact: bool = False,
) -> str:
    """One file's change; `""` if there is none. None is a file that isn't there.

    `exact`: with all bits of the modes, where they are known, and not only the one that git keeps.
    """
    source = moved_from or path
    old_git, new_git = (_exact_mode(mode) if exact else _git_mode(mode) for mode in (old_mode, new_mode))
    head = [f"diff --git {quote('a/' + source)} {quote('b/' + path)}\n"]
    if before is None:
        head.append(f"new file mode {new_git}\n")
    elif after is None:
        head.append(f"deleted file mode {old_git}\n")
    else:
        if old_mode is not None and new_mode is not None and old_git != new_git:
            head.append(f"old mode {old_git}\nnew mode {new_git}\n")
        if moved_from:
            head.append(f"rename from {quote(moved_from)}\nrename to {quote(path)}\n")
    body = "".join(hunks(before or b"", after or b""))
    if body:
        head.append(f"--- {_name('a/' + source, there=before is not None)}\n")
        head.append(f"+++ {_name('b/' + path, there=after is not None)}\n")
    return "".join(head) + body if body or len(head) > 1 else ""


def hunks(before: bytes, after: bytes) -> Iterator[str]:
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


def _name(name: str, *, there: bool) -> str:
    """As git does, a tab marks the end of a name that has spaces."""
    if not there:
        return "/dev/null"
    return quote(name) + ("\t" if " " in name else "")


def _git_mode(mode: int | None) -> str:
    return _EXECUTABLE if mode is not None and mode & 0o100 else _PLAIN


def _exact_mode(mode: int | None) -> str:
    return _PLAIN if mode is None else f"10{mode & 0o7777:04o}"
