"""Implements `handrail doctor`: says what this machine offers and what is missing."""

import click

from handrail.kernel.doctor.checks import examine
from handrail.surfaces.cli.light.open_workspace import open_workspace, usage_errors
from handrail.surfaces.cli.options import json_option, network_option, root_option, sandbox_option
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.doctor_report import Finding, machine_findings, workspace_findings

_MARKS = {True: "✓", False: "✗"}


@click.command("doctor")
@root_option
@network_option
@sandbox_option
@json_option
def command(root: str, sandbox: str | None, network: tuple[str, ...] | None, as_json: bool) -> None:
    """Say what this machine offers and what is missing, and try the sandbox."""
    with usage_errors(root):
        findings = machine_findings(examine(root))
    with open_workspace(root, sandbox=sandbox, network=network) as workspace:
        findings += workspace_findings(workspace)
    if as_json:
        echo_json([_facts(finding) for finding in findings], indent=2)
    else:
        for finding in findings:
            click.echo(f"{_MARKS[finding.good]} {finding.name}: {finding.says}")
    raise SystemExit(0 if all(finding.good or not finding.needed for finding in findings) else 1)


def _facts(finding: Finding) -> dict[str, object]:
    return {"name": finding.name, "good": finding.good, "needed": finding.needed, "says": finding.says}
