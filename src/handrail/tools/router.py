"""Routes calls to the tools of a dialect: look up, validate, run, word the errors, log."""

import threading
import time
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from handrail.errors import UnknownToolError, did_you_mean
from handrail.kernel.host.session_log import SessionLog
from handrail.model.effects import Effect, needs_approval
from handrail.model.facts import FactRecord
from handrail.model.faults import Closed, Conflict, Denied, Fault, PathFault, UnknownTool
from handrail.model.warnings import RootReplaced
from handrail.runtime.call import Asked, Call
from handrail.runtime.session import Session
from handrail.tools.answer_budget import has_commands, within_budget
from handrail.tools.messages import Facts, ToolError, how_to_allow, render
from handrail.tools.schema import Params, name_of
from handrail.tools.tool import Dialect, Output, Tool, ToolResult

_BUG = ToolError(
    "internal_error",
    "The tool failed because of a bug in Handrail",
    "The session log has the details; other calls still work",
)


Json = dict[str, Any]
_NO_NAMES: Mapping[str, str] = MappingProxyType({})


class ToolRouter:
    """The tools of one dialect in one session: call them, and export them to function-calling APIs.

    `only`, `renamed` and `read_only` return a router with fewer or other names on the same session.
    """

    def __init__(self, dialect: Dialect, session: Session, log: SessionLog) -> None:
        self.dialect, self._session, self._log = dialect, session, log
        self.tools: dict[str, Tool] = {
            name: tool
            for name, tool in dialect.tools.items()
            if not (session.read_only and needs_approval(tool.effects))
        }
        """The tools that can be called, by the name that they have here."""
        self._originals: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<ToolRouter {self.dialect.name}: {', '.join(self.tools)}>"

    # ── calling ──

    def call(
        self,
        tool: str,
        params: Any = None,
        *,
        call_id: str | None = None,
        cancel: threading.Event | None = None,
    ) -> ToolResult:
        """Run a tool and return its result. Errors are results, too: nothing that a model does raises.

        Args:
            tool: The name of the tool.
            params: Its parameters, an object as the schema of the tool describes it.
            call_id: How the caller names the call, for the log and the journal.
            cancel: Set it from another thread to end the call early.

        """
        started = time.perf_counter()
        name = name_of(tool)  # a caller may pass on any value that a model made up
        given = {} if params is None else params
        offered = self.tools.get(name)
        original = self._originals.get(name, name) if offered else name
        try:
            with self._session.open_calls:
                result = self._logged(offered, original, given, started, call_id, cancel)
        except Closed as fault:
            result = self.refuse(original, fault, given)
        return result if original == name else replace(result, tool=name)

    def validate(self, tool: str, params: Any = None) -> ToolError | None:
        """Return what is wrong with a call, without running it or asking for it; None if nothing is.

        Checks the name of the tool, its parameters, and that each path lies in the workspace, is not protected, and
        exists if the tool cannot create it.
        """
        name, given = name_of(tool), {} if params is None else params
        offered = self.tools.get(name)
        try:
            if offered is None:
                raise self._unknown(name)
            parsed = offered.params.parse(offered.params.normal(given))
            for each in offered.params.paths:
                path = getattr(parsed, each)
                if path or offered.params.fields[each].required:
                    creates = bool(offered.effects & (Effect.CREATE | Effect.RUN))
                    boundary = self._session.services.trees.of(offered.params.mount)
                    boundary.check(path, may_be_missing=creates)
        except Fault as fault:
            return self._error(self._originals.get(name, name), fault, given)
        return None

    async def acall(self, tool: str, params: Any = None, *, call_id: str | None = None) -> ToolResult:
        """Run a tool in a worker thread and return its result. Cancelling the task cancels the call."""
        import anyio  # noqa: PLC0415  only asynchronous callers need it

        cancel = threading.Event()
        work = partial(self.call, tool, params, call_id=call_id, cancel=cancel)
        try:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        finally:
            cancel.set()

    # ── choosing tools ──

    def only(self, *names: str) -> "ToolRouter":
        """Return a router with these tools only. Raises UnknownToolError for other names."""
        self._expect_known(names)
        return self._with({name: tool for name, tool in self.tools.items() if name in names})

    def renamed(self, names: Mapping[str, str]) -> "ToolRouter":
        """Return a router that offers tools under other names (old to new). Rules and logs keep the old names."""
        self._expect_known(names)
        tools = {names.get(name, name): tool._replace(name=names.get(name, name)) for name, tool in self.tools.items()}
        if len(tools) < len(self.tools):
            raise ValueError("two tools would have the same name")
        return self._with(tools, {new: self._originals.get(old, old) for old, new in names.items()})

    def read_only(self) -> "ToolRouter":
        """Return a router without the tools that change files, run commands or fetch pages."""
        return self._with({name: tool for name, tool in self.tools.items() if not needs_approval(tool.effects)})

    def _with(self, tools: dict[str, Tool], originals: Mapping[str, str] = _NO_NAMES) -> "ToolRouter":
        made = copy(self)
        made.tools, made._originals = tools, {**self._originals, **originals}  # noqa: SLF001  of its own class
        return made

    def _expect_known(self, names: "Sequence[str] | Mapping[str, str]") -> None:
        for name in names:
            if name not in self.tools:
                raise UnknownToolError(f"{self.dialect.name} has no tool {name}{did_you_mean(name, self.tools)}")

    # ── function-calling APIs ──

    def openai(self, *, strict: bool = False) -> list[Json]:
        """Return the tools for OpenAI's Chat Completions API."""
        from handrail.tools.exports.openai_api import openai_chat  # noqa: PLC0415  only callers of this API need it

        return openai_chat(self.tools.values(), strict=strict)

    def openai_responses(self, *, strict: bool = False, custom: bool = False) -> list[Json]:
        """Return the tools for OpenAI's Responses API; with `custom`, tools with a grammar become custom tools."""
        from handrail.tools.exports.openai_api import openai_responses  # noqa: PLC0415  only callers of this API need it

        return openai_responses(self.tools.values(), strict=strict, custom=custom)

    def anthropic(self) -> list[Json]:
        """Return the tools for Anthropic's Messages API."""
        from handrail.tools.exports.anthropic_api import anthropic  # noqa: PLC0415  only callers of this API need it

        return anthropic(self.tools.values())

    def gemini(self) -> Json:
        """Return the tools for the Gemini API."""
        from handrail.tools.exports.gemini_api import gemini  # noqa: PLC0415  only callers of this API need it

        return gemini(self.tools.values())

    def mcp(self) -> list[Json]:
        """Return the tools as the Model Context Protocol lists them."""
        from handrail.tools.exports.mcp_tools import mcp  # noqa: PLC0415  only callers of this API need it

        return mcp(self.tools.values())

    def functions(self) -> list[Json]:
        """Return the tools in the plain function-calling form: name, description, parameters."""
        return [tool.function() for tool in self.tools.values()]

    def call_openai(self, tool_call: Any) -> Json:
        """Run a tool call of Chat Completions or Responses and return the message that answers it."""
        from handrail.tools.exports.openai_api import answer_openai  # noqa: PLC0415  only callers of this API need it

        return answer_openai(self, tool_call)

    def call_openai_item(self, item: Any) -> Json:
        """Run the call in an item of Responses, such as a `shell_call`, and return the output item."""
        from handrail.tools.exports.openai_items import answer_item  # noqa: PLC0415  only callers of this API need it

        return answer_item(self, item)

    def call_anthropic(self, tool_use: Any) -> Json:
        """Run a `tool_use` block and return the `tool_result` block."""
        from handrail.tools.exports.anthropic_api import answer_anthropic  # noqa: PLC0415  only callers of this API need it

        return answer_anthropic(self, tool_use)

    def call_gemini(self, function_call: Any) -> Json:
        """Run a `functionCall` and return the part that answers it."""
        from handrail.tools.exports.gemini_api import answer_gemini  # noqa: PLC0415  only callers of this API need it

        return answer_gemini(self, function_call)

    def call_named(
        self, name: str, arguments: Any, call_id: str | None = None, cancel: threading.Event | None = None
    ) -> ToolResult:
        """Run a call as an API sends it: a mapped name, arguments as an object or as JSON text."""
        from handrail.tools.exports import arguments_of  # noqa: PLC0415  only callers of APIs need it

        return self.call(self.real_name(name), arguments_of(arguments), call_id=call_id, cancel=cancel)

    def real_name(self, name: str) -> str:
        """Return the tool behind a name that was mapped for an API; an unknown name stays as it is."""
        from handrail.tools.exports import api_name  # noqa: PLC0415  only callers of APIs need it

        return name if name in self.tools else next((each for each in self.tools if api_name(each) == name), name)

    # ── one call ──

    def _logged(
        self,
        offered: Tool | None,
        tool: str,
        given: Any,
        started: float,
        call_id: str | None,
        cancel: threading.Event | None,
    ) -> ToolResult:
        number = self._log.request(self.dialect.name, tool, given, call_id)
        try:
            result = self._attempt(offered, tool, given, started, Asked(number, call_id, cancel))
        except Exception as bug:  # noqa: BLE001  a bug in a tool must not end the server; the log has its traceback
            self._log.failure(number, tool, bug)
            result = self._answer(tool, None, started, self.dialect.error_output(_BUG), _BUG)
        self._log.response(number, result)
        return result

    def _attempt(self, found: Tool | None, tool: str, given: Any, started: float, asked: Asked) -> ToolResult:
        call: Call | None = None
        try:
            if found is None:
                raise self._unknown(tool)
            given = found.params.normal(given)
            parsed = found.params.parse(given)
            ordered = {name: given[name] for name in found.params.fields if found.params.gives(given, name)}
            call = Call(
                self._session,
                self.dialect.name,
                tool,
                ordered,
                parsed.narrowed(found.effects),
                found.params.bodies,
                found.params.paths,
                found.params.mount,
                asked,
            )
            if self._session.services.boundary.was_replaced():
                call.warnings.append(RootReplaced())
            call.begin()
            output = self._run(found, parsed, call)
            if found.bounded:
                output = within_budget(output, found, call, has_commands=has_commands(self.tools))
            self._tell_user(asked.number, tool, call.warnings, given)
            return self._answer(tool, call, started, output)
        except Fault as fault:
            if isinstance(fault, Denied) and fault.__cause__:
                self._log.failure(asked.number, tool, fault.__cause__, "asking failed")
            self._tell_user(asked.number, tool, [fault, *(call.warnings if call else ())], given)
            error = self._error(tool, fault, given)
            return self._answer(tool, call, started, self.dialect.error_output(error), error)

    def refuse(self, tool: str, fault: Fault, given: Any = None) -> ToolResult:
        """Return the result of a call that a surface refused before it reached its tool."""
        error = self._word(tool, fault, given)
        return self._answer(tool, None, time.perf_counter(), self.dialect.error_output(error), error)

    def _run(self, tool: Tool, params: Params, call: Call) -> Output:
        for _ in range(self._session.services.limits.conflict_retries):
            try:
                return tool.run(params, call)
            except Conflict:
                call.begin_again()  # the file changed since it was read: retry the edit on its new content
        return tool.run(params, call)

    def _unknown(self, tool: str) -> UnknownTool:
        from handrail.ops.text.similar_names import nearest_name  # noqa: PLC0415  only when something is wrong

        offered = {name: each.description for name, each in self.tools.items()}
        return UnknownTool(tool, list(self.tools), nearest_name(tool, offered) or "")

    def _error(self, tool: str, fault: Fault, given: Any) -> ToolError:
        """Word a fault; name the nearest paths before its suggestion if a path does not exist."""
        error = self._word(tool, fault, given)
        if not isinstance(fault, PathFault):
            return error
        from handrail.runtime.path_hints import path_hints  # noqa: PLC0415  only when something is wrong

        declared = self.dialect.tools.get(tool)
        absolute = self.dialect.absolute_paths and not (declared and declared.effects & Effect.RUN)
        hints = path_hints(self._session.services, fault, absolute=absolute)
        said = [self._word(tool, each, given).message for each in hints]
        return error._replace(suggestion=" ".join([*said, error.suggestion]))

    def _word(self, tool: str, fault: FactRecord, given: Any) -> ToolError:
        return render(self.dialect.tables, tool, fault, self._context(given))

    def _tell_user(self, number: int, tool: str, faults: Sequence[FactRecord], given: Any) -> None:
        for fault in faults:
            if allow := how_to_allow(self.dialect.tables, tool, fault, self._context(given)):
                self._log.refusal(number, tool, allow)

    def _context(self, given: Any) -> Facts:
        return {"root": self._session.services.boundary.root, "params": given if isinstance(given, dict) else {}}

    def _answer(
        self, tool: str, call: Call | None, started: float, output: Output, error: ToolError | None = None
    ) -> ToolResult:
        waited = call.waited if call else 0.0
        took = round((time.perf_counter() - started - waited) * 1000, 3)
        shown = self._session.services.powers.hints
        if call is None:
            return ToolResult(tool, error is None, output, [], took, error=error, show_hints=shown)
        warnings = [self._word(tool, note, call.params).message for note in call.warnings]
        if isinstance(output, dict) and "warnings" in output:  # a dialect whose contract has a place for them
            output["warnings"] = warnings
        files, facts = call.files_affected, call.metadata
        return ToolResult(tool, error is None, output, files, took, facts, error, warnings, show_hints=shown)
