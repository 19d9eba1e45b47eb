"""Implements `handrail approvals`: lists, edits and tests the rules that decide without asking the user."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from handrail.dialects import find_dialect
from handrail.errors import RuleError
from handrail.history import KINDS
from handrail.kernel.host.state_dir import State, config_home
from handrail.kernel.host.use_counts import Count
from handrail.model.limits import Limits
from handrail.ops.text.display import visible
from handrail.policy.policy import FILE
from handrail.policy.rule_match import Decision, PlacedRule
from handrail.policy.rule_store import RuleFile
from handrail.policy.rules import ANY_TOOL, LEVELS, Rule, checked, from_text, parse_time
from handrail.surfaces.cli.call import given_params
from handrail.surfaces.cli.options import (
    dialect_of,
    dialect_options,
    json_option,
    open_workspace,
    root_option,
    usage_errors,
)
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.cli.rule_test import RuleTrial, try_call, try_undo
from handrail.surfaces.cli.terminal_access import refuse_unattended
from handrail.workspace import internals

_SCOPES = click.Choice(["user", "project"])
_unattended_option = click.option(
    "--unattended",
    is_flag=True,
    help="Require no user at a terminal; a rule that is added or switched this way is marked.",
)
_scope_option = click.option(
    "--scope", type=_SCOPES, default="user", show_default=True, help="The rules of the user or of this project."
)


def _rule_file(scope: str, root: str) -> RuleFile:
    with usage_errors(root):
        return RuleFile.load(config_home() if scope == "user" else State.of(root).path, Limits())


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
    if rule.expires_at:
        state.append(f"until {rule.expires_at.isoformat()}")
    if rule.unattended:
        state.append("unattended")
    if placed.scope != FILE:
        times = "once" if count and count.times == 1 else f"{count.times} times" if count else ""
        state.append(f"used {times}, last {count.last.isoformat()}" if count else "never used")
    return f"  {placed.number}. {rule.tool}  {rule.covers}  ({', '.join(state)})"


def _facts(placed: PlacedRule, count: Count | None) -> dict[str, Any]:
    rule = placed.rule
    return {
        "scope": placed.scope,
        "number": placed.number,
        "tool": rule.tool,
        **({"argv": list(rule.argv)} if rule.argv else {"pattern": rule.pattern}),
        "deny": rule.deny,
        **({"sandbox": rule.sandbox} if rule.sandbox else {}),
        "enabled": rule.enabled,
        "expires_at": rule.expires_at.isoformat() if rule.expires_at else None,
        **({"unattended": True} if rule.unattended else {}),
        "matches": list(rule.matches),
        "rejects": list(rule.rejects),
        "used": count.times if count else 0,
        "last_used": count.last.isoformat() if count else None,
    }


@command.command("add", short_help="Allow or deny the calls that match a pattern.")
@click.argument("tool")
@click.argument("pattern")
@_scope_option
@root_option
@click.option(
    "--sandbox",
    type=click.Choice([*LEVELS]),
    help="The weakest sandbox level in which the rule approves; default: any.",
)
@click.option("--deny", is_flag=True, help="Deny matching calls instead of allowing them.")
@click.option("--expires-at", metavar="TIME", help="ISO 8601; UTC unless TIME names a time zone.")
@click.option("--for", "lifetime", metavar="HOURS", type=click.FloatRange(min=0), help="Expire after this many hours.")
@click.option("--match", "matches", multiple=True, metavar="JSON", help="Parameters that the rule must cover.")
@click.option("--reject", "rejects", multiple=True, metavar="JSON", help="Parameters that the rule must not cover.")
@_unattended_option
def add(
    tool: str,
    pattern: str,
    scope: str,
    root: str,
    sandbox: str | None,
    expires_at: str | None,
    lifetime: float | None,
    **options: Any,
) -> None:
    """Allow the calls of TOOL whose parameters, as compact JSON, match PATTERN from end to end.

    For a command, PATTERN may be a JSON list of its words: ["git", "status", "..."]. In the list, * matches one
    argument that is not an option, and a final ... matches any further arguments.
    """
    unattended = options.pop("unattended")
    with usage_errors(root):
        expires = parse_time(expires_at) if expires_at else None
        if lifetime is not None:
            try:
                expires = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=lifetime)
            except (OverflowError, ValueError):
                raise RuleError(f"--for {lifetime}: the expiry date is out of range") from None
        plain = from_text("any", pattern, "the rule", Limits())
        rule = plain._replace(tool=tool, sandbox=sandbox or "", expires_at=expires, **options)
        checked(rule, "the rule", Limits())
        if tool != ANY_TOOL and tool not in KINDS and not find_dialect(tool):
            raise RuleError(f"unknown tool {tool}: no dialect has it")
        if not rule.deny:
            rule = rule._replace(unattended=refuse_unattended("approvals add", unattended=unattended))
        rule_file = _rule_file(scope, root)
        number = rule_file.add(rule)
    _report("Added", scope, number, rule, rule_file)


@command.command("remove")
@click.argument("number", type=int)
@_scope_option
@root_option
@_unattended_option
def remove(number: int, scope: str, root: str, unattended: bool) -> None:
    """Remove a rule."""

    def act(rule_file: RuleFile) -> Rule:
        if rule_file.get(number).deny:
            refuse_unattended("approvals remove of a deny rule", unattended=unattended)
        return rule_file.remove(number)

    _change("Removed", scope, number, root, act)


@command.command("enable")
@click.argument("number", type=int)
@_scope_option
@root_option
@_unattended_option
def enable(number: int, scope: str, root: str, unattended: bool) -> None:
    """Enable a rule."""
    _change("Enabled", scope, number, root, lambda file: _switch(file, number, unattended, enabled=True))


@command.command("disable")
@click.argument("number", type=int)
@_scope_option
@root_option
@_unattended_option
def disable(number: int, scope: str, root: str, unattended: bool) -> None:
    """Disable a rule without removing it."""
    _change("Disabled", scope, number, root, lambda file: _switch(file, number, unattended, enabled=False))


def _switch(rule_file: RuleFile, number: int, unattended: bool, *, enabled: bool) -> Rule:
    """Enable or disable a rule; require a terminal if more calls are allowed afterwards."""
    if rule_file.get(number).deny == enabled:
        return rule_file.enable(number, enabled=enabled)
    what = f"approvals {'enable' if enabled else 'disable of a deny rule'}"
    marked = refuse_unattended(what, unattended=unattended)
    return rule_file.enable(number, enabled=enabled, unattended=marked)


def _change(done: str, scope: str, number: int, root: str, act: Callable[[RuleFile], Rule]) -> None:
    rule_file = _rule_file(scope, root)
    with usage_errors(root):
        rule = act(rule_file)
    _report(done, scope, number, rule, rule_file)


def _report(done: str, scope: str, number: int, rule: Rule, rule_file: RuleFile) -> None:
    click.echo(visible(f"{done} {scope} rule {number}: {rule.tool} {rule.covers}\n  in {rule_file.path}"))


@command.command("test", short_help="Show which rule would decide a call.")
@click.argument("tool")
@click.argument("arguments", nargs=-1, metavar="[JSON | KEY=VALUE …]")
@dialect_options
@root_option
@json_option
def test(tool: str, arguments: tuple[str, ...], dialect: str | None, root: str, as_json: bool) -> None:
    """Show which rule would decide a call, and why the other rules would not. The call changes nothing.

    Give the parameters as for `handrail call`. To test an undo, use `undo entries=[N]`, `undo since=N` or `undo`; also
    `redo` and `restore path=PATH at=N`.
    """
    dialect_name = dialect_of(tool, dialect)
    given = given_params(dialect_name, tool, arguments)
    if not isinstance(given, dict):
        raise click.UsageError("the parameters must be a JSON object")
    with open_workspace(root) as workspace:
        trial = try_undo(workspace, tool, given) if tool in KINDS else try_call(workspace, dialect_name, tool, given)
        decision = internals(workspace).rules.decide(trial.question) if trial.question else None
    summary = _summary(decision, trial)
    if as_json:
        others = decision.others if decision else ()
        why_not = [{"rule": placed.name, "why_not": why} for placed, why in others]
        by = [each.name for each in decision.by] if decision else []
        echo_json({"decision": summary, "by": by, "others": why_not}, indent=2)
    else:
        click.echo(visible("\n".join([summary, *_why_not_others(decision)])))
    raise SystemExit(0 if decision and decision.allowed else 3)


def _summary(decision: Decision | None, trial: RuleTrial) -> str:
    unasked = trial.question is None or trial.question.unasked
    if decision is None or (unasked and decision.allowed is not False):
        failed = trial.failed
        return f"The call would fail before any question: {failed}" if failed else "The call would need no approval"
    if decision.doubt:
        return f"The call would need approval under every policy: {decision.doubt}"
    if decision.allowed is None:
        return "No rule decides this call: it would need approval"
    verb = "Approved" if decision.allowed else "Forbidden"
    return f"{verb} by {', '.join(f'{each.name}: {each.rule.covers}' for each in decision.by)}"


def _why_not_others(decision: Decision | None) -> list[str]:
    return [f"  not {placed.name}: {why}" for placed, why in (decision.others if decision else ())]
