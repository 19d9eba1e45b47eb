"""Implements `handrail approvals`: lists, edits and tests the rules that decide without asking the user."""

from typing import Any

import click

from handrail.kernel.host.use_counts import Count
from handrail.ops.text.display import visible
from handrail.policy.policy import FILE
from handrail.policy.rule_match import PlacedRule
from handrail.surfaces.cli.approvals.rule_edits import add, disable, enable, remove
from handrail.surfaces.cli.approvals.rule_test import test
from handrail.surfaces.cli.light.open_workspace import open_workspace
from handrail.surfaces.cli.options import json_option, root_option
from handrail.surfaces.cli.render import echo_json
from handrail.workspace import internals


@click.group("approvals")
def command() -> None:
    """List, add, remove, switch and test approval rules."""


@command.command("list", short_help="List the rules of a workspace.")
@root_option
@json_option
def list_rules(root: str, as_json: bool) -> None:
    """List the rules of a workspace: the user's, the project's, and those in the project's .handrail.toml."""
    with open_workspace(root) as workspace:
        rules = internals(workspace).rules
        counts = rules.tally.read() if rules.tally else {}
        listed = [(each, None if each.scope == FILE else counts.get(rules.key(each))) for each in rules.placed()]
        homes = {"user": rules.user.path, "project": rules.project.path, FILE: ".handrail.toml"}
    if as_json:
        echo_json([_facts(placed, count) for placed, count in listed], indent=2)
    elif not listed:
        click.echo(f"No rules. User rules are stored in {homes['user']}, project rules in {homes['project']}")
    for scope, home in {} if as_json else homes.items():
        lines = [_line(placed, count) for placed, count in listed if placed.scope == scope]
        if lines:
            click.echo(visible("\n".join([f"{scope} rules, in {home}:", *lines])))


def _line(placed: PlacedRule, count: Count | None) -> str:
    rule = placed.rule
    state = ["expired" if rule.expired else "on" if rule.enabled else "off"]
    if rule.deny:
        state.insert(0, "deny")
    if rule.sandbox:
        state.append(f"in sandbox {rule.sandbox}")
    if rule.rights:
        state.append(f"with {', '.join(rule.rights)}")
    if rule.expires_at:
        state.append(f"until {rule.expires_at.isoformat()}")
    if rule.unattended:
        state.append("unattended")
    if placed.scope != FILE:
        times = "once" if count and count.times == 1 else f"{count.times} times" if count else ""
        state.append(f"used {times}, last {count.last.isoformat()}" if count else "never used")
    shown = rule.calls or f"{rule.tool}  {rule.covers}"
    return f"  {placed.number}. {shown}  ({', '.join(state)})"


def _facts(placed: PlacedRule, count: Count | None) -> dict[str, Any]:
    rule = placed.rule
    return {
        "scope": placed.scope,
        "number": placed.number,
        **({"calls": rule.calls} if rule.calls else {"tool": rule.tool}),
        **({"argv": list(rule.argv)} if rule.argv else {"pattern": rule.pattern} if rule.pattern else {}),
        "sentence": rule.sentence,
        "deny": rule.deny,
        **({"sandbox": rule.sandbox} if rule.sandbox else {}),
        **({"rights": list(rule.rights)} if rule.rights else {}),
        "enabled": rule.enabled,
        "expires_at": rule.expires_at.isoformat() if rule.expires_at else None,
        **({"unattended": True} if rule.unattended else {}),
        "matches": list(rule.matches),
        "rejects": list(rule.rejects),
        "used": count.times if count else 0,
        "last_used": count.last.isoformat() if count else None,
    }


for each in (add, remove, enable, disable, test):
    command.add_command(each)
