"""Finds text in the content of a file and replaces it."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from handrail.model.faults import InvalidPattern, MatchCount, NoMatch, NotUnique, PatternTooSlow, TooLarge
from handrail.model.limits import Limits
from handrail.ops.text.buffer import TextBuffer, find_all, to_lf
from handrail.ops.text.display import one_line
from handrail.ops.text.nearest import nearest

Span = tuple[int, int, str]
"""Start, end and replacement."""

_GROUP = re.compile(r"\$(?:(\d{1,2})|\{(\w+)\}|\$)")


def replace_once(path: str, data: bytes, find: str, new: str) -> bytes:
    """Replace the only occurrence of a text. Overlapping occurrences count as several."""
    text, wanted = TextBuffer.of(data), to_lf(find)
    found = find_all(text.lf, wanted, overlapping=True)
    if not found:
        raise _no_match(path, data, find)
    if len(found) > 1:
        raise NotUnique(path, find, [text.line_of(at) for at in found])
    return text.replace([(found[0], found[0] + len(wanted), new)])


class FirstReplaced(NamedTuple):
    """Holds the content after the first occurrence was replaced."""

    data: bytes
    line: int
    """The line of the first occurrence, counted from 1."""
    found: int
    """The number of occurrences in the old content."""


def replace_first(path: str, data: bytes, find: str, new: str, limits: Limits) -> FirstReplaced:
    """Replace the first occurrence of a text. Raises NoMatch if there is none."""
    text, spans = _find_some(path, data, find)
    return FirstReplaced(_replace_spans(path, text, spans[:1], new, limits), text.line_of(spans[0][0]), len(spans))


def replace_expected(path: str, data: bytes, find: str, new: str, expected: int, limits: Limits) -> bytes:
    """Replace all occurrences of a text. Raises MatchCount if their number is not `expected`, NoMatch if it is 0."""
    text, spans = _find_some(path, data, find)
    if len(spans) != expected:
        raise MatchCount(path, expected, len(spans))
    return _replace_spans(path, text, spans, new, limits)


def replace_all(path: str, data: bytes, find: str, new: str, limits: Limits) -> tuple[bytes, int]:
    """Replace all occurrences of a text. Returns the new content and the number of occurrences, which may be 0."""
    text, spans = _find(data, find)
    return _replace_spans(path, text, spans, new, limits), len(spans)


def replace_found(path: str, data: bytes, find: str, new: str, limits: Limits) -> tuple[bytes, int]:
    """Replace all occurrences of a text like `replace_all`. Raises NoMatch if there is none."""
    text, spans = _find_some(path, data, find)
    return _replace_spans(path, text, spans, new, limits), len(spans)


def replace_regex(path: str, data: bytes, pattern: str, new: str, limits: Limits) -> tuple[bytes, int]:
    r"""Replace every match of a regular expression. Returns the new content and the number of matches.

    `^` and `$` match at every line. Groups in `new` are `$1`, `${name}` and `\1`.
    """
    import regex  # noqa: PLC0415  the re module of the standard library has no timeout

    from handrail.ops.search.regex import refuse_huge  # noqa: PLC0415  most edits use plain text

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
    """Yield the spans. Raises TooLarge as soon as the result would exceed the size of an editable file."""
    size = len(text.lf)
    for start, end, new in spans:
        size += len(new) - (end - start)
        if size > limits.edit_bytes:
            raise TooLarge(path, size, limits.edit_bytes)
        yield start, end, new


def _template(new: str) -> str:
    """Translate the groups of a replacement into the notation of the regex module."""
    return _GROUP.sub(lambda m: f"\\g<{m[1] or m[2]}>" if m[1] or m[2] else "$", new)


def _no_match(path: str, data: bytes, find: str) -> NoMatch:
    """Make the fault; name the place in the file that is most similar to the text."""
    near = nearest(data, find.encode(errors="surrogateescape"), partial=True)
    if near is None:
        return NoMatch(path, find)
    return NoMatch(path, find, near.line, one_line(near.found.decode(errors="surrogateescape")), near.difference)


def _find_some(path: str, data: bytes, find: str) -> tuple[TextBuffer, list[tuple[int, int]]]:
    text, spans = _find(data, find)
    if not spans:
        raise _no_match(path, data, find)
    return text, spans


def _find(data: bytes, find: str) -> tuple[TextBuffer, list[tuple[int, int]]]:
    """Find the spans of a text, left to right and not overlapping, in the content with LF line ends."""
    text, wanted = TextBuffer.of(data), to_lf(find)
    return text, [(at, at + len(wanted)) for at in find_all(text.lf, wanted)]


def _replace_spans(path: str, text: TextBuffer, spans: list[tuple[int, int]], new: str, limits: Limits) -> bytes:
    return text.replace(list(_bounded(path, text, ((start, end, new) for start, end in spans), limits)))
