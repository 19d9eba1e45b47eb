"""Builds the arguments of ripgrep for a request."""

import re

from handrail.kernel.search.long_lines import LongLines
from handrail.model.limits import Limits
from handrail.ops.glob.globs import literal_glob
from handrail.ops.search.regex import Pattern
from handrail.ops.search.scope import Scope, SearchRequest

_PLAIN_NAME = re.compile(r"[\w.-]+/?", re.ASCII)


def matching(pattern: Pattern, request: SearchRequest) -> list[str]:
    """Return the options for what matches."""
    argv = ["--no-config", "--color=never", "--no-mmap", "--crlf", "--null", "--with-filename"]
    argv += ["--case-sensitive" if request.case_sensitive else "--ignore-case"]
    if pattern.needs_pcre:
        argv.append("--pcre2")
    if request.multiline:
        argv += ["--multiline", "--multiline-dotall"]
    return [*argv, f"--regexp={pattern.for_ripgrep}"]


def printing_lines(pattern: Pattern, request: SearchRequest, limits: Limits) -> list[str]:
    """Return the options for what matches, and those that print the lines."""
    return [
        *matching(pattern, request),
        "--line-number",
        "--column",
        "--byte-offset",
        "--no-heading",
        "--no-context-separator",
        f"--context={request.context}",
        f"--max-columns={limits.line_bytes + LongLines.SLACK}",
        "--max-columns-preview",
    ]


def listing() -> list[str]:
    """Return the options that list files."""
    return ["--no-config", "--files", "--null"]


def within(scope: Scope) -> list[str]:
    """Return the options for what ripgrep can leave out by itself. `Scope.holds` decides about every path later.

    The limits of the scope are not among them.
    """
    argv = ["--hidden", "--no-ignore-parent", "--no-ignore-global", "--no-require-git"]
    if not scope.ignore_files:
        argv.append("--no-ignore")
    argv += [f"--glob=!{literal_glob(name)}/" for name in scope.exclusions]
    argv += [f"--glob=!{name}" for name in _plain_names(scope)]
    if scope.included is not None and scope.included.sieve is not None:
        argv += [f"--type-add=asked:{glob}" for glob in scope.included.sieve]
        argv.append("--type=asked")
    return argv


def limits_of(scope: Scope, *, depth: bool = True) -> list[str]:
    """Return the options for the limits of a scope, which ripgrep applies silently."""
    argv = [] if scope.max_depth is None or not depth else [f"--max-depth={scope.max_depth}"]
    return argv if scope.max_file_bytes is None else [*argv, f"--max-filesize={scope.max_file_bytes}"]


def at(places: list[str] | None) -> list[str]:
    """Return the arguments for the places to search; None: everywhere."""
    return ["--", *(["."] if places is None else (f"./{place}" for place in places))]


def tells_what_is_hidden(scope: Scope) -> bool:
    """Return whether what ripgrep passes over is hidden by ignore files and exclusions, and by nothing else."""
    sieved = scope.included is not None and scope.included.sieve is not None
    return not sieved and not _plain_names(scope)


def _plain_names(scope: Scope) -> tuple[str, ...]:
    return () if scope.fold_case else tuple(name for name in scope.exclude if _PLAIN_NAME.fullmatch(name))
