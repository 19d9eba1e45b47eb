"""A tool is declared once, as a Params class and a function; all else derives from the declaration."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from handrail.model.effects import Effect, needs_approval, permissions, risk_level
from handrail.model.record import record
from handrail.runtime.call import Call
from handrail.tools.common_messages import COMMON
from handrail.tools.messages import ToolError, Words
from handrail.tools.schema import Params

Output = str | Mapping[str, Any]


class Guide(NamedTuple):
    """What a model is told about a tool beside its schema."""

    category: str
    ends: str
    """When to end the turn with this call, and when not."""
    example: dict[str, Any]
    use: str


class Freeform(NamedTuple):
    """How a model may write one parameter as plain text instead of JSON, held to a Lark grammar."""

    parameter: str
    description: str
    grammar: str


class Tool(NamedTuple):
    name: str
    dialect: str
    params: type[Params]
    effects: Effect
    run: Callable[[Any, Call], Output]
    description: str
    guide: Guide | None = None
    freeform: Freeform | None = None

    @property
    def risk(self) -> str:
        return risk_level(self.effects)

    @property
    def requires_approval(self) -> bool:
        return needs_approval(self.effects)

    @property
    def output(self) -> dict[str, Any] | None:
        """The schema of the output where that is an object, read off the type that the function returns."""
        from handrail.tools.output_schema import output_schema  # noqa: PLC0415  only who exports schemas pays for them

        return output_schema(self.run.__annotations__.get("return"))

    @property
    def permissions(self) -> list[str]:
        return permissions(self.effects)

    def function(self) -> dict[str, Any]:
        """The function-calling form."""
        schema = self.params.schema()
        parameters = {word: schema[word] for word in ("type", "properties", "required")}
        return {"name": self.name, "description": self.description, "parameters": parameters}


def _error_object(said: ToolError) -> Output:
    return {"error": said.code, "message": said.message}


@record
class Dialect:
    name: str
    words: Words = field(default_factory=dict)
    error_output: Callable[[ToolError], Output] = _error_object
    tools: dict[str, Tool] = field(default_factory=dict)
    categories: dict[str, str] = field(default_factory=dict)
    """In the order of the system prompt, each with its description."""

    @property
    def tables(self) -> tuple[Words, ...]:
        return (self.words, COMMON)

    def tool(
        self, name: str, effects: Effect, guide: Guide | None = None, freeform: Freeform | None = None
    ) -> Callable[[Callable[[Any, Call], Output]], Tool]:
        """Declare a tool. Its parameters are the annotation of the function's first argument."""

        def declare(run: Callable[[Any, Call], Output]) -> Tool:
            params = next(iter(run.__annotations__.values()))
            made = Tool(name, self.name, params, effects, run, inspect.cleandoc(run.__doc__ or ""), guide, freeform)
            self.tools[name] = made
            return made

        return declare


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one envelope, on every surface."""

    tool: str
    success: bool
    output: Output
    files_affected: list[str]
    execution_time_ms: float
    metadata: dict[str, Any] = field(default_factory=dict)
    error: ToolError | None = None
    warnings: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "tool": self.tool,
            "success": self.success,
            "output": self.output,
            "files_affected": self.files_affected,
            "execution_time_ms": self.execution_time_ms,
        }
        if self.metadata:
            made["metadata"] = self.metadata
        if self.error:
            error = self.error
            made["error"] = {"code": error.code, "message": error.message, "suggestion": error.suggestion}
        if self.warnings:
            made["warnings"] = self.warnings
        return made
