"""Declares the tools that find files by name and by content."""

import time
from typing import Any, Literal

from handrail.dialects.claude_code.dialect import dialect
from handrail.model.effects import Effect
from handrail.model.faults import PatternTooSlow
from handrail.model.paths import quote
from handrail.ops.search.file_types import globs_of_type
from handrail.ops.search.matcher import LineMatcher
from handrail.ops.search.regex import parse
from handrail.ops.search.results import Match
from handrail.ops.search.rg_format import printed
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest
from handrail.runtime.call import Call
from handrail.tools.schema import Params, field


class CodeGlob(Params):
    pattern: str = field("The glob pattern to match files against.")
    path: str | None = field("The directory to search in; the workspace if not given.", default=None, path=True)


@dialect.tool("Glob", Effect.READ)
def glob(p: CodeGlob, c: Call) -> str:
    """Find files by a glob pattern and return their paths, the last modified first."""
    began, base, pattern = time.monotonic(), p.path or ".", p.pattern
    if (inside := c.finder.relative_glob(pattern)) is not None:
        c.files.listing(base)  # raises a PathFault if the path is no directory
        base, pattern = ".", inside
    request = FindRequest(Scope((pattern,), anywhere=False), sort="time", limit=c.limits.claude_code_files)
    result, stem = c.finder.find(base, request), c.stem + c.files.stem(base)
    names = [quote(stem + name) for name in result.files]
    c.metadata.update(durationMs=round((time.monotonic() - began) * 1000), numFiles=len(names), filenames=names)
    c.metadata.update(truncated=result.truncated, totalMatches=result.total, countIsComplete=result.complete)
    if not names:
        return "No files found"
    more = ["(Results are truncated. Consider using a more specific path or pattern.)"] if result.truncated else []
    return "\n".join([*names, *more])


class CodeGrep(Params):
    pattern: str = field("The regular expression pattern to search for in file contents.")
    path: str | None = field("File or directory to search in; the workspace if not given.", default=None, path=True)
    glob: str | None = field('Glob pattern to filter files (e.g. "*.js", "*.{ts,tsx}").', default=None)
    type: str | None = field('File type to search: a name that ripgrep knows, such as "py" or "rust".', default=None)
    output_mode: Literal["content", "files_with_matches", "count"] = field(
        "Show matching lines, paths of files, or numbers of matching lines.", default="files_with_matches"
    )
    before: int | None = field("Lines to show before each match (content only).", default=None, ge=0, name="-B")
    after: int | None = field("Lines to show after each match (content only).", default=None, ge=0, name="-A")
    around: int | None = field("Alias for context.", default=None, ge=0, name="-C")
    context: int | None = field("Lines to show before and after each match (content only).", default=None, ge=0)
    numbers: bool = field("Show line numbers (content only).", default=True, name="-n")
    fold_case: bool = field("Search without regard to case.", default=False, name="-i")
    only_parts: bool = field("Show only the matching parts of a line (content only).", default=False, name="-o")
    head_limit: int = field("Show only the first lines or entries; 0 for no limit.", default=250, ge=0)
    offset: int = field("Skip the first lines or entries.", default=0, ge=0)
    multiline: bool = field("Let a pattern span lines, and a dot match line ends.", default=False)


@dialect.tool("Grep", Effect.READ, bounded=True)
def grep(p: CodeGrep, c: Call) -> str:
    """Search the contents of files with a regular expression, as ripgrep does."""
    base, only = c.finder.within(p.path or ".")
    scope = Scope(only, anywhere=False, ignore_files=False) if only else _scope(p)
    request = SearchRequest(p.pattern, case_sensitive=not p.fold_case, scope=scope, multiline=p.multiline)
    c.metadata["mode"] = p.output_mode
    return _lines(p, c, base, request) if p.output_mode == "content" else _files(p, c, base, request)


def _scope(p: CodeGrep) -> Scope:
    glob, kinds = p.glob or "", globs_of_type(p.type) if p.type else ()
    if glob.startswith("!"):
        return Scope(exclude=(glob[1:],), kinds=kinds)
    return Scope((glob,) if glob else (), kinds=kinds)


def _lines(p: CodeGrep, c: Call, base: str, request: SearchRequest) -> str:
    """Return matching lines. Only whole lines are counted: lines around a match take room, too."""
    around = p.context if p.context is not None else p.around or 0
    before = around if p.before is None else p.before
    after = around if p.after is None else p.after
    most = c.limits.claude_code_matches
    last = min(most, p.offset + p.head_limit if p.head_limit else most)
    result = c.finder.search(base, request._replace(context=max(before, after), limit=max(1, last)))
    matches = result.matches
    if p.only_parts and not p.multiline:
        matches, before, after = _parts(p, c, matches), 0, 0
    stem = c.stem + c.files.stem(base)
    whole = [*printed(matches, lambda path: quote(stem + path), before, after, numbers=p.numbers)]
    shown = whole[p.offset : last]
    c.metadata.update(numLines=len(shown), numMatches=result.total, numFiles=result.files_matched)
    if not result.total:
        return "No matches found"
    return "\n".join([*shown, *_paged(p, c, more=result.truncated or last < len(whole))])


def _parts(p: CodeGrep, c: Call, matches: list[Match]) -> list[Match]:
    """Return each matching part of a line as a match of its own."""
    matcher, seconds = LineMatcher(parse(p.pattern), case_sensitive=not p.fold_case), c.limits.regex_seconds
    try:
        return [match._replace(content=part) for match in matches for part in matcher.parts(match.content, seconds)]
    except TimeoutError:
        raise PatternTooSlow(p.pattern, seconds) from None


def _files(p: CodeGrep, c: Call, base: str, request: SearchRequest) -> str:
    """Return the files with matches, or the number of matching lines of each."""
    counted = c.finder.count(base, request)
    stem, total = c.stem + c.files.stem(base), sum(counted.lines.values())
    last = p.offset + p.head_limit if p.head_limit else None
    shown = sorted(counted.lines)[p.offset : last]
    names, more = [quote(stem + path) for path in shown], last is not None and last < len(counted.lines)
    c.metadata.update(numFiles=len(counted.lines), filenames=names)
    if not counted.lines:
        return "No files found" if p.output_mode == "files_with_matches" else "No matches found"
    paged = _paged(p, c, more=more)
    if p.output_mode == "files_with_matches":
        return "\n".join([f"Found {len(counted.lines)} {_plural('file', len(counted.lines))}", *names, *paged])
    c.metadata["numMatches"] = total
    lines = [f"{name}:{counted.lines[path]}" for name, path in zip(names, shown, strict=True)]
    files = f"{len(counted.lines)} {_plural('file', len(counted.lines))}"
    return "\n".join([*lines, "", f"Found {total} total {_plural('occurrence', total)} across {files}.", *paged])


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _paged(p: CodeGrep, c: Call, *, more: bool) -> list[str]:
    """Return the line that says which part of the result is shown, if it is not the whole."""
    applied: dict[str, Any] = {"appliedLimit": p.head_limit} if more and p.head_limit else {}
    applied |= {"appliedOffset": p.offset} if p.offset else {}
    c.metadata.update(applied)
    limit = f"limit: {p.head_limit}, " if p.head_limit else ""
    return [f"[Showing results with pagination = {limit}offset: {p.offset}]"] if applied else []
