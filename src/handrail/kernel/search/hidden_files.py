"""Looks through the files that ignore files and exclusions hide, after a search that found nothing."""

import os
import stat
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.kernel.deadline import Deadline
from handrail.kernel.fs.ignore_files import IGNORE_FILES, IgnoreFiles, Rules, ignored_by
from handrail.kernel.search.engine import Engine
from handrail.model.limits import Limits
from handrail.ops.search.regex import Pattern
from handrail.ops.search.results import Counts, Hidden, Named
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest

if TYPE_CHECKING:
    from handrail.kernel.search.ranking import RankRequest

EXCLUSIONS = "the default exclusions"
_PLACES = 2000
"""The most hidden places that are searched one by one; if there are more, the whole tree is searched again."""
_COMPILED = "__pycache__"
"""Holds what Python has compiled, many small files without text: no second look enters it."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMES = tuple(name for name in IGNORE_FILES if "/" not in name)


class HiddenFiles:
    """Counts the matches in the files that a scope hides, until a deadline."""

    def __init__(self, engine: Engine, dir_fd: int, scope: Scope, deadline: Deadline, limits: Limits) -> None:
        self._engine, self._dir_fd, self._scope, self._deadline = engine, dir_fd, scope, deadline
        self._limits = limits

    def search(self, pattern: Pattern, request: SearchRequest, passed_over: list[str] | None = None) -> Hidden | None:
        """Return the hidden matches of a content search that found nothing; None if there are none.

        With `passed_over`, look only there: a search of few places is faster than one of everything.
        """
        places = None if passed_over is None or len(passed_over) > _PLACES else self._searchable(passed_over)
        if not places and (places is not None or not self._any()):
            return None
        unhidden = self._scope.unhidden()
        asked = request._replace(scope=replace(unhidden, exclusions=(*unhidden.exclusions, _COMPILED)))
        counted = self._engine.count(self._dir_fd, pattern, asked, self._deadline, places=places)
        self._drop_binary_files(pattern, asked, counted, places or [])
        return self._hidden(sorted(counted.lines), sum(counted.lines.values()), counted.complete)

    def find(self) -> Hidden | None:
        """Return the hidden files of a search by name that found nothing; None if there are none."""
        if not self._any():
            return None
        asked = FindRequest(self._scope.unhidden(), limit=self._limits.skipped_names)
        found = self._engine.find(self._dir_fd, asked, self._deadline)
        return self._hidden(found.files, found.total, found.complete)

    def rank(self, request: "RankRequest") -> Hidden | None:
        """Return the hidden files that fit a query that no other file fits; None if there are none."""
        from handrail.kernel.search.ranking import FileRanking  # noqa: PLC0415  saves start-up time: few searches rank

        if not self._any():
            return None
        asked = request._replace(scope=self._scope.unhidden(), limit=self._limits.skipped_names)
        ranked = FileRanking(self._engine, self._dir_fd, asked, self._deadline, self._limits).result()
        return self._hidden([each.path for each in ranked.results], ranked.total, ranked.complete)

    def _drop_binary_files(self, pattern: Pattern, request: SearchRequest, counted: Counts, places: list[str]) -> None:
        """Drop the binary files: ripgrep searches them if they are named to it."""
        named = sorted(counted.lines.keys() & {*places})
        if named:
            from handrail.kernel.search.builtin import BuiltinEngine  # noqa: PLC0415  few searches get here

            text = BuiltinEngine(self._limits).count_in(self._dir_fd, pattern, request, named, self._deadline)
            for path in {*named} - text.lines.keys() - {*text.skipped.too_large.names}:
                del counted.lines[path]

    def _searchable(self, paths: list[str]) -> list[str]:
        """Return the files and directories that a search can enter; ripgrep would follow a link that is named to it."""
        never = {*self._scope.unhidden().exclusions, _COMPILED}
        return [path for path in paths if not never & {*path.split("/")} and _is_plain(self._dir_fd, path)]

    def _any(self) -> bool:
        """Return whether anything can be hidden. A tree without ignore files needs no second search."""
        if set(self._scope.exclusions) - set(self._scope.unhidden().exclusions):
            return True
        if not self._scope.ignore_files:
            return False
        if any(_exists(self._dir_fd, name) for name in IGNORE_FILES):
            return True
        asked = FindRequest(Scope(_NAMES, ignore_files=False), limit=1)
        return self._engine.find(self._dir_fd, asked, self._deadline, any_one=True).total > 0

    def _hidden(self, paths: list[str], total: int, complete: bool) -> Hidden | None:
        if not total and complete:
            return None
        by = {self._hider(path) for path in paths[: self._limits.skipped_names]}
        known = [name for name in (*reversed(IGNORE_FILES), EXCLUSIONS) if name in by]
        return Hidden(total, known, paths[0] if paths else "", complete)

    def _hider(self, path: str) -> str:
        """Return the name of the ignore file that hides a path, or the name of the exclusions."""
        names = path.split("/")
        if set(names[:-1]) & set(self._scope.exclusions):
            return EXCLUSIONS
        files, rules = IgnoreFiles(self._limits, Named(0)), Rules()
        fd = os.open(".", _DIRECTORY, dir_fd=self._dir_fd)
        try:
            for depth, name in enumerate(names, 1):
                prefix = "".join(f"{each}/" for each in names[: depth - 1])
                rules = files.rules_of(fd, set(os.listdir(fd)), prefix, rules)
                if kind := ignored_by(prefix + name, rules, is_directory=depth < len(names)):
                    return kind
                if depth < len(names):
                    below = os.open(name, _DIRECTORY, dir_fd=fd)
                    os.close(fd)
                    fd = below
        except OSError:  # the path was removed after the search
            pass
        finally:
            os.close(fd)
        return ""


def _is_plain(dir_fd: int, path: str) -> bool:
    """Return whether a path is a file or a directory, and no link."""
    with suppress(OSError):
        mode = os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode)
    return False


def _exists(dir_fd: int, name: str) -> bool:
    with suppress(OSError):
        os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        return True
    return False
