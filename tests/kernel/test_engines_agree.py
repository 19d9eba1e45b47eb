"""Checks that both engines give the same answers. `HANDRAIL_EXAMPLES` sets the number of random requests."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from support.search_trees import PATTERNS, SCOPES, SPANNING, TREES, plant

from handrail.kernel.search.searcher import Searcher
from handrail.model.faults import InvalidPattern
from handrail.ops.search.scope import FindRequest, Scope, SearchRequest

if TYPE_CHECKING:
    from handrail.ops.search.results import FindResult, SearchResult

EXAMPLES = int(os.environ.get("HANDRAIL_EXAMPLES", "150"))
ROOM = "/dev/shm" if os.path.isdir("/dev/shm") else None
RANDOMLY = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="HANDRAIL_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@contextmanager
def planted(tree: dict[str, Any]) -> Iterator[int]:
    place = tempfile.mkdtemp(dir=ROOM)
    plant(tree, place)
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)
        shutil.rmtree(place)


def answers(fd: int, request: SearchRequest | FindRequest) -> list[Any]:
    """Return the answers of both engines. ripgrep is asked twice: as at first, and as in later searches of a tree."""
    found: list[SearchResult | FindResult | str] = []
    ripgrep = Searcher(engine="ripgrep")
    for searcher in (ripgrep, ripgrep, Searcher(engine="builtin")):
        try:
            if isinstance(request, SearchRequest):
                result: SearchResult | FindResult = searcher.search(fd, request)
            else:
                result = searcher.find(fd, request)
            result.engine = ""
            found.append(result)
        except InvalidPattern as fault:
            found.append(type(fault).__name__)
    assert found[0] == found[1]
    return found[1:]


@RANDOMLY
@given(TREES, PATTERNS, SCOPES, st.booleans(), st.integers(0, 2), st.sampled_from([1, 3, 100]), st.booleans())
def test_both_engines_find_the_same_lines(
    tree: dict[str, Any], pattern: str, scope: Scope, case: bool, context: int, limit: int, count: bool
) -> None:
    request = SearchRequest(
        pattern, case_sensitive=case, context=context, limit=limit, scope=scope, count_searched=count
    )
    with planted(tree) as fd:
        ripgrep, builtin = answers(fd, request)
    event("refused" if isinstance(ripgrep, str) else "matches" if ripgrep.total else "no match")
    assert ripgrep == builtin


@RANDOMLY
@given(TREES, SCOPES, st.sampled_from([1, 100]))
def test_both_engines_find_the_same_files(tree: dict[str, Any], scope: Scope, limit: int) -> None:
    with planted(tree) as fd:
        ripgrep, builtin = answers(fd, FindRequest(scope, limit=limit))
    event("found" if ripgrep.total else "nothing")
    assert ripgrep == builtin


@RANDOMLY
@given(TREES, SPANNING, SCOPES, st.booleans(), st.integers(0, 2), st.sampled_from([1, 3, 100]))
def test_both_engines_find_the_same_matches_that_span_lines(
    tree: dict[str, Any], pattern: str, scope: Scope, case: bool, context: int, limit: int
) -> None:
    request = SearchRequest(
        pattern, case_sensitive=case, context=context, limit=limit, scope=scope, exact=True, multiline=True
    )
    with planted(tree) as fd:
        ripgrep, builtin = answers(fd, request)
    event("refused" if isinstance(ripgrep, str) else "matches" if ripgrep.total else "no match")
    took_too_long = not isinstance(builtin, str) and builtin.skipped.abandoned.count
    assert took_too_long or ripgrep == builtin
