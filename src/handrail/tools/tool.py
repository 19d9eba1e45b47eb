"""Declares tools: a Params class and a function each, from which schemas, risk and exports derive."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from handrail.model.effects import Effect, needs_approval, permissions, risk_level
from handrail.model.faults import Fault
from handrail.model.record import record
from handrail.runtime.call import Call
from handrail.tools.media_output import text_of
from handrail.tools.messages import ToolError, Words, render
from handrail.tools.schema import Params

Output = str | Mapping[str, Any]
T = TypeVar("T")


class Guide(NamedTuple):
    """Explains a tool to a model, in addition to its schema."""

    category: str
    termination_behavior_doc: str
    """The guidance on when to end the turn with this call, and when not."""
    example: dict[str, Any]
    use: str
    """The common uses of the tool."""
    options: str
    """The important options, and what they do."""

    @property
    def custom_prompt(self) -> str:
        """Common uses, important options and an example of the parameters as JSON."""
        return f"{self.use}\nOptions: {self.options}\nExample: {json.dumps(self.example, ensure_ascii=False)}"


class Freeform(NamedTuple):
    """Lets a model write one parameter as plain text that matches a Lark grammar, instead of JSON."""

    parameter: str
    description: str
    grammar: str


class Builtin(NamedTuple):
    """Declares a tool whose schema the models of one API know already."""

    api: str
    """The export that uses the declaration: `anthropic` or `openai-responses`."""
    declaration: dict[str, Any]


class Tool(NamedTuple):
    name: str
    dialect: str
    params: type[Params]
    effects: Effect
    run: Callable[[Any, Call], Output]
    description: str
    guide: Guide | None = None
    freeform: Freeform | None = None
    words: Words | None = None
    """The dialect's own words for its errors."""
    builtin: Builtin | None = None
    bounded: bool = False
    """True if `answer_tokens` shortens its output: true for searches and listings without a limit of their own."""

    def builtin_for(self, api: str) -> dict[str, Any] | None:
        """Return the declaration of a tool that an API has built in; None for every other tool and API."""
        return dict(self.builtin.declaration) if self.builtin and self.builtin.api == api else None

    def reading_part(self) -> "Tool | None":
        """Return the tool with the commands that only read; None if it has none."""
        if not needs_approval(self.effects):
            return self
        return self._replace(params=self.params.reading, effects=Effect.READ) if self.params.reading else None

    def validate(self, params: Any) -> ToolError | None:
        """Return what is wrong with parameters, without running the tool; None if they fit the schema."""
        try:
            self.params.parse(self.params.normal({} if params is None else params))
        except Fault as fault:
            given = params if isinstance(params, dict) else {}
            return render(with_common(self.words or {}), self.name, fault, {"root": "", "params": given})
        return None

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
    def required_permissions(self) -> list[str]:
        return permissions(self.effects)

    @property
    def category(self) -> str | None:
        """The category of a tool that has a guide."""
        return self.guide.category if self.guide else None

    @property
    def termination_behavior_doc(self) -> str | None:
        return self.guide.termination_behavior_doc if self.guide else None

    @property
    def custom_prompt(self) -> str | None:
        return self.guide.custom_prompt if self.guide else None

    def function(self) -> dict[str, Any]:
        """Return the plain function-calling form."""
        return {"name": self.name, "description": self.description, "parameters": self.params.function_schema()}


def with_common(words: Words) -> tuple[Words, ...]:
    """Return a table and the common one, which is loaded when the first call fails."""
    from handrail.tools.common_messages import COMMON  # noqa: PLC0415  needed for errors only

    return (words, COMMON)


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
    absolute_paths: bool = False
    """True if its tools take absolute paths only."""

    @property
    def tables(self) -> tuple[Words, ...]:
        """The words for the errors of its tools, its own first."""
        return with_common(self.words)

    def tool(
        self,
        name: str,
        effects: Effect,
        guide: Guide | None = None,
        freeform: Freeform | None = None,
        builtin: Builtin | None = None,
        *,
        bounded: bool = False,
    ) -> Callable[[Callable[[Any, Call], Output]], Tool]:
        """Declare a tool. Its parameters are the annotation of the function's first argument."""

        def declare(run: Callable[[Any, Call], Output]) -> Tool:
            params = next(iter(run.__annotations__.values()))
            about = inspect.cleandoc(run.__doc__ or "")
            made = Tool(name, self.name, params, effects, run, about, guide, freeform, self.words, builtin, bounded)
            self.tools[name] = made
            return made

        return declare


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one call: the same envelope on every surface."""

    tool: str
    success: bool
    output: Output
    """The answer as the dialect's contract has it: text, or an object (`dialects/output_types.py` has their types)."""
    files_affected: list[str]
    """Paths of the files that the call changed, relative to the root."""
    execution_time_ms: float
    metadata: dict[str, Any] = field(default_factory=dict)
    error: ToolError | None = None
    """Code, message and suggestion, if the call failed."""
    warnings: list[str] = field(default_factory=list)

    show_hints: bool = field(default=True, repr=False)
    """True if `hints` and `text` hold suggestion and warnings; the setting `hints`."""

    @property
    def hints(self) -> str:
        """The suggestion and the warnings that the output does not hold, one on each line; empty if there are none."""
        if not self.show_hints:
            return ""
        suggestion = self.error.suggestion if self.error else ""
        lines = [suggestion] if suggestion and not self._says(suggestion) else []
        return "\n".join([*lines, *(f"Warning: {each}" for each in self.warnings if not self._says(each))])

    @property
    def text(self) -> str:
        """The result as a model should read it: the output, then, after a blank line, the hints, if any."""
        return f"{text_of(self.output)}\n\n{self.hints}" if self.hints else text_of(self.output)

    def _says(self, sentence: str) -> bool:
        if isinstance(self.output, str):
            return sentence in self.output
        return any(sentence == each or (isinstance(each, list) and sentence in each) for each in self.output.values())

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
