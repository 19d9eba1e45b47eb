"""Prints matches as ripgrep does: matching lines, lines around them, and marks between groups."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from handrail.ops.search.results import Match


def printed(
    matches: Iterable[Match], name: Callable[[str], str], before: int, after: int, *, numbers: bool
) -> Iterator[str]:
    """Yield `path:line:text` for matches and `path-line-text` around them; `--` separates groups."""
    began = False
    for path, found in groupby(matches, key=lambda match: match.path):
        last = 0
        here = list(found)
        lines = numbered(here, before, after) if before or after else _alone(here)
        for number, text, is_match in lines:
            if (before or after) and began and (number != last + 1 or not last):
                yield "--"
            began, last = True, number
            mark = ":" if is_match else "-"
            yield f"{name(path)}{mark}{f'{number}{mark}' if numbers else ''}{text}"


def _alone(matches: Iterable[Match]) -> Iterator[tuple[int, str, bool]]:
    for match in matches:
        yield match.line, match.content, True


def numbered(matches: list[Match], before: int, after: int) -> Iterator[tuple[int, str, bool]]:
    """Yield the lines of one file in order, each once, with its number and whether it matches."""
    lines: dict[int, tuple[str, bool]] = {}
    for match in matches:
        above, below = match.before[-before:] if before else (), match.after[:after]
        for back, text in enumerate(reversed(above), 1):
            lines.setdefault(match.line - back, (text, False))
        for further, text in enumerate(below, 1):
            lines.setdefault(match.line + further, (text, False))
        lines[match.line] = (match.content, True)
    for number in sorted(lines):
        yield number, *lines[number]
