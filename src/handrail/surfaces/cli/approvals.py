"""`handrail approvals`: the rules that answer instead of a person."""

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
from handrail.policy.rules import ANY_TOOL, Rule, checked, from_text, parse_time
from handrail.settings import SANDBOX
from handrail.surfaces.cli.ask_terminal import refuse_unattended
from handrail.surfaces.cli.call import given_params
from handrail.surfaces.cli.options import (
    dialect_of,
    dialect_option,
    json_option,
    open_workspace,
    root_option,
    usage_errors,
)
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.cli.rule_test import Tried, try_call, try_undo
from handrail.workspace import internals

_SCOPES = click.Choice(["user", "project"])
_unattended_option = click.option(
    "--unattended", is_flag=True, help="Allow more though no user is at a terminal; the rule is marked."
)
_scope_option = click.option("--scope", type=_SCOPES, default="user", show_default=True, help="Whose rules.")


def _book(scope: str, root: str) -> RuleFile:
    with usage_errors(root):
        return RuleFile.load(config_home() if scope == "user" else State.of(root).path, Limits())


@click.group("approvals")
def command() -> None:
    """List, add, remove, switch and test approval rules."""


@command.command("list", short_help="List the rules that hold in a workspace.")
@root_option
@json_option
def list_rules(root: str, as_json: bool) -> None:
    """List the rules that hold in a workspace: the user's, the project's, and those of its own file."""
    with open_workspace(root) as workspace:
        rules = internals(workspace).rules
        counts = rules.tally.read() if rules.tally else {}
        listed = [(each, None if each.scope == FILE else counts.get(rules.key(each))) for each in rules.placed()]
        homes = {"user": rules.user.path, "project": rules.project.path, FILE: ".handrail.toml"}
    if as_json:
        echo_json([_facts(standing, count) for standing, count in listed], indent=2)
    elif not listed:
        click.echo(f"No rules. They live in {homes['user']} and, for this project, in {homes['project']}")
    for scope, home in {} if as_json else homes.items():
        lines = [_line(standing, count) for standing, count in listed if standing.scope == scope]
        if lines:
            click.echo(visible("\n".join([f"{scope} rules, in {home}:", *lines])))


def _line(standing: PlacedRule, count: Count | None) -> str:
    rule = standing.rule
    state = ["expired" if rule.expired else "on" if rule.enabled else "off"]
    if rule.deny:
        state.insert(0, "deny")
    if rule.sandbox:
        state.append(f"in sandbox {rule.sandbox}")
    if rule.expires_at:
        state.append(f"until {rule.expires_at.isoformat()}")
    if rule.unattended:
        state.append("unattended")
    if standing.scope != FILE:
        times = "once" if count and count.times == 1 else f"{count.times} times" if count else ""
        state.append(f"used {times}, last {count.last.isoformat()}" if count else "never used")
    return f"  {standing.number}. {rule.tool}  {rule.covers}  ({', '.join(state)})"


