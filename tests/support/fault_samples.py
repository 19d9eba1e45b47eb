"""Makes one fault of every kind, with made-up facts."""

from collections.abc import Iterator
from typing import Any, get_type_hints

from handrail.model.editor_faults import PagesUnknown
from handrail.model.facts import FactRecord
from handrail.model.faults import (
    AccessDenied,
    BadPatch,
    BadPath,
    Denied,
    HunkNotFound,
    NotADirectory,
    NotFound,
    OutsideRoot,
    PathTooLong,
    Problem,
    SandboxUnavailable,
)
from handrail.model.media_faults import ImageTooLarge
from handrail.model.notebook_faults import BadNotebook
from handrail.model.warnings import FileSkipped, HiddenMatches, MoreFilesSkipped, SandboxRefused

CONTEXT = {"root": "/w", "params": {}}
# One value for every type of fact. CHOSEN holds the facts that are words from a list.
VALUES: dict[Any, Any] = {
    str: "some text",
    int: 3,
    bool: True,
    float: 2.5,
    int | None: None,
    list[str]: ["a", "b"],
    list[int]: [1, 5],
    list[Problem]: [Problem("", "missing", "path")],
    dict[str, str]: {"path": "The path of the file."},
}
CHOSEN: dict[tuple[type[FactRecord], str], str] = {
    (BadPath, "why"): "nul",
    (PathTooLong, "why"): "too_long",
    (BadPatch, "why"): "no_hunks",
    (HunkNotFound, "part"): "lines",
    (FileSkipped, "why"): "too_large",
    (BadNotebook, "why"): "shape",
    (HiddenMatches, "what"): "lines",
    (ImageTooLarge, "why"): "pixels",
    (PagesUnknown, "why"): "form",
    (MoreFilesSkipped, "why"): "unreadable",
    (SandboxRefused, "kind"): "network",
    (SandboxUnavailable, "reason"): "machine",
}


def kinds(of: type[FactRecord] = FactRecord) -> Iterator[type[FactRecord]]:
    """Yield the kinds that Handrail raises: the leaves of the class tree, and some others."""
    for kind in of.__subclasses__():
        if kind.__module__.startswith("handrail."):
            if (
                kind in (AccessDenied, BadPath, Denied, NotADirectory, NotFound, OutsideRoot)
                or not kind.__subclasses__()
            ):
                yield kind
            yield from kinds(kind)


def sample(kind: type[FactRecord]) -> FactRecord:
    types = get_type_hints(kind)
    facts = {name: CHOSEN.get((kind, name), VALUES[types[name]]) for name in kind.fact_names}
    if "difference" in facts:
        facts["difference"] = "case"
    return kind(**facts)
