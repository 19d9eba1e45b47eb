"""Tests that every fault has a message in every dialect. Messages live in tables, never in the raising code."""

import pytest
from support.fault_samples import CONTEXT, kinds, sample

from handrail.dialects import NAMES, load
from handrail.model.facts import FactRecord
from handrail.model.faults import BadPath, Fault, NotFound, TooLarge
from handrail.model.warnings import ToolWarning
from handrail.tools.common_messages import COMMON
from handrail.tools.messages import Message, ToolError, Words, render


@pytest.mark.parametrize("name", NAMES)
def test_every_fault_has_message_in_every_dialect(name: str) -> None:
    dialect = load(name)
    assert [
        (tool, kind.__name__, said)
        for tool in dialect.tools
        for kind in kinds()
        if not is_whole(said := render(dialect.tables, tool, sample(kind), CONTEXT), kind)
        or not dialect.error_output(said)
    ] == []


def is_whole(said: ToolError, kind: type[FactRecord]) -> bool:
    filled = "{" not in said.message + said.suggestion
    return bool(said.code and said.message and (said.suggestion or issubclass(kind, ToolWarning)) and filled)


def test_render_prefers_tool_then_dialect_message() -> None:
    fault = NotFound("a.txt")
    general: Words = {NotFound: Message("nowhere", "{path} is nowhere in {root}", "look elsewhere")}
    special: Words = {
        ("peek", NotFound): Message("unseen", lambda facts: f"{facts['path']} was not seen", "look closer")
    }
    assert render((general, COMMON), "peek", fault, CONTEXT).message == "a.txt is nowhere in /w"
    assert render(({**general, **special}, COMMON), "peek", fault, CONTEXT).message == "a.txt was not seen"
    assert render((special, COMMON), "other", fault, CONTEXT).code == "file_not_found"


def test_render_fault_without_message_raises_lookup_error() -> None:
    class Unheard(Fault):
        pass

    with pytest.raises(LookupError, match="Unheard has no message"):
        render((), "tool", Unheard(), {})


def test_fault_str_shows_facts() -> None:
    assert str(TooLarge("a", 5, 4)) == "TooLarge(path='a', size=5, limit=4)"


def test_bad_path_reasons_have_distinct_messages() -> None:
    reasons = ("empty", "nul", "too_long", "not_text", "reserved")
    assert len({render((COMMON,), "t", BadPath("p", why), CONTEXT).message for why in reasons}) == len(reasons)


def test_warning_cannot_be_raised() -> None:
    assert not issubclass(ToolWarning, BaseException)
