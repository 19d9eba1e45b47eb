"""Every fault has words in every dialect; the words live in tables, never in the code that raises."""

from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

from handrail.dialects import NAMES, load
from handrail.model.faults import BadPatch, BadPath, Denied, Fault, HunkNotFound, NotFound, Problem, TooLarge
from handrail.model.warnings import FileSkipped, MoreFilesSkipped, Note, SandboxRefused
from handrail.tools.common_messages import COMMON
from handrail.tools.messages import Message, ToolError, Words, render

CONTEXT = {"root": "/w", "params": {}}
# A value of every type that facts have, and of those whose facts are words from a list.
VALUES: dict[Any, Any] = {
    str: "some text",
    int: 3,
    float: 2.5,
    int | None: None,
    list[str]: ["a", "b"],
    list[int]: [1, 5],
    list[Problem]: [Problem("", "missing", "path")],
}
CHOSEN: dict[tuple[type[Fault], str], str] = {
    (BadPath, "why"): "nul",
    (BadPatch, "why"): "no_hunks",
    (HunkNotFound, "part"): "lines",
    (FileSkipped, "why"): "too_large",
    (MoreFilesSkipped, "why"): "unreadable",
    (SandboxRefused, "kind"): "network",
}


def kinds(of: type[Fault] = Fault) -> Iterator[type[Fault]]:
    """Yields the kinds that are raised: the leaves of the tree, and Denied."""
    for kind in of.__subclasses__():
        if kind.__module__.startswith("handrail."):
            if kind is Denied or not kind.__subclasses__():
                yield kind
            yield from kinds(kind)


def sample(kind: type[Fault]) -> Fault:
    types = get_type_hints(kind)
    facts = {name: CHOSEN.get((kind, name), VALUES[types[name]]) for name in kind.fact_names}
    if "difference" in facts:
        facts["difference"] = "case"
    return kind(**facts)


@pytest.mark.parametrize("name", NAMES)
def test_every_fault_is_worded_in_every_dialect(name: str) -> None:
    dialect = load(name)
    assert [
        (tool, kind.__name__, said)
        for tool in dialect.tools
        for kind in kinds()
        if not is_whole(said := render(dialect.tables, tool, sample(kind), CONTEXT), kind)
        or not dialect.error_output(said)
    ] == []


def is_whole(said: ToolError, kind: type[Fault]) -> bool:
    filled = "{" not in said.message + said.suggestion
    return bool(said.code and said.message and (said.suggestion or issubclass(kind, Note)) and filled)


def test_a_dialects_own_words_and_a_tools_own_words_go_first() -> None:
    fault = NotFound("a.txt")
    general: Words = {NotFound: Message("nowhere", "{path} is nowhere in {root}", "look elsewhere")}
    special: Words = {
        ("peek", NotFound): Message("unseen", lambda facts: f"{facts['path']} was not seen", "look closer")
    }
    assert render((general, COMMON), "peek", fault, CONTEXT).message == "a.txt is nowhere in /w"
    assert render(({**general, **special}, COMMON), "peek", fault, CONTEXT).message == "a.txt was not seen"
    assert render((special, COMMON), "other", fault, CONTEXT).code == "file_not_found"


def test_a_fault_without_words_is_a_bug() -> None:
    class Unheard(Fault):
        pass

    with pytest.raises(LookupError, match="Unheard has no words"):
        render((), "tool", Unheard(), {})


def test_a_fault_shows_its_facts_to_programmers() -> None:
    assert str(TooLarge("a", 5, 4)) == "TooLarge(path='a', size=5, limit=4)"


def test_every_reason_of_a_bad_path_has_a_sentence_of_its_own() -> None:
    reasons = ("empty", "nul", "too_long", "not_text", "reserved")
    assert len({render((COMMON,), "t", BadPath("p", why), CONTEXT).message for why in reasons}) == len(reasons)
