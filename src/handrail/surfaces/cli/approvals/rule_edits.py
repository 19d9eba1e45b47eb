"""Adds, removes, enables and disables rules."""

import re
import shlex
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from handrail.dialects import find_dialect
from handrail.errors import RuleError, did_you_mean
from handrail.kernel.fs.boundary import FsBoundary
from handrail.kernel.fs.reader import Reader
from handrail.kernel.host.state_dir import State, config_home
from handrail.model.approval import KINDS
from handrail.model.faults import Fault
from handrail.model.limits import Limits
from handrail.ops.text.display import visible
from handrail.policy.rule_store import RuleFile
from handrail.policy.rule_text import EDIT, parse_rule
from handrail.policy.rules import ANY_TOOL, LEVELS, Rule, checked, from_text, parse_time, short_rule
from handrail.surfaces.approval_text import SCOPE_WORDS
from handrail.surfaces.cli.light.open_workspace import usage_errors
from handrail.surfaces.cli.options import root_option
from handrail.surfaces.cli.terminal_access import refuse_unattended

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


@click.command("add", epilog=_EXAMPLES, short_help='Allow or deny calls: "git status *", "edit src/**".')
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
        _refuse_directories(made, root)
        if pattern is not None and rule != ANY_TOOL and rule not in KINDS and not find_dialect(rule):
            quoted = shlex.quote(f"{rule} {pattern}")
            raise RuleError(f"unknown tool {rule}: no dialect has it; write a rule of several words as {quoted}")
        if not made.deny:
            made = made._replace(unattended=refuse_unattended("approvals add", unattended=unattended))
        rule_file = _rule_file(scope, root)
        number = rule_file.add(made)
    _report("Added", scope, number, made, rule_file)


def _refuse_directories(rule: Rule, root: str) -> None:
    """Raise RuleError if a rule for edits names a directory: it would cover no file in it."""
    if not rule.calls or (short := parse_rule(rule.calls)).kind != EDIT:
        return
    boundary = FsBoundary(root)
    try:
        for word in short.words:
            with suppress(Fault):  # a link that leads outside, or a name that no file can have
                if Reader(boundary, Limits()).kind(word) == "directory":
                    meant = shlex.quote(f"{EDIT} {word.rstrip('/')}/**")
                    raise RuleError(f"{word} is a directory: the rule covers no file in it; did you mean {meant}?")
    finally:
        boundary.close()


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


@click.command("remove")
@click.argument("rules", nargs=-1, required=True, metavar="RULE …")
@_scope_option
@root_option
@_unattended_option
def remove(rules: tuple[str, ...], scope: str, root: str, unattended: bool) -> None:
    """Remove rules. RULE is a number that `approvals list` shows, or the text of the rule: "git status *"."""
    rule_file = _rule_file(scope, root)
    with usage_errors(root):
        numbers = [_number_of(rule_file, each) for each in rules]
        for number in numbers:  # before the first is removed: either all of them go, or none
            _check_removal(rule_file, number, unattended)

    def act(rule_file: RuleFile) -> Rule:
        _check_removal(rule_file, number, unattended)
        return rule_file.remove(number)

    for number in sorted(set(numbers), reverse=True):  # the rules behind a removed one move up
        _change("Removed", scope, number, root, act)


def _number_of(rule_file: RuleFile, given: str) -> int:
    """Return the number of the rule that the user names by its number or its text. Raises RuleError."""
    if given.isdecimal():
        return int(given)
    named = [each.named for each in rule_file.rules]
    if named.count(given.strip()) > 1:
        raise RuleError(f"several rules are `{given.strip()}`; name one by its number in `handrail approvals list`")
    if given.strip() not in named:
        raise RuleError(f"rule `{given}` not found in {rule_file.path}{did_you_mean(given, named)}")
    return named.index(given.strip()) + 1


def _check_removal(rule_file: RuleFile, number: int, unattended: bool) -> None:
    """Require a terminal if a deny rule is to be removed. Raises RuleError if there is no such rule."""
    if rule_file.get(number).deny:
        refuse_unattended("approvals remove of a deny rule", unattended=unattended)


@click.command("enable")
@click.argument("rule")
@_scope_option
@root_option
@_unattended_option
def enable(rule: str, scope: str, root: str, unattended: bool) -> None:
    """Enable a rule, by its number or its text."""
    _switch(rule, scope, root, unattended=unattended, enabled=True)


@click.command("disable")
@click.argument("rule")
@_scope_option
@root_option
@_unattended_option
def disable(rule: str, scope: str, root: str, unattended: bool) -> None:
    """Disable a rule, by its number or its text."""
    _switch(rule, scope, root, unattended=unattended, enabled=False)


def _switch(rule: str, scope: str, root: str, *, unattended: bool, enabled: bool) -> None:
    """Enable or disable a rule; require a terminal if more calls are allowed afterwards."""
    with usage_errors(root):
        number = _number_of(_rule_file(scope, root), rule)

    def act(rule_file: RuleFile) -> Rule:
        if rule_file.get(number).deny == enabled:
            return rule_file.enable(number, enabled=enabled)
        what = f"approvals {'enable' if enabled else 'disable of a deny rule'}"
        marked = refuse_unattended(what, unattended=unattended)
        return rule_file.enable(number, enabled=enabled, unattended=marked)

    _change("Enabled" if enabled else "Disabled", scope, number, root, act)


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
