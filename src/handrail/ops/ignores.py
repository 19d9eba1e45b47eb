"""Ignore files (.gitignore, .ignore and their like), read as ripgrep reads them."""

import re
from collections.abc import Callable

from handrail.faults import InvalidPattern
from handrail.ops.globs import check, expand_braces, path_regex

DEFAULT_EXCLUSIONS = (
    *(".git", ".hg", ".svn", ".jj"),
    *("node_modules", "bower_components", ".next", ".nuxt", ".turbo", ".parcel-cache"),
    *("dist", "build", "target", ".gradle", ".terraform"),
    *(".venv", "venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox", ".nox"),
)
"""Directories that hold what tools made or keep for themselves; no search enters them unless told to."""

Verdict = bool | None
"""True: ignored; False: kept, whatever a weaker file says; None: nothing is said."""


def compile_ignores(text: str) -> Callable[[str, bool], Verdict]:
    """What an ignore file says about a path relative to the directory it lies in. The last line that fits decides."""
    anything, directories = [], []
    for line in reversed(_by_bytes(text.removeprefix("\ufeff")).split("\n")):
        rule = _rule(line.removesuffix("\r"))
        if rule is not None:
            regex, keeps, only_directories = rule
            directories.append((regex, keeps))
            if not only_directories:
                anything.append((regex, keeps))
    verdict_on_file, verdict_on_directory = _first_of(anything), _first_of(directories)
    return lambda path, is_directory: (verdict_on_directory if is_directory else verdict_on_file)(path)


def _first_of(rules: list[tuple[str, bool]]) -> Callable[[str], Verdict]:
    """One regular expression for all rules: the group that took part says which one decided."""
    if not rules:
        return lambda _path: None
    keeps = [keep for _, keep in rules]
    match = re.compile("|".join(f"({regex})" for regex, _ in rules), re.DOTALL).fullmatch

    def verdict(path: str) -> Verdict:
        found = match(path if path.isascii() else _by_bytes(path))
        return None if found is None else not keeps[(found.lastindex or 1) - 1]

    return verdict


def _by_bytes(text: str) -> str:
    """One character a byte: that is what `?` stands for in ignore files, for git and ripgrep alike."""
    return text.encode(errors="surrogateescape").decode("latin-1")


def _rule(line: str) -> tuple[str, bool, bool] | None:
    if line.startswith("#"):
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
    return "|".join(path_regex(each) for each in alternatives), keeps, only_directories
