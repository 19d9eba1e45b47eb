"""Declares the categories, the messages and the tool decorator of the `context` dialect."""

import functools
from collections.abc import Callable
from typing import Any

from handrail.model.effects import Effect
from handrail.model.faults import AlreadyExists, BadLineRange, NotFound
from handrail.model.media_faults import NotText
from handrail.runtime.call import Call
from handrail.tools.common_messages import valid_lines
from handrail.tools.media_messages import NOT_SHOWN
from handrail.tools.messages import Facts, Message, ToolError, Words
from handrail.tools.schema import Params, field
from handrail.tools.tool import Dialect, Guide, Output, Tool

SEARCH, READING, WRITING, MANAGEMENT = "Search & Discovery", "File Reading", "File Writing", "File Management"
CATEGORIES = {
    SEARCH: "Find files and text in the workspace. These tools only look: they change nothing and never ask.",
    READING: "Read files. Access is read-only and needs no approval.",
    WRITING: "Create and change files. Every change needs the user's approval, who sees the diff.",
    MANAGEMENT: "Destructive operations on whole files. What is deleted is gone; approval is always needed.",
}


def _bad_line_range(facts: Facts) -> str:
    first, last, total = facts["first"], facts["last"], facts["total"]
    shown_last = max(first, total) if last is None else last
    valid = f"valid range is {facts['lowest']}-{total}" if total else "the file is empty"
    return f"Line range {first}-{shown_last} is invalid for '{facts['path']}': {valid}"


WORDS: Words = {
    NotText: NOT_SHOWN,
    NotFound: Message(
        "file_not_found", "File not found: '{path}'", "Use glob or list_directory to find the right path"
    ),
    AlreadyExists: Message(
        "file_exists", "File already exists: '{path}'", "Use update_file, replace_in_file or edit_lines to change it"
    ),
    BadLineRange: Message(
        "invalid_line_range",
        _bad_line_range,
        lambda f: f"{valid_lines(f)}; read_file shows them" if f["total"] else "Write to it with update_file",
    ),
}


def _with_suggestion(error: ToolError) -> Output:
    return {"error": error.code, "message": error.message, "suggestion": error.suggestion}


dialect = Dialect("context", WORDS, _with_suggestion, categories=CATEGORIES)


class ContextParams(Params):
    terminate: bool = field("End the agent's turn after this call.", default=False)


_Run = Callable[[Any, Call], Output]


def tool(name: str, effects: Effect, guide: Guide, *, bounded: bool = False) -> Callable[[_Run], Tool]:
    """Declare a tool of this dialect. The tool returns `terminate` to the agent loop in its metadata."""

    def declare(run: _Run) -> Tool:
        @functools.wraps(run)
        def with_terminate(p: ContextParams, c: Call) -> Output:
            c.metadata["terminate"] = p.terminate
            return run(p, c)

        return dialect.tool(name, effects, guide, bounded=bounded)(with_terminate)

    return declare
