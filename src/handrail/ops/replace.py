"""Finding text and replacing it. Facts in, facts out."""

from handrail.faults import NoMatch, NotUnique
from handrail.ops.nearest import nearest
from handrail.ops.show import one_line
from handrail.ops.text import Text, find_all, to_lf


def replace_once(path: str, data: bytes, find: str, new: str) -> bytes:
    """Replace the only occurrence; overlapping ones count as several."""
    text, wanted = Text.of(data), to_lf(find)
    found = find_all(text.lf, wanted, overlapping=True)
    if not found:
        raise no_match(path, data, find)
    if len(found) > 1:
        raise NotUnique(path, find, [text.line_of(at) for at in found])
    return text.replace([(found[0], found[0] + len(wanted), new)])


def no_match(path: str, data: bytes, find: str) -> NoMatch:
    """The fault, with the place that is most like what was not found."""
    near = nearest(data, find.encode(errors="surrogateescape"))
    if near is None:
        return NoMatch(path, find)
    return NoMatch(path, find, near.line, one_line(near.found.decode(errors="surrogateescape")), near.difference)


def find_places(data: bytes, find: str) -> tuple[Text, list[tuple[int, int]]]:
    """Where `find` occurs, left to right and not overlapping, in the text with LF line ends."""
    text, wanted = Text.of(data), to_lf(find)
    return text, [(at, at + len(wanted)) for at in find_all(text.lf, wanted)]


def replace_places(text: Text, places: list[tuple[int, int]], new: str) -> bytes:
    return text.replace([(start, end, new) for start, end in places])
