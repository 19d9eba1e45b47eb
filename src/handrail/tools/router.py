"""Routes calls to the tools of a dialect: look up, validate, run, word the errors, log."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

from handrail.errors import UnknownToolError, did_you_mean
from handrail.kernel.host.session_log import SessionLog
from handrail.model.effects import Effect
from handrail.model.facts import FactRecord
from handrail.model.faults import Cancelled, Closed, Conflict, Denied, Fault, PathFault, ReadOnlyWorkspace, UnknownTool
from handrail.model.hints import FileWithSlash
from handrail.model.hooks import InputChanged, Judgement
from handrail.runtime.call import Asked, Call, TrialOver
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


def _reading(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Return the tools that only read. A tool with several commands keeps those that only read."""
    return {name: part for name, tool in tools.items() if (part := tool.reading_part())}


class ToolRouter:
    """Calls the tools of one dialect in one session, and exports them to function-calling APIs.

    `only`, `renamed` and `read_only` return a router with fewer or other names on the same session.
    """

    def __init__(self, dialect: Dialect, session: Session, log: SessionLog) -> None:
        self.dialect, self._session, self._log = dialect, session, log
        self.tools: dict[str, Tool] = _reading(dialect.tools) if session.read_only else dict(dialect.tools)
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
                work = partial(self._logged, offered, original, given, started, call_id, cancel)
                result = self._traced(offered, original, given, call_id, work)
        except Closed as fault:
            result = self.refuse(original, fault, given)
        return result if original == name else replace(result, tool=name)

    def validate(self, tool: str, params: Any = None) -> ToolError | None:
        """Return what is wrong with a call, without asking for it; None if nothing is.

        Tries the tool up to the point where it would change, run, fetch or find something, so it checks what the tool
        checks: parameters, paths, patterns, line numbers, whether a text occurs and whether a patch fits.
        """
        name, given = name_of(tool), {} if params is None else params
        offered, original = self.tools.get(name), self._originals.get(name, name)
        try:
            with self._session.open_calls:
                if offered is None:
                    raise self._unknown(name)
                given = offered.params.normal(given)
                parsed = offered.params.parse(given)
                offered.run(parsed, self._new_call(offered, original, parsed, given, trial=True))
        except TrialOver:
            return None
        except Fault as fault:
            return self._error(original, fault, given)
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
        """Return a router without the tools and commands that change files, run commands or fetch pages."""
        return self._with(_reading(self.tools))

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

    def _traced(
        self, offered: Tool | None, tool: str, given: Any, call_id: str | None, work: Callable[[], ToolResult]
    ) -> ToolResult:
        """Run a call, and describe it as a span if the user asked for telemetry."""
        spans = self._session.spans
        if spans is None:
            return work()
        about = {"gen_ai.tool.call.id": call_id, "handrail.dialect": self.dialect.name}
        about |= {"gen_ai.tool.description": offered.description, "handrail.risk": offered.risk} if offered else {}
        with spans.call(tool, about, given) as span:
            result = work()
            changed = {"handrail.files_affected": len(result.files_affected)}
            span.end(result.text, result.error.code if result.error else "", changed)
        return result

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
        live = None
        if (page := self._session.page) is not None:
            cancel = cancel or threading.Event()  # the user can stop the call on the page
            live = page.begin((self.dialect.name, tool), given, offered.params.paths if offered else (), number, cancel)
        try:
            result = self._attempt(offered, tool, given, started, Asked(number, call_id, cancel, live=live))
        except Exception as bug:  # noqa: BLE001  a bug in a tool must not end the server; the log has its traceback
            self._log.failure(number, tool, bug)
            result = self._answer(tool, None, started, self.dialect.error_output(_BUG), _BUG)
        self._log.response(number, result)
        if live is not None:
            live.end(result)
        return result

    def _attempt(self, found: Tool | None, tool: str, given: Any, started: float, asked: Asked) -> ToolResult:
        call: Call | None = None
        try:
            if found is None:
                raise self._unknown(tool)
            parsed, judged = self._judged(found, tool, found.params.normal(given), asked)
            given = judged.params
            call = self._new_call(found, tool, parsed, given, asked=asked, waited=judged.seconds, judged=judged)
            call.note_beginning()
            call.begin()
            output = self._run(found, parsed, call)
            if found.bounded:
                output = within_budget(output, found, call, has_commands=has_commands(self.tools))
            output = self._after(found, call, output, started)
            self._tell_user(asked.number, tool, call.warnings, given)
            return self._answer(tool, call, started, output)
        except InputChanged as change:
            return self._attempt(found, tool, change.params, started, asked._replace(changed=True))
        except Fault as fault:
            if isinstance(fault, Denied) and fault.__cause__:
                self._log.failure(asked.number, tool, fault.__cause__, "asking failed")
            error = self._error(tool, fault, given)
            self._after_failure(call, fault, error, started)
            self._tell_user(asked.number, tool, [fault, *(call.warnings if call else ())], given)
            return self._answer(tool, call, started, self.dialect.error_output(error), error)

    def _new_call(self, found: Tool, tool: str, parsed: Params, given: Any, **more: Any) -> Call:
        declared = found.params
        ordered = {name: given[name] for name in declared.fields if declared.gives(given, name)}
        about = (declared.bodies, declared.paths, declared.mount)
        if declared.unknown_allowed and not given.keys() <= declared.fields.keys():
            from handrail.tools.parameter_hints import ignored  # noqa: PLC0415  only when something is wrong

            more["known_warnings"] = ignored(given, declared.descriptions())
        return Call(self._session, self.dialect.name, tool, ordered, parsed.narrowed(found.effects), *about, **more)

    def _judged(self, found: Tool, tool: str, given: Any, asked: Asked) -> tuple[Params, Judgement]:
        """Check the parameters and let hooks judge them; check them again if a hook has changed them."""
        parsed, hooks = found.params.parse(given), self._session.hooks
        if hooks is None:
            return parsed, Judgement(params=given)
        judged = hooks.before(self.dialect.name, tool, given, asked)
        if judged.params is given:
            return parsed, judged
        changed = found.params.normal(judged.params)
        return found.params.parse(changed), judged._replace(params=changed)

    def refuse(self, tool: str, fault: Fault, given: Any = None) -> ToolResult:
        """Return the result of a call that a surface refused before it reached its tool."""
        error = self._word(tool, fault, given)
        return self._answer(tool, None, time.perf_counter(), self.dialect.error_output(error), error)

    def _after(self, tool: Tool, call: Call, output: Output, started: float) -> Output:
        """Let hooks act on the result of a call; return the output that the model sees."""
        hooks = self._session.hooks
        if hooks is None:
            return output
        from handrail.tools.hook_output import replaced  # noqa: PLC0415  most sessions have no hooks

        given = hooks.after(call, output, _milliseconds(call, started))
        return output if given is None else replaced(tool, call, output, given)

    def _after_failure(self, call: Call | None, fault: Fault, error: ToolError, started: float) -> None:
        """Let hooks act on a call that began and failed."""
        if self._session.hooks is not None and call is not None and not isinstance(fault, Denied):
            cancelled = isinstance(fault, Cancelled)
            self._session.hooks.after_failure(call, error.message, _milliseconds(call, started), cancelled=cancelled)

    def _run(self, tool: Tool, params: Params, call: Call) -> Output:
        if self._session.hooks is None:
            return self._retried(tool, params, call)
        with self._session.hooks.during(call.asked):
            return self._retried(tool, params, call)

    def _retried(self, tool: Tool, params: Params, call: Call) -> Output:
        for _ in range(self._session.services.limits.conflict_retries):
            try:
                return tool.run(params, call)
            except Conflict:
                call.begin_again()  # the file changed since it was read: retry the edit on its new content
        return tool.run(params, call)

    def _unknown(self, tool: str) -> Fault:
        """Return why a name is no tool here: a read-only workspace offers no tool that changes anything."""
        if self._session.read_only and tool in self.dialect.tools:
            return ReadOnlyWorkspace(tool)
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
        mount = declared.params.mount if declared else ""
        hints = path_hints(self._session.services, fault, absolute=absolute, mount=mount)
        said = [self._word(tool, each, given).message for each in hints]
        if not any(isinstance(each, FileWithSlash) for each in hints):
            said.append(error.suggestion)
        return error._replace(suggestion=" ".join(said))

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
        took = _milliseconds(call, started)
        shown = self._session.services.powers.hints
        if call is None:
            return ToolResult(tool, error is None, output, [], took, error=error, show_hints=shown)
        warnings = [self._word(tool, note, call.params).message for note in call.warnings]
        if isinstance(output, dict) and "warnings" in output:  # a dialect whose contract has a place for them
            output["warnings"] = warnings
        files, facts = call.files_affected, call.metadata
        return ToolResult(tool, error is None, output, files, took, facts, error, warnings, show_hints=shown)


def _milliseconds(call: Call | None, started: float) -> float:
    """Return how long a call has taken, without the time that it waited."""
    return round((time.perf_counter() - started - (call.waited if call else 0.0)) * 1000, 3)
