"""Shows the changed parts of a text with the lines around them."""

from handrail.ops.text.line_diff import changes, lines_of

_LEFT_OUT = "..."


def changed_parts(old: bytes, new: bytes, around: int) -> str:
    """Return the new lines and `around` lines before and after them; `...` stands for the lines between the parts.

    The whole text is returned if there was none before, or if nothing changed.
    """
    lines = new.decode(errors="replace").split("\n")
    ranges: list[tuple[int, int]] = []
    for _, _, first, last in changes(lines_of(old), lines_of(new)) if old else []:
        start, end = max(0, first - around), min(len(lines), last + around)
        if ranges and start <= ranges[-1][1]:
            start = ranges.pop()[0]
        ranges.append((start, end))
    if not ranges:
        return "\n".join(lines)
    parts, shown = [], 0
    for start, end in ranges:
        parts += [_LEFT_OUT] * (start > shown) + lines[start:end]
        shown = end
    return "\n".join([*parts, _LEFT_OUT] if shown < len(lines) else parts)
