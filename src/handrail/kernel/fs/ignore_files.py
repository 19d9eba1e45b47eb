"""Reads ignore files (`.gitignore` and similar files) by handle, and decides which paths they ignore."""

import errno
import os
from collections.abc import Callable

from handrail.kernel.fs.small_files import open_file, read_small
from handrail.model.limits import Limits
from handrail.ops.glob.ignore_rules import TooManyRules, Verdict, compile_ignores
from handrail.ops.search.results import Named

Rules = dict[str, list[tuple[int, Callable[[str, bool], Verdict]]]]

_UNFIT = (errno.EFBIG, errno.EINVAL)

IGNORE_FILES = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")


class IgnoreFiles:
    """Reads the ignore files of one walk, within its limits; names the ignore files that it cannot use."""

    def __init__(self, limits: Limits, unfit: Named) -> None:
        self._limits, self._unfit, self._left = limits, unfit, limits.ignore_rules

    def rules_of(self, fd: int, names: set[str], prefix: str, above: Rules) -> Rules:
        """Return the rules in force in a directory: its own rules first, then those of its parents."""
        rules = above
        for kind in IGNORE_FILES:
            if kind.partition("/")[0] in names and (text := self._text(fd, kind, prefix)):
                try:
                    found = compile_ignores(text, self._left)
                except TooManyRules:
                    self._unfit.add(prefix + kind)
                    continue
                self._left -= found.rules
                rules = {**rules, kind: [(len(prefix), found.verdict), *rules.get(kind, [])]}
        return rules

    def _text(self, fd: int, kind: str, prefix: str) -> str | None:
        try:
            file = open_file(fd, kind)
        except OSError:
            return None
        try:
            return read_small(file, self._limits.ignore_bytes).decode(errors="surrogateescape")
        except OSError as error:
            if error.errno in _UNFIT:
                self._unfit.add(prefix + kind)
            return None
        finally:
            os.close(file)


def ignored(path: str, rules: Rules, *, is_directory: bool) -> bool:
    """Return whether the rules ignore a path."""
    return ignored_by(path, rules, is_directory=is_directory) is not None


def ignored_by(path: str, rules: Rules, *, is_directory: bool) -> str | None:
    """Return the kind of ignore file whose rule ignores a path; None if no rule does."""
    for kind in IGNORE_FILES:
        for start, verdict in rules.get(kind, ()):
            is_ignored = verdict(path[start:], is_directory)
            if is_ignored is not None:
                return kind if is_ignored else None
    return None
