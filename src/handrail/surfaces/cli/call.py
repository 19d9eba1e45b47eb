"""Implements `handrail call TOOL [JSON | KEY=VALUE …]`."""

import json
import sys
from collections.abc import Mapping
from typing import Any

import click

from handrail.dialects import NAMES, load
from handrail.kernel.host.terminal import wants_colour
from handrail.ops.text.display import visible
from handrail.surfaces.cli import complete_paths
from handrail.surfaces.cli.options import dialect_of, json_option, open_workspace, workspace_options
from handrail.surfaces.cli.progress import Progress
from handrail.surfaces.cli.render import echo_json, human
from handrail.surfaces.cli.terminal_access import AllowHints, terminal_approver
from handrail.tools.router import ToolRouter
from handrail.tools.tool import ToolResult

EXIT = {"approval_denied": 3, "timeout": 124}


def _complete_tool(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    names = [ctx.params["dialect"]] if ctx.params.get("dialect") else list(NAMES)
    return sorted({tool for name in names for tool in load(name).tools if tool.startswith(incomplete)})


@click.command("call")
@click.argument("tool", shell_complete=_complete_tool)
@click.argument("arguments", nargs=-1, metavar="[JSON | KEY=VALUE …]", shell_complete=complete_paths.arguments)
@workspace_options
@click.option("--validate", is_flag=True, help="Say what is wrong with the call; run nothing and ask nothing.")
@json_option
def command(
    tool: str, arguments: tuple[str, ...], dialect: str | None, validate: bool, as_json: bool, **options: Any
) -> None:
    """Call one tool and print its answer.

    Give the parameters as one JSON object or as KEY=VALUE pairs. A value is read as text if the tool expects text, else
    as JSON. A single - reads the JSON object from standard input.
    """
    dialect_name = dialect_of(tool, dialect)
    params = given_params(dialect_name, tool, arguments)
    progress, hints = Progress(), AllowHints()
    approver = progress.asking(terminal_approver(one_call=True))
    with open_workspace(options.pop("root"), approver=approver, tell=hints.append, **options) as workspace:
        if validate:
            raise SystemExit(_validate(workspace.tools(dialect_name), tool, params, as_json=as_json))
        with progress.during(tool):
            result = workspace.tools(dialect_name).call(tool, params)
        if as_json:
            echo_json(result.to_dict())
        else:
            click.echo(human(result, workspace.root, colour=wants_colour(sys.stdout)))
        hints.show()
    raise SystemExit(exit_code(result))


def _validate(router: ToolRouter, tool: str, params: Any, *, as_json: bool) -> int:
    """Print what is wrong with a call, and return the exit code."""
    wrong = router.validate(tool, params)
    if as_json:
        echo_json({"tool": tool, "valid": wrong is None, **({"error": wrong._asdict()} if wrong else {})})
    elif wrong is None:
        click.echo(f"✓ {tool}: the call is valid; nothing was run")
    else:
        click.echo(visible(f"✗ {wrong.message}\n  Suggestion: {wrong.suggestion}\n  Code: {wrong.code}"))
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
            raise click.UsageError(f"expected KEY=VALUE, not {argument!r}")
        is_text = key in fields and fields[key].kind is str
        params[key] = value if is_text else _json_or_text(value)
    return params


def _json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"the parameters are not valid JSON: {error}") from None


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
