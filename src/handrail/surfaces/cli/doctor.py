"""`handrail doctor`: what this machine offers, and what is missing."""

import click

from handrail.kernel.doctor.checks import Finding, examine, try_sandbox
from handrail.surfaces.cli.options import json_option, open_workspace, root_option, sandbox_option, usage_errors
from handrail.surfaces.cli.render import echo_json
from handrail.workspace import default_session

_MARKS = {True: "✓", False: "✗"}


@click.command("doctor")
@root_option
@sandbox_option
@json_option
def command(root: str, sandbox: str | None, as_json: bool) -> None:
    """Say what this machine offers and what is missing, and try the sandbox."""
    with usage_errors(root):
        findings = examine(root)
    with open_workspace(root, sandbox=sandbox) as workspace:
        findings += try_sandbox(default_session(workspace).processes)
    if as_json:
        echo_json([_facts(finding) for finding in findings], indent=2)
    else:
        for finding in findings:
            click.echo(f"{_MARKS[finding.good]} {finding.name}: {finding.says}")
    raise SystemExit(0 if all(finding.good or not finding.needed for finding in findings) else 1)


def _facts(finding: Finding) -> dict[str, object]:
    return {"name": finding.name, "good": finding.good, "needed": finding.needed, "says": finding.says}
