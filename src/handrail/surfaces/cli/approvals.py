"""`handrail approvals`: the rules that answer instead of a person."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from handrail.dialects import find_dialect, load
from handrail.kernel.state import config_home
from handrail.limits import Limits
from handrail.ops.show import visible
from handrail.policy.rules import BadRule, Rule, RuleBook, parse_time
from handrail.surfaces.cli.options import json_option
from handrail.surfaces.cli.show import echo_json


def _book() -> RuleBook:
    try:
        return RuleBook.load(config_home(), Limits())
    except BadRule as error:
        raise click.UsageError(str(error)) from None


@click.group("approvals")
def command() -> None:
    """List, add, remove, switch and test approval rules."""


@command.command("list")
@json_option
def list_rules(as_json: bool) -> None:
    """List the rules, numbered."""
    book = _book()
    if as_json:
        echo_json([_facts(number, rule) for number, rule in enumerate(book.rules, 1)], indent=2)
        return
    if not book.rules:
        click.echo(f"No rules. They live in {book.path}")
    for number, rule in enumerate(book.rules, 1):
        state = "expired" if rule.expired else "on" if rule.enabled else "off"
        until = f", until {rule.expires_at.isoformat()}" if rule.expires_at else ""
        click.echo(visible(f"{number}. {rule.tool}  {rule.pattern}  ({state}{until})"))


def _facts(number: int, rule: Rule) -> dict[str, Any]:
    return {
        "number": number,
        "tool": rule.tool,
        "pattern": rule.pattern,
        "enabled": rule.enabled,
        "expires_at": rule.expires_at.isoformat() if rule.expires_at else None,
        "matches": list(rule.matches),
        "rejects": list(rule.rejects),
    }


@command.command("add")
@click.argument("tool")
@click.argument("pattern")
@click.option("--expires-at", metavar="TIME", help="ISO 8601; UTC unless it says otherwise.")
@click.option("--for", "lifetime", metavar="HOURS", type=click.FloatRange(min=0), help="Expire after so many hours.")
@click.option("--match", "matches", multiple=True, metavar="JSON", help="A call that the rule must cover.")
@click.option("--reject", "rejects", multiple=True, metavar="JSON", help="A call that it must not cover.")
def add(
    tool: str,
    pattern: str,
    expires_at: str | None,
    lifetime: float | None,
    matches: tuple[str, ...],
    rejects: tuple[str, ...],
) -> None:
    """Allow the calls of TOOL whose parameters, as compact JSON, match PATTERN from end to end."""
    try:
        expires = parse_time(expires_at) if expires_at else None
        if lifetime is not None:
            expires = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=lifetime)
        rule = Rule(tool, pattern, expires_at=expires, matches=matches, rejects=rejects)
        click.echo(visible(f"Added rule {_book().add(rule)}: {tool} {pattern}"))
    except (OverflowError, ValueError):
        raise click.UsageError(f"--for {lifetime} is not a number of hours that a calendar can hold") from None
    except BadRule as error:
        raise click.UsageError(str(error)) from None


@command.command("remove")
@click.argument("number", type=int)
def remove(number: int) -> None:
    """Remove a rule."""
    _change(number, "Removed", lambda book: book.remove(number))


@command.command("enable")
@click.argument("number", type=int)
def enable(number: int) -> None:
    """Switch a rule on."""
    _change(number, "Enabled", lambda book: book.enable(number, enabled=True))


@command.command("disable")
@click.argument("number", type=int)
def disable(number: int) -> None:
    """Switch a rule off without forgetting it."""
    _change(number, "Disabled", lambda book: book.enable(number, enabled=False))


def _change(number: int, done: str, act: Any) -> None:
    try:
        rule = act(_book())
    except BadRule as error:
        raise click.UsageError(str(error)) from None
    click.echo(visible(f"{done} rule {number}: {rule.tool} {rule.pattern}"))


@command.command("test")
@click.argument("tool")
@click.argument("params", metavar="JSON")
def test(tool: str, params: str) -> None:
    """Say whether a rule would approve a call, and which."""
    try:
        given = json.loads(params)
    except ValueError as error:
        raise click.UsageError(f"the parameters are not valid JSON: {error}") from None
    if not isinstance(given, dict):
        raise click.UsageError("the parameters must be a JSON object")
    number = _book().match(tool, _ordered(tool, given))
    click.echo(f"Approved by rule {number}" if number else "No rule approves this call: it would be asked")
    raise SystemExit(0 if number else 3)


def _ordered(tool: str, given: dict[str, Any]) -> dict[str, Any]:
    """As the call would be matched: in the order of the schema."""
    for dialect in find_dialect(tool):
        fields = load(dialect).tools[tool].params.fields
        if given.keys() <= fields.keys():
            return {name: given[name] for name in fields if name in given}
    return given
