"""ToolRouter.call(): look up, validate, grant, run, word, encode, log."""

import threading
import time
from collections.abc import Sequence
from typing import Any

from handrail.kernel.host.session_log import SessionLog
from handrail.model.effects import needs_approval
from handrail.model.faults import Closed, Conflict, Denied, Fault, UnknownTool
from handrail.model.warnings import RootReplaced
from handrail.runtime.call import Asked, Call
from handrail.runtime.session import Session
from handrail.tools.exports import Exports
from handrail.tools.messages import Facts, ToolError, how_to_allow, render
from handrail.tools.schema import Params, name_of
from handrail.tools.tool import Dialect, Output, Tool, ToolResult

_BUG = ToolError(
    "internal_error",
    "The tool failed because of a bug in Handrail",
    "The session log has the details; other calls still work",
)


class ToolRouter(Exports):
    """The tools of one dialect in one session."""

    def __init__(self, dialect: Dialect, session: Session, log: SessionLog) -> None:
        self.dialect, self.session, self._log = dialect, session, log
        self.tools = {
            name: tool
            for name, tool in dialect.tools.items()
            if not (session.read_only and needs_approval(tool.effects))
        }

    def call(
        self,
        tool: str,
        params: Any = None,
        *,
        call_id: str | None = None,
        cancel: threading.Event | None = None,
    ) -> ToolResult:
        """Run a tool. Whatever happens, the answer is a ToolResult."""
        started = time.perf_counter()
        tool = name_of(tool)  # a caller may hand on what a model made up
        given = {} if params is None else params
        try:
            with self.session.open_calls:
                return self._logged(tool, given, started, call_id, cancel)
        except Closed as fault:
            return self.refuse(tool, fault, given)

    def _logged(
        self, tool: str, given: Any, started: float, call_id: str | None, cancel: threading.Event | None
    ) -> ToolResult:
        number = self._log.request(self.dialect.name, tool, given, call_id)
        try:
            result = self._attempt(tool, given, started, Asked(number, call_id, cancel))
        except Exception as bug:  # noqa: BLE001  one in a tool must not end the server; it is logged whole
            self._log.failure(number, tool, bug)
            result = self._answer(tool, None, started, self.dialect.error_output(_BUG), _BUG)
        self._log.response(number, result)
        return result

    def _attempt(self, tool: str, given: Any, started: float, asked: Asked) -> ToolResult:
        call: Call | None = None
        try:
            found = self._look_up(tool)
            parsed = found.params.parse(given)
            ordered = {name: given[name] for name in found.params.fields if name in given}
            call = Call(
                self.session,
                self.dialect.name,
                tool,
                ordered,
                found.effects,
                found.params.bodies,
                found.params.paths,
                asked,
            )
            if self.session.services.boundary.was_replaced():
                call.warnings.append(RootReplaced())
            call.begin()
            output = self._run(found, parsed, call)
            self._tell_user(asked.number, tool, call.warnings, given)
            return self._answer(tool, call, started, output)
        except Fault as fault:
            if isinstance(fault, Denied) and fault.__cause__:
                self._log.failure(asked.number, tool, fault.__cause__, "asking failed")
            self._tell_user(asked.number, tool, [fault, *(call.warnings if call else ())], given)
            error = self._word(tool, fault, given)
            return self._answer(tool, call, started, self.dialect.error_output(error), error)

    def refuse(self, tool: str, fault: Fault, given: Any = None) -> ToolResult:
        """The answer to a call that a surface turned away before it reached its tool."""
        error = self._word(tool, fault, given)
        return self._answer(tool, None, time.perf_counter(), self.dialect.error_output(error), error)

    def _look_up(self, tool: str) -> Tool:
        found = self.tools.get(tool)
        if found is None:
            raise UnknownTool(tool, list(self.tools))
        return found

    def _run(self, tool: Tool, params: Params, call: Call) -> Output:
        for _ in range(self.session.services.limits.conflict_retries):
            try:
                return tool.run(params, call)
            except Conflict:
                call.begin_again()  # the file changed since it was read: work the edit out anew
        return tool.run(params, call)

    def _word(self, tool: str, fault: Fault, given: Any) -> ToolError:
        return render(self.dialect.tables, tool, fault, self._context(given))

    def _tell_user(self, number: int, tool: str, faults: Sequence[Fault], given: Any) -> None:
        for fault in faults:
            if allow := how_to_allow(self.dialect.tables, tool, fault, self._context(given)):
                self._log.refusal(number, tool, allow)

    def _context(self, given: Any) -> Facts:
        return {"root": self.session.services.boundary.root, "params": given if isinstance(given, dict) else {}}

    def _answer(
        self, tool: str, call: Call | None, started: float, output: Output, error: ToolError | None = None
    ) -> ToolResult:
        waited = call.waited if call else 0.0
        took = round((time.perf_counter() - started - waited) * 1000, 3)
        if call is None:
            return ToolResult(tool, error is None, output, [], took, error=error)
        warnings = [self._word(tool, note, call.params).message for note in call.warnings]
        if isinstance(output, dict) and "warnings" in output:  # where the contract has a place for them
            output["warnings"] = warnings
        return ToolResult(tool, error is None, output, call.files_affected, took, call.metadata, error, warnings)
