"""Runs `handrail call`, which calls one tool and prints its answer. Needs no click."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from handrail.dialects import load
from handrail.kernel.host.terminal import wants_colour
from handrail.ops.text.display import visible
from handrail.surfaces.cli.light.find_workspace import found_workspace
from handrail.surfaces.cli.light.light_words import FLAG, WORKSPACE_OPTIONS, Option, Ordinary
from handrail.surfaces.cli.light.open_workspace import dialect_of, open_workspace
from handrail.surfaces.cli.light.plain_output import echo, usage_error
from handrail.surfaces.cli.progress import Progress
from handrail.surfaces.cli.render import echo_json, human
from handrail.surfaces.cli.terminal_access import AllowHints, terminal_approver
from handrail.tools.router import ToolRouter
from handrail.tools.tool import ToolResult

EXIT = {"approval_denied": 3, "timeout": 124}
ORDINARY = Ordinary(
    {
        **WORKSPACE_OPTIONS,
        "--root": Option("root"),
        "--validate": Option("validate", FLAG, default=False),
        "--json": Option("as_json", FLAG, default=False),
    },
    "tool",
    "arguments",
)


def run(
    tool: str,
    arguments: tuple[str, ...],
    *,
    root: str | None,
    dialect: str | None,
    validate: bool,
    as_json: bool,
    network: tuple[str, ...] | None,
    **flags: Any,
) -> int:
    """Call one tool, print its answer, and return the exit code of the process."""
    place = found_workspace() if root is None and not flags.get("image") else root or ""
    dialect_name = dialect_of(tool, dialect)
    params = given_params(dialect_name, tool, arguments)
    progress, hints = Progress(), AllowHints()
    approver = progress.asking(terminal_approver(one_call=True))
    flags["network"] = network or None
    with open_workspace(place, approver=approver, tell=hints.append, **flags) as workspace:
        if validate:
            return _validate(workspace.tools(dialect_name), tool, params, as_json=as_json)
        with progress.during(tool):
            result = workspace.tools(dialect_name).call(tool, params)
        if as_json:
            echo_json(result.to_dict())
        else:
            echo(human(result, workspace.root, colour=wants_colour(sys.stdout)))
        hints.show()
    return exit_code(result)


def _validate(router: ToolRouter, tool: str, params: Any, *, as_json: bool) -> int:
    """Print what is wrong with a call, and return the exit code."""
    wrong = router.validate(tool, params)
    if as_json:
        echo_json({"tool": tool, "valid": wrong is None, **({"error": wrong._asdict()} if wrong else {})})
    elif wrong is None:
        echo(f"✓ {tool}: the call is valid; nothing was run")
    else:
        echo(visible(f"✗ {wrong.message}\n  Suggestion: {wrong.suggestion}\n  Code: {wrong.code}"))
    return 0 if wrong is None else 1


def exit_code(result: ToolResult) -> int:
    """Return the exit code of the process for a result."""
    if result.error:
        return EXIT.get(result.error.code, 1)
    timed_out = (
        isinstance(result.output, Mapping) and result.output.get("timeout") is True
    )  # a timed-out command is an answer, not an error
    return EXIT["timeout"] if timed_out else 0


def given_params(dialect: str, tool: str, arguments: tuple[str, ...]) -> Any:
    """Return the parameters of a call from the arguments of the command line."""
    if arguments == ("-",):
        return _json(sys.stdin.buffer.read())
    if len(arguments) == 1 and arguments[0].lstrip().startswith(("{", "[")):
        return _json(arguments[0])
    declared = load(dialect).tools.get(tool)
    fields = declared.params.fields if declared else {}
    params = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals:
            raise usage_error(f"expected KEY=VALUE, not {argument!r}")
        is_text = key in fields and fields[key].kind is str
        params[key] = value if is_text else _json_or_text(value)
    return params


def _json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise usage_error(f"the parameters are not valid JSON: {error}") from None


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
