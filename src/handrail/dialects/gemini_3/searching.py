"""Declares the tools that find files by content and by name."""

from itertools import groupby

from handrail.dialects.gemini_3.dialect import Gemini3Params, absolute, dialect
from handrail.model.editor_faults import EmptyPattern
from handrail.model.effects import Effect
from handrail.model.faults import PatternTooSlow
from handrail.model.paths import quote
from handrail.ops.search.matcher import LineMatcher
from handrail.ops.search.regex import parse
from handrail.ops.search.results import Match
from handrail.ops.search.rg_format import numbered
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest
from handrail.runtime.call import Call
from handrail.tools.schema import field

_FEW = 3
"""Up to this number of matches, lines around them are shown although the call does not ask for them."""
_AROUND_ONE, _AROUND_FEW = 50, 15


class GrepSearch3(Gemini3Params):
    pattern: str = field(
        "The pattern to search for. By default, treated as a Rust-flavored regular expression. Use '\\b' for "
        "precise symbol matching (e.g., '\\bMatchMe\\b')."
    )
    dir_path: str | None = field(
        "Directory or file to search. Directories are searched recursively. Relative paths are resolved against "
        "current working directory. Defaults to current working directory ('.') if omitted.",
        default=None,
        path=True,
    )
    include_pattern: str | None = field(
        "Glob pattern to filter files (e.g., '*.ts', 'src/**'). Recommended for large repositories to reduce noise. "
        "Defaults to all files if omitted.",
        default=None,
    )
    exclude_pattern: str | None = field(
        "Optional: A regular expression pattern to exclude from the search results. If a line matches both the "
        "pattern and the exclude_pattern, it will be omitted.",
        default=None,
    )
    names_only: bool = field(
        "Optional: If true, only the file paths of the matches will be returned, without the line content or line "
        "numbers. This is useful for gathering a list of files.",
        default=False,
    )
    case_sensitive: bool = field(
        "If true, search is case-sensitive. Defaults to false (ignore case) if omitted.", default=False
    )
    fixed_strings: bool = field(
        "If true, treats the `pattern` as a literal string instead of a regular expression. Defaults to false (basic "
        "regex) if omitted.",
        default=False,
    )
    context: int | None = field(
        "Show this many lines of context around each match (equivalent to grep -C). Defaults to 0 if omitted.",
        default=None,
        ge=0,
    )
    after: int | None = field(
        "Show this many lines after each match (equivalent to grep -A). Defaults to 0 if omitted.", default=None, ge=0
    )
    before: int | None = field(
        "Show this many lines before each match (equivalent to grep -B). Defaults to 0 if omitted.", default=None, ge=0
    )
    no_ignore: bool = field(
        "If true, searches all files including those usually ignored (like in .gitignore, build/, dist/, etc). "
        "Defaults to false if omitted.",
        default=False,
    )
    max_matches_per_file: int | None = field(
        "Optional: Maximum number of matches to return per file. Use this to prevent being overwhelmed by repetitive "
        "matches in large files.",
        default=None,
        ge=1,
    )
    total_max_matches: int | None = field(
        "Optional: Maximum number of total matches to return. Use this to limit the overall size of the response. "
        "Defaults to 100 if omitted.",
        default=None,
        ge=1,
    )


@dialect.tool("grep_search", Effect.READ, bounded=True)
def grep_search(p: GrepSearch3, c: Call) -> str:
    """Search for a regular expression pattern within file contents."""
    most = p.total_max_matches or c.limits.gemini_3_matches
    filtered = p.exclude_pattern is not None or p.max_matches_per_file is not None
    limit = max(most, c.limits.gemini_matches) if filtered else most
    before = p.before if p.before is not None else p.context or 0
    after = p.after if p.after is not None else p.context or 0
    base, request = _request(p, c, max(before, after), limit)
    found = _chosen(p, c, c.finder.search(base, request).matches)[:most]
    tail = f'for pattern "{p.pattern}" in path "{p.dir_path or "."}"'
    tail += f' (filter: "{p.include_pattern}")' if p.include_pattern else ""
    if not found:
        return f"No matches found {tail}."
    tail += f" (results limited to {most} matches for performance)" if len(found) >= most else ""
    names = sorted({match.path for match in found})
    if p.names_only:
        return "\n".join([f"Found {len(names)} files with matches {tail}:", *map(quote, names)])
    if len(found) <= _FEW and p.context is None and p.before is None and p.after is None:
        before = after = _AROUND_ONE if len(found) == 1 else _AROUND_FEW
        base, request = _request(p, c, before, limit)
        found = _chosen(p, c, c.finder.search(base, request).matches)[:most]
    return f"Found {len(found)} {'match' if len(found) == 1 else 'matches'} {tail}:\n---\n" + _printed(
        found, before, after, c
    )


