"""Implements `handrail run`: reads calls as JSON lines and answers each with one envelope, in one session."""

import json
import sys
from typing import Any

import click

from handrail.surfaces.cli.light.open_workspace import dialect_of, open_workspace
from handrail.surfaces.cli.light.page_address import print_page_address
from handrail.surfaces.cli.options import page_option, workspace_options
from handrail.surfaces.cli.progress import Progress
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.cli.terminal_access import AllowHints, terminal_approver
from handrail.tools.messages import ToolError
from handrail.tools.tool import ToolResult
from handrail.workspace import Workspace

WAITING = "handrail: waiting for calls, one JSON object per line; press Ctrl-D to end"
_HOW = 'Send one JSON object per line: {"tool": "…", "params": {…}, "id": …}'


@click.command("run")
@workspace_options
@page_option
@click.option("--json", "_", is_flag=True, hidden=True, help="The output is always JSON.")
def command(dialect: str | None, root: str, _: bool, page: bool, **options: Any) -> None:
    """Read one JSON object per line (`tool`, `params`, optional `id`) and print one JSON result per line."""
    progress, hints = Progress(), AllowHints()
    approver = progress.asking(terminal_approver())
    with open_workspace(root, approver=approver, tell=hints.append, **options) as workspace:
        if page:
            print_page_address([workspace])
        if sys.stdin.isatty():
            click.echo(WAITING, err=True)
        for line in sys.stdin.buffer:
            if line.strip():
                echo_json(_answer(workspace, dialect, line, progress))
                hints.show()


def _answer(workspace: Workspace, dialect: str | None, line: bytes, progress: Progress) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return _bad(f"The line is not valid JSON: {error}", {})
    if not isinstance(request, dict):
        return _bad("The line is not a JSON object", {})
    if not isinstance(request.get("tool"), str):
        return _bad("The object has no tool name", request | {"tool": ""})
    if unknown := request.keys() - {"tool", "params", "id"}:
        return _bad(f"Unknown key '{min(unknown)}'", request)
    try:
        dialect_name = dialect_of(request["tool"], dialect)
    except click.UsageError as error:
        return _bad(error.message, request)
    call_id = request.get("id")
    with progress.during(request["tool"]):
        result = workspace.tools(dialect_name).call(
            request["tool"], request.get("params"), call_id=None if call_id is None else str(call_id)
        )
    return _with_id(result, request)


def _bad(message: str, request: dict[str, Any]) -> dict[str, Any]:
    error = ToolError("invalid_request", message, _HOW)
    output = {"error": error.code, "message": error.message}
    tool = request.get("tool", "")
    return _with_id(
        ToolResult(tool, success=False, output=output, files_affected=[], execution_time_ms=0, error=error), request
    )


def _with_id(result: ToolResult, request: dict[str, Any]) -> dict[str, Any]:
    known = {"id": request["id"]} if "id" in request else {}
    return {**known, **result.to_dict()}
