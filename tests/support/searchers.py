"""Makes searchers with one engine and one confinement of ripgrep."""

import os
import tempfile
from functools import cache
from typing import Literal

import pytest

from handrail.kernel.search.ripgrep import Ripgrep
from handrail.kernel.search.searcher import Searcher
from handrail.model.limits import Limits
from handrail.ops.search.scope import SearchRequest

Kind = Literal["ripgrep", "namespace", "builtin"]
KINDS: list[Kind] = ["ripgrep", "namespace", "builtin"]
"""ripgrep confined by Landlock, ripgrep in a mount namespace, and the built-in engine."""


def searcher_of(kind: Kind, limits: Limits | None = None) -> Searcher:
    """Return a searcher, or skip the test if this machine cannot make a mount namespace."""
    if kind == "namespace" and not _can_make_namespaces():
        pytest.skip("bubblewrap cannot make a mount namespace here")
    return _made(kind, limits)


def stays_in_namespace(searcher: Searcher) -> bool:
    """Return True if ripgrep ran in a namespace until now, and never without one."""
    engine = searcher.engine
    return isinstance(engine, Ripgrep) and engine.in_namespace and engine._bwrap is not None


def _made(kind: Kind, limits: Limits | None) -> Searcher:
    searcher = Searcher(limits, engine="builtin" if kind == "builtin" else "ripgrep")
    if isinstance(searcher.engine, Ripgrep):
        searcher.engine.in_namespace = kind == "namespace"
    return searcher


@cache
def _can_make_namespaces() -> bool:
    searcher = _made("namespace", None)
    with tempfile.TemporaryDirectory() as place:
        fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            searcher.search(fd, SearchRequest("x"))
        finally:
            os.close(fd)
    return stays_in_namespace(searcher)
