"""Compiles the text of an ignore file (.gitignore, .ignore and similar) into rules, as ripgrep does."""

import re
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from handrail.model.faults import InvalidPattern
from handrail.model.limits import Limits
from handrail.ops.glob.globs import check, expand_braces, path_regex

_LIMITS = Limits()
DEFAULT_EXCLUSIONS = (
    *(".git", ".hg", ".svn", ".jj"),
    *("node_modules", "bower_components", ".next", ".nuxt", ".turbo", ".parcel-cache"),
    *("dist", "build", "target", ".gradle", ".terraform"),
    *(".venv", "venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox", ".nox"),
)
"""Directories that tools create for themselves. The searches of `context` and the scan for undo do not enter them."""
NEVER_SEARCHED = (".git",)
"""Directories that no search enters."""

Verdict = bool | None
"""True: ignored; False: kept, whatever a weaker file says; None: no rule fits."""


class TooManyRules(ValueError):  # noqa: N818  not an error: the caller skips the file
    """An ignore file has more rules than the limit allows."""


class Ignores(NamedTuple):
    """Holds a compiled ignore file."""

    verdict: Callable[[str, bool], Verdict]
    """Takes a path relative to the directory of the file, and whether the path is a directory."""
    rules: int
    """The number of rules, with braces expanded."""


def compile_ignores(text: str, most: int) -> Ignores:
    """Compile the text of an ignore file; the last line that fits decides. Raises TooManyRules above `most` rules."""
    anything, directories, count = [], [], 0
    for line in reversed(_by_bytes(text.removeprefix("\ufeff")).split("\n")):
        rule = _rule(line.removesuffix("\r"))
        if rule is not None:
            regexes, keeps, only_directories = rule
            count += len(regexes)
            if count > most:
                raise TooManyRules
            regex = "|".join(regexes)
            directories.append((regex, keeps))
            if not only_directories:
                anything.append((regex, keeps))
    verdict_on_file, verdict_on_directory = _first_of(anything), _first_of(directories)
    return Ignores(lambda path, is_directory: (verdict_on_directory if is_directory else verdict_on_file)(path), count)


def _first_of(rules: list[tuple[str, bool]]) -> Callable[[str], Verdict]:
    """Return a function that gives the verdict of the first rule that matches a path.

    Each run of rules with the same verdict becomes one regular expression.
    """
    runs = [
        (re.compile("|".join(regex for regex, _ in run), re.DOTALL).fullmatch, keeps)
        for keeps, run in groupby(rules, key=itemgetter(1))
    ]

    def verdict(path: str) -> Verdict:
        path = path if path.isascii() else _by_bytes(path)
        return next((not keeps for match, keeps in runs if match(path)), None)

    return verdict


def _by_bytes(text: str) -> str:
    """Return a text with one character per byte: `?` stands for one byte in ignore files, in git and in ripgrep."""
    return text.encode(errors="surrogateescape").decode("latin-1")


def _rule(line: str) -> tuple[list[str], bool, bool] | None:
    """Return the regular expressions of a line, whether `!` makes it keep paths, and whether only directories fit."""
    if line.startswith("#") or len(line) > _LIMITS.pattern_chars:
        return None
    if not line.endswith("\\ "):
        line = line.rstrip()
    keeps = line.startswith("!")
    line = line[keeps:]
    anchored = line.startswith("/")
    line = line[anchored:]
    only_directories = line.endswith("/")
    line = line[: len(line) - only_directories]
    if not line or line.endswith("\\"):
        return None
    if not anchored and "/" not in line and not line.startswith("**/"):
        line = f"**/{line}"
    if line.endswith("/**"):
        line += "/*"
    try:
        check(line)
        alternatives = expand_braces(line)
    except InvalidPattern:
        return None
    return [path_regex(each) for each in alternatives], keeps, only_directories