def _request(p: GrepSearch3, c: Call, context: int, limit: int) -> tuple[str, SearchRequest]:
    """Return the directory of the search, and what to look for in it."""
    base, only = c.finder.within(p.dir_path or ".")
    include = (p.include_pattern,) if p.include_pattern else ()
    scope = Scope(only, anywhere=False, ignore_files=False) if only else Scope(include, ignore_files=not p.no_ignore)
    literal, case = p.fixed_strings, p.case_sensitive
    return base, SearchRequest(p.pattern, literal, case, context=context, limit=limit, scope=scope)


def _chosen(p: GrepSearch3, c: Call, matches: list[Match]) -> list[Match]:
    """Leave out the lines that `exclude_pattern` matches, and all but the first matches of each file."""
    if p.exclude_pattern is not None:
        matcher, seconds = (
            LineMatcher(parse(p.exclude_pattern), case_sensitive=p.case_sensitive),
            c.limits.regex_seconds,
        )
        try:
            matches = [match for match in matches if not any(matcher.parts(match.content, seconds))]
        except TimeoutError:
            raise PatternTooSlow(p.exclude_pattern, seconds) from None
    if p.max_matches_per_file is None:
        return matches
    grouped = groupby(matches, key=lambda match: match.path)
    return [match for _, group in grouped for match in list(group)[: p.max_matches_per_file]]


def _printed(matches: list[Match], before: int, after: int, c: Call) -> str:
    most, parts = c.limits.gemini_3_line_chars, []
    for path, group in groupby(matches, key=lambda match: match.path):
        parts.append(f"File: {quote(path)}")
        for number, text, is_match in numbered(list(group), before, after):
            line = text.rstrip()
            cut = line if len(line) <= most else line[:most] + "... [truncated]"
            parts.append(f"L{number}{':' if is_match else '-'} {cut}")
        parts.append("---")
    return "\n".join(parts)


class Glob3(Gemini3Params):
    pattern: str = field("The glob pattern to match against (e.g., '**/*.py', 'docs/*.md').")
    dir_path: str | None = field(
        "Optional: The absolute path to the directory to search within. If omitted, searches the root directory.",
        default=None,
        path=True,
    )
    case_sensitive: bool = field(
        "Optional: Whether the search should be case-sensitive. Defaults to false.", default=False
    )
    respect_git_ignore: bool = field(
        "Optional: Whether to respect .gitignore patterns when finding files. Defaults to true.", default=True
    )
    respect_gemini_ignore: bool = field(
        "Optional: Whether to respect .geminiignore patterns when finding files. Defaults to true.", default=True
    )


@dialect.tool("glob", Effect.READ, bounded=True)
def glob(p: Glob3, c: Call) -> str:
    """Find files matching a glob pattern and return absolute paths, the last modified first."""
    base, pattern = p.dir_path or ".", p.pattern
    where = absolute(c.root, base)
    if not pattern.strip():
        raise EmptyPattern
    if (inside := c.finder.relative_glob(pattern)) is not None:
        c.files.listing(base)  # raises a PathFault if the path is no directory
        base, pattern = ".", inside
    scope = Scope((pattern,), anywhere=False, fold_case=not p.case_sensitive, ignore_files=p.respect_git_ignore)
    result = c.finder.find(base, FindRequest(scope, sort="time", limit=c.limits.gemini_files))
    if not result.files:
        return f'No files found matching pattern "{p.pattern}" within {where}'
    stem = c.stem + c.files.stem(base)
    head = f'Found {result.total} file(s) matching "{p.pattern}" within {where}, '
    return "\n".join(
        [f"{head}sorted by modification time (newest first):", *(quote(stem + name) for name in result.files)]
    )
