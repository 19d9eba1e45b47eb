"""Finding text and replacing it. Facts in, facts out."""

import re

from handrail.faults import InvalidPattern, NoMatch, NotUnique, PatternTooSlow
from handrail.ops.nearest import nearest
from handrail.ops.show import one_line
from handrail.ops.text import Text, find_all, to_lf

_GROUP = re.compile(r"\$(?:(\d{1,2})|\{(\w+)\}|\$)")


def replace_once(path: str, data: bytes, find: str, new: str) -> bytes:
    """Replace the only occurrence; overlapping ones count as several."""
    text, wanted = Text.of(data), to_lf(find)
    found = find_all(text.lf, wanted, overlapping=True)
    if not found:
        raise no_match(path, data, find)
    if len(found) > 1:
        raise NotUnique(path, find, [text.line_of(at) for at in found])
    return text.replace([(found[0], found[0] + len(wanted), new)])


def replace_all(data: bytes, find: str, new: str) -> tuple[bytes, int]:
    text, places = find_places(data, find)
    return replace_places(text, places, new), len(places)


def replace_regex(data: bytes, pattern: str, new: str, seconds: float) -> tuple[bytes, int]:
    r"""Replace every match. `^` and `$` match at lines; groups in `new` are `$1`, `${name}` and `\1`."""
    import regex  # noqa: PLC0415  the stdlib's cannot be stopped

    text, template = Text.of(data), _template(new)
    try:
        matches = list(regex.compile(pattern, regex.MULTILINE).finditer(text.lf, timeout=seconds))
    except regex.error as error:
        at = int(getattr(error, "pos", 0) or 0)
        raise InvalidPattern("regex", pattern, str(getattr(error, "msg", error)), at, re.escape(pattern)) from None
    except TimeoutError:
        raise PatternTooSlow(pattern, seconds) from None
    try:
        spans = [(match.start(), match.end(), match.expand(template)) for match in matches]
    except (regex.error, IndexError):
        raise InvalidPattern("replacement", new, "unknown group", 0, "$1") from None
    return text.replace(spans), len(spans)


def _template(new: str) -> str:
    """The replacement in the engine's own notation."""
    return _GROUP.sub(lambda m: f"\\g<{m[1] or m[2]}>" if m[1] or m[2] else "$", new)


def no_match(path: str, data: bytes, find: str) -> NoMatch:
    """The fault, with the place that is most like what was not found."""
    near = nearest(data, find.encode(errors="surrogateescape"), partial=True)
    if near is None:
        return NoMatch(path, find)
    return NoMatch(path, find, near.line, one_line(near.found.decode(errors="surrogateescape")), near.difference)


def find_places(data: bytes, find: str) -> tuple[Text, list[tuple[int, int]]]:
    """Where `find` occurs, left to right and not overlapping, in the text with LF line ends."""
    text, wanted = Text.of(data), to_lf(find)
    return text, [(at, at + len(wanted)) for at in find_all(text.lf, wanted)]


def replace_places(text: Text, places: list[tuple[int, int]], new: str) -> bytes:
    return text.replace([(start, end, new) for start, end in places])