def _facts(standing: PlacedRule, count: Count | None) -> dict[str, Any]:
    rule = standing.rule
    return {
        "scope": standing.scope,
        "number": standing.number,
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
@click.option("--sandbox", type=click.Choice(SANDBOX), help="The weakest in which it approves; any, if not given.")
@click.option("--deny", is_flag=True, help="Forbid what it covers instead of allowing it.")
@click.option("--expires-at", metavar="TIME", help="ISO 8601; UTC unless it says otherwise.")
@click.option("--for", "lifetime", metavar="HOURS", type=click.FloatRange(min=0), help="Expire after so many hours.")
@click.option("--match", "matches", multiple=True, metavar="JSON", help="A call that the rule must cover.")
@click.option("--reject", "rejects", multiple=True, metavar="JSON", help="A call that it must not cover.")
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

    For a command, PATTERN may be its words as a JSON list: ["git", "status", "..."], where * stands for one argument
    that is no option and a final ... for any further ones.
    """
    unattended = options.pop("unattended")
    with usage_errors(root):
        expires = parse_time(expires_at) if expires_at else None
        if lifetime is not None:
            try:
                expires = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=lifetime)
            except (OverflowError, ValueError):
                raise RuleError(f"--for {lifetime} is not a number of hours that a calendar can hold") from None
        plain = from_text("any", pattern, "the rule", Limits())
        rule = plain._replace(tool=tool, sandbox=sandbox or "", expires_at=expires, **options)
        checked(rule, "the rule", Limits())
        if tool != ANY_TOOL and tool not in KINDS and not find_dialect(tool):
            raise RuleError(f"no dialect has a tool {tool}: the rule would never be used")
        if not rule.deny:
            rule = rule._replace(unattended=refuse_unattended("approvals add", unattended=unattended))
        book = _book(scope, root)
        number = book.add(rule)
    _say("Added", scope, number, rule, book)


@command.command("remove")
@click.argument("number", type=int)
@_scope_option
@root_option
@_unattended_option
def remove(number: int, scope: str, root: str, unattended: bool) -> None:
    """Remove a rule."""

    def act(book: RuleFile) -> Rule:
        if book.get(number).deny:
            refuse_unattended("approvals remove of a rule that denies", unattended=unattended)
        return book.remove(number)

    _change("Removed", scope, number, root, act)


@command.command("enable")
@click.argument("number", type=int)
@_scope_option
@root_option
@_unattended_option
def enable(number: int, scope: str, root: str, unattended: bool) -> None:
    """Switch a rule on."""
    _change("Enabled", scope, number, root, lambda book: _switch(book, number, unattended, enabled=True))


@command.command("disable")
@click.argument("number", type=int)
@_scope_option
@root_option
@_unattended_option
def disable(number: int, scope: str, root: str, unattended: bool) -> None:
    """Switch a rule off without forgetting it."""
    _change("Disabled", scope, number, root, lambda book: _switch(book, number, unattended, enabled=False))


def _switch(book: RuleFile, number: int, unattended: bool, *, enabled: bool) -> Rule:
    """Switches a rule. What allows less afterwards needs no terminal: to allow nothing, or to deny."""
    if book.get(number).deny == enabled:
        return book.enable(number, enabled=enabled)
    what = f"approvals {'enable' if enabled else 'disable of a rule that denies'}"
    marked = refuse_unattended(what, unattended=unattended)
    return book.enable(number, enabled=enabled, unattended=marked)


def _change(done: str, scope: str, number: int, root: str, act: Callable[[RuleFile], Rule]) -> None:
    book = _book(scope, root)
    with usage_errors(root):
        rule = act(book)
    _say(done, scope, number, rule, book)


def _say(done: str, scope: str, number: int, rule: Rule, book: RuleFile) -> None:
    click.echo(visible(f"{done} {scope} rule {number}: {rule.tool} {rule.covers}\n  in {book.path}"))


@command.command("test", short_help="Say which rule would decide about a call.")
@click.argument("tool")
@click.argument("arguments", nargs=-1, metavar="[JSON | KEY=VALUE …]")
@dialect_option
@root_option
@json_option
def test(tool: str, arguments: tuple[str, ...], dialect: str | None, root: str, as_json: bool) -> None:
    """Say which rule would decide about a call, and why others would not. Nothing is done.

    Parameters are given as to `handrail call`. An undo is tried as `undo entries=[N]`, `undo since=N` or `undo`, and
    there are `redo` and `restore path=PATH at=N`.
    """
    spoken = dialect_of(tool, dialect)
    given = given_params(spoken, tool, arguments)
    if not isinstance(given, dict):
        raise click.UsageError("the parameters must be a JSON object")
    with open_workspace(root) as workspace:
        tried = try_undo(workspace, tool, given) if tool in KINDS else try_call(workspace, spoken, tool, given)
        decision = internals(workspace).rules.decide(tried.question) if tried.question else None
    said = _said(decision, tried)
    if as_json:
        others = decision.others if decision else ()
        why_not = [{"rule": standing.name, "why_not": why} for standing, why in others]
        by = [each.name for each in decision.by] if decision else []
        echo_json({"decision": said, "by": by, "others": why_not}, indent=2)
    else:
        click.echo(visible("\n".join([said, *_why_not_others(decision)])))
    raise SystemExit(0 if decision and decision.allowed else 3)


def _said(decision: Decision | None, tried: Tried) -> str:
    unasked = tried.question is None or tried.question.unasked
    if decision is None or (unasked and decision.allowed is not False):
        failed = tried.failed
        return f"It would fail before anybody is asked: {failed}" if failed else "It would be answered unasked"
    if decision.doubt:
        return f"It would be asked, whatever the policy: {decision.doubt}"
    if decision.allowed is None:
        return "No rule decides about this call: it would be asked"
    verb = "Approved" if decision.allowed else "Forbidden"
    return f"{verb} by {', '.join(f'{each.name}: {each.rule.covers}' for each in decision.by)}"


def _why_not_others(decision: Decision | None) -> list[str]:
    return [f"  not {standing.name}: {why}" for standing, why in (decision.others if decision else ())]
