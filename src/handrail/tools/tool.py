"""Declares tools: a Params class and a function each, from which schemas, risk and exports derive."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from handrail.model.effects import Effect, needs_approval, permissions, risk_level
from handrail.model.record import record
from handrail.runtime.call import Call
from handrail.tools.common_messages import COMMON
from handrail.tools.messages import ToolError, Words
from handrail.tools.schema import Params

Output = str | Mapping[str, Any]
T = TypeVar("T")


class Guide(NamedTuple):
    """Explains a tool to a model, in addition to its schema."""

    category: str
    ends: str
    """When to end the turn with this call, and when not."""
    example: dict[str, Any]
    use: str


class Freeform(NamedTuple):
    """Lets a model write one parameter as plain text instead of JSON, held to a Lark grammar."""

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
        """The schema of the output if that is an object, read from the return type of the function."""
        from handrail.tools.output_schema import output_schema  # noqa: PLC0415  only exports need it

        return output_schema(self.run.__annotations__.get("return"))

    @property
    def permissions(self) -> list[str]:
        return permissions(self.effects)

    def function(self) -> dict[str, Any]:
        """Return the plain function-calling form."""
        return {"name": self.name, "description": self.description, "parameters": self.params.function_schema()}


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


def media_of(output: Any) -> tuple[str, str] | None:
    """Return the type and the base64 data of an output that is an image, a PDF or the like; None for others."""
    inline = output.get("inlineData") if isinstance(output, dict) else None
    return (inline["mimeType"], inline["data"]) if inline else None


def text_of(output: Any) -> str:
    """Return an output as text: text as it is, an object as JSON."""
    if media := media_of(output):
        return f"The file is {media[0]}, which cannot be shown as text"
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one call: the same envelope on every surface."""

    tool: str
    success: bool
    output: Output
    """What the dialect's contract says: text, or an object (`dialects/output_types.py` has their types)."""
    files_affected: list[str]
    """Paths of the files that the call changed, relative to the root."""
    execution_time_ms: float
    metadata: dict[str, Any] = field(default_factory=dict)
    error: ToolError | None = None
    """Code, message and suggestion, if the call failed."""
    warnings: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The result as a model should read it: the output, then the suggestion and the warnings, if any."""
        lines = [text_of(self.output)]
        if self.error and self.error.suggestion and self.error.suggestion not in lines[0]:
            lines.append(self.error.suggestion)
        lines += [f"Warning: {each}" for each in self.warnings if each not in lines[0]]
        return "\n".join(lines)

    def output_as(self, kind: type[T]) -> T:
        """Return the output, typed as one of the TypedDicts in `handrail.dialects.output_types`, or as `str`.

        Raises TypeError if the output is not of that shape: a failed call has another one.
        """
        wanted = getattr(kind, "__required_keys__", None)
        fits = isinstance(self.output, kind) if wanted is None else wanted <= set(_keys(self.output))
        if not fits:
            raise TypeError(f"the output of {self.tool} is not a {kind.__name__}: {text_of(self.output)[:200]}")
        return self.output  # type: ignore[return-value]  # checked above

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


def _keys(output: Output) -> list[str]:
    return [] if isinstance(output, str) else list(output)
