"""Finds text in a file and replaces it."""

import re
from collections.abc import Iterable, Iterator

from handrail.model.faults import InvalidPattern, NoMatch, NotUnique, PatternTooSlow, TooLarge
from handrail.model.limits import Limits
from handrail.ops.text.buffer import TextBuffer, find_all, to_lf
from handrail.ops.text.display import one_line
from handrail.ops.text.nearest import nearest

Span = tuple[int, int, str]

_GROUP = re.compile(r"\$(?:(\d{1,2})|\{(\w+)\}|\$)")


def replace_once(path: str, data: bytes, find: str, new: str) -> bytes:
    """Replace the only occurrence; overlapping occurrences count as several. Raises NoMatch or NotUnique."""
    text, wanted = TextBuffer.of(data), to_lf(find)
    found = find_all(text.lf, wanted, overlapping=True)
    if not found:
        raise no_match(path, data, find)
    if len(found) > 1:
        raise NotUnique(path, find, [text.line_of(at) for at in found])
    return text.replace([(found[0], found[0] + len(wanted), new)])


def replace_all(path: str, data: bytes, find: str, new: str, limits: Limits) -> tuple[bytes, int]:
    """Replace every occurrence; return the new bytes and the number of occurrences."""
    text, places = find_places(data, find)
    return replace_places(path, text, places, new, limits), len(places)


def replace_regex(path: str, data: bytes, pattern: str, new: str, limits: Limits) -> tuple[bytes, int]:
    r"""Replace every match; return the new bytes and the number of matches.

    `^` and `$` match at every line. Groups in `new` are `$1`, `${name}` and `\1`.
    """
    import regex  # noqa: PLC0415  slow to import; `re` has no time limit

    from handrail.ops.search.regex import refuse_huge  # noqa: PLC0415  most edits are by plain text

    refuse_huge(pattern)
    text, template, seconds = TextBuffer.of(data), _template(new), limits.regex_seconds
    try:
        matches = list(regex.compile(pattern, regex.MULTILINE).finditer(text.lf, timeout=seconds))
    except regex.error as error:
        at = int(getattr(error, "pos", 0) or 0)
        raise InvalidPattern("regex", pattern, str(getattr(error, "msg", error)), at, re.escape(pattern)) from None
    except TimeoutError:
        raise PatternTooSlow(pattern, seconds) from None
    try:
        expanded = ((match.start(), match.end(), match.expand(template)) for match in matches)
        spans = list(_bounded(path, text, expanded, limits))
    except (regex.error, IndexError):
        raise InvalidPattern("replacement", new, "unknown group", 0, "$1") from None
    return text.replace(spans), len(spans)


def _bounded(path: str, text: TextBuffer, spans: Iterable[Span], limits: Limits) -> Iterator[Span]:
    """Yield the spans. Raises TooLarge as soon as the result is larger than an edited file may be."""
    size = len(text.lf)
    for start, end, new in spans:
        size += len(new) - (end - start)
        if size > limits.edit_bytes:
            raise TooLarge(path, size, limits.edit_bytes)
        yield start, end, new


def _template(new: str) -> str:
    """Return the replacement in the notation of the regex engine."""
    return _GROUP.sub(lambda m: f"\\g<{m[1] or m[2]}>" if m[1] or m[2] else "$", new)


def no_match(path: str, data: bytes, find: str) -> NoMatch:
    """Return the fault for a text that was not found, with the most similar place."""
    near = nearest(data, find.encode(errors="surrogateescape"), partial=True)
    if near is None:
        return NoMatch(path, find)
    return NoMatch(path, find, near.line, one_line(near.found.decode(errors="surrogateescape")), near.difference)


def find_places(data: bytes, find: str) -> tuple[TextBuffer, list[tuple[int, int]]]:
    """Return the text, and the spans in its LF form where `find` occurs, in order and without overlap."""
    text, wanted = TextBuffer.of(data), to_lf(find)
    return text, [(at, at + len(wanted)) for at in find_all(text.lf, wanted)]


def replace_places(path: str, text: TextBuffer, places: list[tuple[int, int]], new: str, limits: Limits) -> bytes:
    """Replace the spans that `find_places` returned."""
    return text.replace(list(_bounded(path, text, ((start, end, new) for start, end in places), limits)))
