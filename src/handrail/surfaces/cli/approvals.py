"""Implements `handrail approvals`: lists, edits and tests the rules that decide without asking the user."""

import re
import shlex
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from handrail.dialects import find_dialect
from handrail.errors import RuleError
from handrail.kernel.host.state_dir import State, config_home
from handrail.kernel.host.use_counts import Count
from handrail.model.approval import KINDS
from handrail.model.limits import Limits
from handrail.ops.text.display import visible
from handrail.policy.policy import FILE
from handrail.policy.rule_match import Decision, PlacedRule
from handrail.policy.rule_store import RuleFile
from handrail.policy.rules import ANY_TOOL, LEVELS, Rule, checked, from_text, parse_time, short_rule
from handrail.surfaces.approval_text import SCOPE_WORDS
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

_SCOPES = click.Choice(["project", "user"])
_EXAMPLES = """\b
Examples of RULE:
  "git status *"            commands that begin with these words
  "npm test"                exactly this command
  "edit src/**"             changes of files that match a glob
  "fetch docs.python.org"   pages of a host; "*.python.org" is every host below"""
_LIFETIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)([hd]?)", re.IGNORECASE)
_unattended_option = click.option(
    "--unattended",
    is_flag=True,
    help="Require no user at a terminal; a rule that is added or switched this way is marked.",
)
_scope_option = click.option(
    "--scope",
    type=_SCOPES,
    default="project",
    show_default=True,
    help="The rules of this project, or of the user for all projects.",
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


@command.command("add", epilog=_EXAMPLES, short_help='Allow or deny calls: "git status *", "edit src/**".')
@click.argument("rule", metavar="RULE")
@click.argument("pattern", required=False, metavar="[PATTERN]")
@_scope_option
@root_option
@click.option(
    "--sandbox",
    type=click.Choice([*LEVELS]),
    help="The weakest sandbox level in which the rule approves; default: any.",
)
@click.option(
    "--right",
    "rights",
    multiple=True,
    metavar="RIGHT",
    help='What the command may do beyond the sandbox: "network HOST", "read /PATH" or "write /PATH".',
)
@click.option("--deny", is_flag=True, help="Deny matching calls instead of allowing them.")
@click.option("--expires-at", metavar="TIME", help="ISO 8601; UTC unless TIME names a time zone.")
@click.option("--for", "lifetime", metavar="TIME", help="Expire after this time: 8h or 7d; hours without a letter.")
@click.option("--match", "matches", multiple=True, metavar="JSON", help="Parameters that the rule must cover.")
@click.option("--reject", "rejects", multiple=True, metavar="JSON", help="Parameters that the rule must not cover.")
@_unattended_option
def add(
    rule: str,
    pattern: str | None,
    scope: str,
    root: str,
    sandbox: str | None,
    expires_at: str | None,
    lifetime: str | None,
    **options: Any,
) -> None:
    """Allow the calls that RULE describes, in this project.

    With PATTERN, RULE is the name of a tool. Its parameters, as compact JSON, must match the regular expression PATTERN
    from end to end. For a command, PATTERN may be a JSON list of its words: ["git", "status", "..."]. In the list, *
    matches one argument that is not an option, and a final ... matches any further arguments.
    """
    unattended = options.pop("unattended")
    with usage_errors(root):
        expires = parse_time(expires_at) if expires_at else None
        if lifetime is not None:
            expires = _expiry(lifetime)
        plain = _plain_rule(rule, pattern, deny=options["deny"])
        made = plain._replace(sandbox=sandbox or "", expires_at=expires, **options)
        checked(made, "the rule", Limits())
        if pattern is not None and rule != ANY_TOOL and rule not in KINDS and not find_dialect(rule):
            quoted = shlex.quote(f"{rule} {pattern}")
            raise RuleError(f"unknown tool {rule}: no dialect has it; write a rule of several words as {quoted}")
        if not made.deny:
            made = made._replace(unattended=refuse_unattended("approvals add", unattended=unattended))
        rule_file = _rule_file(scope, root)
        number = rule_file.add(made)
    _report("Added", scope, number, made, rule_file)


def _expiry(lifetime: str) -> datetime:
    """Return when a rule expires that holds for a time from now on, such as `8h` or `7d`."""
    found = _LIFETIME.fullmatch(lifetime)
    hours = float(found[1]) * (24 if found[2].lower() == "d" else 1) if found else 0
    if not hours:
        raise RuleError(f"--for {lifetime}: not a time above zero, such as 8h or 7d")
    try:
        return datetime.now(UTC).replace(microsecond=0) + timedelta(hours=hours)
    except (OverflowError, ValueError):
        raise RuleError(f"--for {lifetime}: the expiry date is out of range") from None


def _plain_rule(rule: str, pattern: str | None, *, deny: bool) -> Rule:
    """Return the rule that the arguments describe: the short form, or a tool and a pattern."""
    if pattern is None:
        return Rule(ANY_TOOL, calls=rule.strip()) if deny else short_rule(rule)
    return from_text("any", pattern, "the rule", Limits())._replace(tool=rule)


@command.command("remove")
@click.argument("numbers", type=int, nargs=-1, required=True, metavar="NUMBER …")
@_scope_option
@root_option
@_unattended_option
def remove(numbers: tuple[int, ...], scope: str, root: str, unattended: bool) -> None:
    """Remove rules by the numbers that `approvals list` shows."""
    rule_file = _rule_file(scope, root)
    with usage_errors(root):
        for number in numbers:  # before the first is removed: either all of them go, or none
            _check_removal(rule_file, number, unattended)

    def act(rule_file: RuleFile) -> Rule:
        _check_removal(rule_file, number, unattended)
        return rule_file.remove(number)

    for number in sorted(set(numbers), reverse=True):  # the rules behind a removed one move up
        _change("Removed", scope, number, root, act)


def _check_removal(rule_file: RuleFile, number: int, unattended: bool) -> None:
    """Require a terminal if a deny rule is to be removed. Raises RuleError if there is no such rule."""
    if rule_file.get(number).deny:
        refuse_unattended("approvals remove of a deny rule", unattended=unattended)


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
    verb = "denies" if rule.deny else "allows"
    until = f", until {rule.expires_at.isoformat()}" if rule.expires_at else ""
    means = f"  It {verb} the agent, {SCOPE_WORDS[scope]}{until}, to {rule.sentence}\n" if done == "Added" else ""
    click.echo(visible(f"{done} {scope} rule {number}: {rule.named}\n{means}  in {rule_file.path}"))


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
