"""Keeps the answers of searches and listings within the setting `answer_tokens`.

The output of commands is shortened where it is read (`runtime/commands.py`); contents of files are never shortened.
"""

import json
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

from handrail.model.effects import Effect
from handrail.model.warnings import AnswerCut
from handrail.ops.list_cut import cut_lists
from handrail.runtime.call import Call

if TYPE_CHECKING:
    from handrail.kernel.process.bounded_output import Output as Shown
    from handrail.tools.tool import Output, Tool

_NARROW = "narrow the call, for example with a directory or a more specific pattern"


def within_budget(output: "Output", tool: "Tool", call: Call, *, has_commands: bool) -> "Output":
    """Return an output that fits into the budget. A file keeps the whole if a command of the dialect can read it."""
    room = call.session.services.powers.answer_bytes
    if room is None:
        return output
    new_spool = call.session.processes.new_spool if has_commands else _no_file
    if isinstance(output, str):
        return _cut_text(output, room, new_spool)
    cut = cut_lists(output, room)
    if cut is None:
        return output
    how = _NARROW
    if "offset" in tool.params.fields:
        how = f"go on with offset {(call.params.get('offset') or 0) + cut.shown}"
    whole = _whole(json.dumps(output, ensure_ascii=False, indent=1), room, new_spool)
    if whole.spool:
        how += f"; a command can read all of it: head -n 50 {shlex.quote(whole.spool)}"
    call.warnings.append(AnswerCut(cut.shown, cut.total, call.session.services.powers.answer_tokens, how))
    return cut.output


def short_listing(text: str, call: Call) -> str:
    """Return a listing that fits into the budget, for a tool that also shows contents, which are never shortened."""
    room = call.session.services.powers.answer_bytes
    return text if room is None else _cut_text(text, room, _no_file)


def has_commands(tools: "dict[str, Tool]") -> bool:
    """Return whether one of these tools runs commands."""
    return any(Effect.RUN in tool.effects for tool in tools.values())


def _cut_text(text: str, room: int, new_spool: Callable[[], tuple[int, str]]) -> str:
    from handrail.tools.command_output import output_text  # noqa: PLC0415  only long answers need it

    if len(text) * 4 <= room or len(text.encode(errors="surrogatepass")) <= room:
        return text
    return output_text("the answer", _whole(text, room, new_spool), _NARROW)


def _whole(text: str, room: int, new_spool: Callable[[], tuple[int, str]]) -> "Shown":
    from handrail.kernel.process.bounded_output import Output  # noqa: PLC0415  only long answers need it

    return Output(text.encode(errors="replace")).shortened(room, new_spool)


def _no_file() -> tuple[int, str]:
    raise FileNotFoundError
