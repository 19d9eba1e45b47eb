"""Converts the indentation of added lines to the file's, if the patch uses another one."""

from collections.abc import Iterable


def indent(line: bytes) -> bytes:
    """Return the white space at the start of a line."""
    return line[: len(line) - len(line.lstrip())]


class Indentation:
    """Converts indentation. It learns from the lines that the patch and the file have in common."""

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._file_indent: dict[bytes, bytes] = {}
        for ours, theirs in pairs:
            if ours.strip():
                self._file_indent.setdefault(indent(ours), indent(theirs))

    def learn(self, ours: bytes, theirs: bytes) -> None:
        """Learn from a pair of lines that is nearer to the next lines: it overrides earlier pairs."""
        if ours.strip():
            self._file_indent[indent(ours)] = indent(theirs)

    def fit(self, line: bytes) -> bytes:
        """Return an added line with the file's indentation."""
        if not line.strip():
            return line
        return self._convert(indent(line)) + line.lstrip()

    def _convert(self, own: bytes) -> bytes:
        known = self._file_indent
        if own in known:
            return known[own]
        base = max((seen for seen in known if own.startswith(seen)), key=len, default=None)
        if base is not None:
            return known[base] + self._translate(own[len(base) :])
        longer = min((seen for seen in known if seen.startswith(own)), key=len, default=None)
        if longer is None:
            return own
        less, theirs = self._translate(longer[len(own) :]), known[longer]
        return theirs[: max(len(theirs) - len(less), 0)]

    def _translate(self, extra: bytes) -> bytes:
        """Convert additional indentation to the same number of steps in the file's unit."""
        ours, theirs = extra[:1], next((text[:1] for text in self._file_indent.values() if text), extra[:1])
        steps = sorted(
            (len(own), len(other))
            for own, other in self._file_indent.items()
            if not own.strip(ours) and not other.strip(theirs)
        )
        if len(steps) == 1 and ours != theirs:
            steps.insert(0, (0, 0))
        if len(steps) < 2 or extra.strip(ours):
            return extra
        wide, other_wide = steps[1][0] - steps[0][0], steps[1][1] - steps[0][1]
        if other_wide <= 0:
            return extra
        count = len(extra) * other_wide // wide
        return theirs * count + (ours * (len(extra) - count * wide // other_wide) if ours != theirs else b"")
