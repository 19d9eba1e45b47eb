"""Declares the tools that search and list files."""

from handrail.dialects.context.dialect import SEARCH, ContextParams, tool
from handrail.dialects.output_types import (
    ContextDirectory,
    ContextRankedFile,
    ContextRanking,
    DirectoryEntry,
    GlobFiles,
    GrepMatch,
    GrepMatches,
)
from handrail.kernel.search.ranking import RankRequest
from handrail.model.effects import Effect
from handrail.model.paths import quote
from handrail.ops.glob.ignore_rules import DEFAULT_EXCLUSIONS
from handrail.ops.search.file_types import globs_of_type
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest
from handrail.runtime.call import Call
from handrail.tools.schema import field
from handrail.tools.tool import Guide


class ContextGrep(ContextParams):
    pattern: str = field("Regular expression to search for in file contents.", min_length=1)
    path: str = field("Directory to search, relative to the workspace root.", default=".", path=True)
    case_sensitive: bool = field("Whether case matters.", default=True)
    file_type: str | None = field(
        'Only files of this type: an extension ("rs", ".ts", "*.py") or a name that ripgrep knows ("python").',
        default=None,
    )
    context_lines: int = field("Lines shown before and after each match.", default=2, ge=0, le=20)
    max_results: int = field("Most matches to return; a workspace has a ceiling for it.", default=50, ge=1)


@tool(
    "grep",
    Effect.READ,
    Guide(
        SEARCH,
        "terminate=false if the results need further processing; terminate=true if they are presented to the user.",
        {"pattern": "async fn.*execute", "file_type": "rs", "max_results": 20},
        "Find code by what it says.",
        "case_sensitive=false ignores case; file_type and path narrow the search; "
        "context_lines shows more around a match; max_results bounds the answer.",
    ),
    bounded=True,
)
def grep(p: ContextGrep, c: Call) -> GrepMatches:
    """Search file contents with a regular expression."""
    limit, scope = min(p.max_results, c.limits.context_entries), _scope(c, _of_type(p.file_type))
    request = SearchRequest(p.pattern, False, p.case_sensitive, p.context_lines, limit, scope)
    result, stem = c.finder.search(p.path, request), c.files.stem(p.path)
    matches: list[GrepMatch] = [
        {
            "path": quote(stem + match.path),
            "line": match.line,
            "content": match.content,
            "before": list(match.before),
            "after": list(match.after),
        }
        for match in result.matches
    ]
    return {
        "matches": matches,
        "total_matches": result.total,
        "files_matched": result.files_matched,
        "truncated": result.truncated,
        "message": _message(len(matches), result.total, "matches", f"No matches for '{p.pattern}'"),
        "warnings": [],
    }


class ContextGlob(ContextParams):
    pattern: str = field('Glob, such as "**/*.tsx" or "src/**/*.test.ts".', min_length=1)
    path: str = field("Directory to search, relative to the workspace root.", default=".", path=True)
    exclude: list[str] | None = field(
        "Names or globs to leave out, in addition to the default exclusions.", default=None
    )
    max_results: int = field("Most files to return; a workspace has a ceiling for it.", default=100, ge=1)


@tool(
    "glob",
    Effect.READ,
    Guide(
        SEARCH,
        "terminate=false if the results need further processing; terminate=true if they are presented to the user.",
        {"pattern": "src/**/*.test.ts", "exclude": ["fixtures"]},
        "Find files by name. node_modules, dist and their like are left out.",
        "exclude leaves out names and globs; path starts below a directory; max_results bounds the answer.",
    ),
    bounded=True,
)
def glob(p: ContextGlob, c: Call) -> GlobFiles:
    """Find files by a glob pattern, sorted alphabetically."""
    limit = min(p.max_results, c.limits.context_entries)
    scope = _scope(c, (p.pattern,), tuple(p.exclude or ()), anywhere=False)
    result, stem = c.finder.find(p.path, FindRequest(scope, limit=limit)), c.files.stem(p.path)
    return {
        "files": [quote(stem + name) for name in result.files],
        "total_files": result.total,
        "truncated": result.truncated,
        "message": _message(len(result.files), result.total, "files", f"No files match '{p.pattern}'", "exclude"),
        "warnings": [],
    }


class ContextSearch(ContextParams):
    query: str = field("A few words, in any order.", min_length=1)
    path: str = field("Directory to search, relative to the workspace root.", default=".", path=True)
    file_type: str | None = field(
        'Only files of this type: an extension ("rs", ".ts", "*.py") or a name that ripgrep knows ("python").',
        default=None,
    )
    exclude_dirs: list[str] | None = field(
        "Directories to leave out, in addition to the default exclusions.", default=None
    )
    max_results: int = field("Most files to return; a workspace has a ceiling for it.", default=50, ge=1)


@tool(
    "search",
    Effect.READ,
    Guide(
        SEARCH,
        "terminate=false if one of the files is read next; terminate=true if the user asked where something is.",
        {"query": "user session timeout", "file_type": "py"},
        "Find the files that have most to do with a few words. Names count more than contents.",
        "file_type and exclude_dirs narrow the search; path starts below a directory; max_results bounds the answer.",
    ),
    bounded=True,
)
def search(p: ContextSearch, c: Call) -> ContextRanking:
    """Find files by relevance to a few words, in names and contents."""
    limit = min(p.max_results, c.limits.context_entries)
    scope = _scope(c, _of_type(p.file_type), tuple(f"{name.rstrip('/')}/" for name in p.exclude_dirs or ()))
    result, stem = c.finder.rank(p.path, RankRequest(p.query, scope, limit)), c.files.stem(p.path)
    found: list[ContextRankedFile] = [
        {"path": quote(stem + each.path), "score": round(each.score, 2), "line": each.line, "content": each.content}
        for each in result.results
    ]
    return {
        "results": found,
        "total": result.total,
        "truncated": result.truncated,
        "message": _message(len(found), result.total, "files", f"Nothing matches '{p.query}'", noun="query"),
    }


def _of_type(file_type: str | None) -> tuple[str, ...]:
    return globs_of_type(file_type) if file_type else ()


def _scope(c: Call, include: tuple[str, ...], exclude: tuple[str, ...] = (), *, anywhere: bool = True) -> Scope:
    limits = c.limits
    return Scope(
        include,
        exclude,
        anywhere=anywhere,
        exclusions=DEFAULT_EXCLUSIONS,
        max_depth=limits.context_depth,
        max_file_bytes=limits.context_file_bytes,
    )


def _message(shown: int, total: int, things: str, none: str, narrow: str = "file_type", noun: str = "pattern") -> str:
    if not total:
        return none
    if shown < total:
        return f"Showing {shown} of {total} {things}; narrow it with path, {narrow} or a more specific {noun}"
    return f"Found {total} {things}"


class ContextListDirectory(ContextParams):
    path: str = field("Directory, relative to the workspace root.", default=".", path=True)


@tool(
    "list_directory",
    Effect.READ,
    Guide(
        SEARCH,
        "terminate=false if a file of the listing is read next; terminate=true if the user asked for the listing.",
        {"path": "src"},
        "A first look at a project, or at what a directory holds.",
        "path names the directory; without it, the root is listed.",
    ),
    bounded=True,
)
def list_directory(p: ContextListDirectory, c: Call) -> ContextDirectory:
    """List the entries of a directory with their type and size."""
    entries, most = c.files.entries(p.path), c.limits.context_entries
    listed: list[DirectoryEntry] = [{"name": quote(e.name), "type": e.kind, "size": e.size} for e in entries[:most]]
    return {"entries": listed, "total_entries": len(entries), "truncated": len(entries) > most}
