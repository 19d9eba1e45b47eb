"""Offers the methods of a workspace (tools, programs, bytes) where another object makes the calls."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from handrail.dialects import load
from handrail.fleet.fleet_errors import FleetError
from handrail.library.raw_access import RawAccess
from handrail.tools.messages import ToolError
from handrail.tools.router import ToolRouter
from handrail.tools.schema import name_of
from handrail.tools.tool import Dialect, ToolResult

if TYPE_CHECKING:
    import threading

Json = dict[str, Any]
RAW = "raw"

Maker = Callable[[str, str, Any, str | None], Json]
"""Makes a call: dialect, tool, parameters and, if the caller named it, its id."""


def dialect_by_name(name: str) -> Dialect:
    """Return a dialect, or the tools behind `exec` and its sisters."""
    if name == RAW:
        from handrail.dialects.raw import dialect  # noqa: PLC0415  most episodes call tools

        return dialect
    return load(name)


def result_of(envelope: Json) -> ToolResult:
    """Return the result that an envelope describes."""
    error = envelope.get("error")
    return ToolResult(
        envelope["tool"],
        envelope["success"],
        envelope["output"],
        envelope["files_affected"],
        envelope["execution_time_ms"],
        envelope.get("metadata", {}),
        ToolError(error["code"], error["message"], error["suggestion"]) if error else None,
        envelope.get("warnings", []),
    )


class RemoteRouter(ToolRouter):
    """Calls the tools of a dialect in a workspace that another object holds."""

    def __init__(self, dialect: Dialect, make: Maker) -> None:
        self.dialect, self._make = dialect, make
        self.tools, self._originals = dict(dialect.tools), {}

    def call(
        self,
        tool: str,
        params: Any = None,
        *,
        call_id: str | None = None,
        cancel: "threading.Event | None" = None,  # noqa: ARG002  a call that has begun is not taken back
    ) -> ToolResult:
        """Run a tool and return its result. A repeated `call_id` gets the first result, without a second effect."""
        name = name_of(tool)
        original = self._originals.get(name, name) if name in self.tools else name
        return result_of(self._make(self.dialect.name, original, {} if params is None else params, call_id))

    def validate(self, tool: str, params: Any = None) -> ToolError | None:
        """Return what is wrong with the parameters of a call; None if nothing is."""
        return self.tools[tool].validate(params)


class CallingWorkspace(RawAccess):
    """Gives a workspace its methods, outside its host or with a record of its calls. A subclass makes the calls."""

    def _make(self, dialect: str, tool: str, params: Any, call_id: str | None) -> Json:
        raise NotImplementedError

    def tools(self, dialect: str | Dialect) -> ToolRouter:
        """Return the tools of a dialect."""
        found = dialect_by_name(dialect) if isinstance(dialect, str) else dialect
        if found.name != RAW and load(found.name) is not found:
            raise FleetError(f"unknown dialect {found.name}: hosts know only the dialects of Handrail")
        return RemoteRouter(found, self._make)

    def call(self, dialect: str, tool: str, params: Any = None, *, id: str | None = None) -> ToolResult:  # noqa: A002
        """Run one tool of a dialect. A repeated `id` gets the first result, without a second effect."""
        return self.tools(dialect).call(tool, params, call_id=id)

    async def acall(self, dialect: str, tool: str, params: Any = None, *, id: str | None = None) -> ToolResult:  # noqa: A002
        """Run one tool of a dialect in a worker thread."""
        return await self.tools(dialect).acall(tool, params, call_id=id)

    def calls(self, calls: Sequence[tuple[str, str, Any]]) -> list[ToolResult]:
        """Run several calls, one after the other: dialect, tool and parameters of each."""
        return [self.call(*each) for each in calls]
