"""Defines an approval rule, checks it, and reads and writes it as TOML.

A rule says in the short form (`calls`, see `rule_text.py`) what calls may do, whatever tool makes them. Or it names a
tool and has either a pattern, which the whole call must match as compact JSON, or, for commands, words (`argv`): `*`
stands for one argument that is not an option, a final `...` for any further arguments. A rule can carry examples that
it must match or reject.
"""

import json
import math
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from handrail.errors import RuleError
from handrail.model.limits import Limits
from handrail.model.rights import parse_rights
from handrail.policy.rule_text import EDIT, ONE, REST, RUN, covers_file, covers_host, is_short, parse_rule, why_never
from handrail.policy.rule_text import sentence as sentence_of

ANY_TOOL = "*"
LEVELS = {
    "off": frozenset[str](),
    "reduced-network": frozenset({"files"}),
    "reduced": frozenset({"files", "hosts", "network"}),
    "network": frozenset({"files", "mounts"}),
    "hosts": frozenset({"files", "mounts", "hosts"}),
    "strict": frozenset({"files", "mounts", "hosts", "network"}),
}
"""The sandbox levels that a question can name, and what each confines. `reduced` at level `network` has a network."""
_REPEAT = re.compile(r"\{\s*0*(\d*)\s*,?\s*0*(\d*)\s*\}")


class Rule(NamedTuple):
    """Holds one approval rule."""

    tool: str
    """The exact name of the tool; `*` stands for every tool, in a rule that denies or in the short form."""
    pattern: str = ""
    enabled: bool = True
    expires_at: datetime | None = None
    matches: tuple[str, ...] = ()
    """Examples that the rule must cover: calls as compact JSON, or commands if the rule has words."""
    rejects: tuple[str, ...] = ()
    """Examples that the rule must not cover."""
    argv: tuple[str, ...] = ()
    deny: bool = False
    """True if the rule forbids the calls that it covers, whatever other rules, the policy or the user say."""
    sandbox: str = ""
    """The weakest sandbox level in which a rule for commands approves; empty for any level."""
    unattended: bool = False
    """True if the rule was added, enabled or disabled while no user was at a terminal."""
    calls: str = ""
    """The rule in its short form."""
    rights: tuple[str, ...] = ()
    """What the calls may do beyond the sandbox: `network HOST`, `read PATH`, `write PATH`."""

    @property
    def words(self) -> tuple[str, ...]:
        """The words of a rule for commands; empty for every other rule."""
        if not self.calls:
            return self.argv
        short = parse_rule(self.calls)
        return short.words if short.kind == RUN else ()

    @property
    def sentence(self) -> str:
        """What the rule is about, for the user: the end of "allow the agent to …"."""
        rights = f", with {', '.join(self.rights)}" if self.rights else ""
        if self.calls:
            return f"{sentence_of(self.calls)}{rights}"
        return f"call {self.tool} with {'the words' if self.argv else 'parameters that match'} {self.covers}{rights}"

    @property
    def expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)

    @property
    def covers(self) -> str:
        """The rule in the form that the user can also type: short, a pattern, or words as JSON."""
        return self.calls or (json.dumps(self.argv, ensure_ascii=False) if self.argv else self.pattern)

    @property
    def named(self) -> str:
        """The rule as lists and reports show it; the short form names no tool."""
        return self.calls or f"{self.tool} {self.covers}"


def exact_pattern(call: str) -> str:
    """Return the pattern that matches one call, given as compact JSON, and no other call."""
    return f"^{re.escape(call)}$"


def fits(pattern: str, text: str, limits: Limits) -> bool | None:
    """Return whether the pattern matches the whole text; None if the time limit ends the match."""
    import regex  # noqa: PLC0415  slow to import; `re` has no time limit

    try:
        return regex.fullmatch(pattern, text, timeout=limits.rule_seconds) is not None
    except TimeoutError:
        return None


def words_fit(wanted: tuple[str, ...], found: tuple[str | None, ...], *, unsure: bool = False) -> bool:
    """Return whether the words of a simple command match the words of a rule.

    None in `found` is a word that is known only at run time; `unsure` is the result for such a word.
    """
    if found[0] is not None and found[0] != wanted[0] and wanted[0] not in (ONE, REST):
        return False
    open_ended = wanted[-1] == REST
    fixed = wanted[:-1] if open_ended else wanted
    if len(found) < len(fixed) or (len(found) > len(fixed) and not open_ended):
        return False
    return all(
        (unsure if word is None else not word.startswith("-") if want == ONE else word == want)
        for want, word in zip(fixed, found[: len(fixed)], strict=True)
    ) and (unsure or None not in found)


def checked(rule: Rule, name: str, limits: Limits) -> Rule:
    """Return the rule if it is valid and fits its examples. Raises RuleError; `name` begins the message."""
    if sum(map(bool, (rule.calls, rule.pattern, rule.argv))) != 1:
        raise RuleError(f"{name}: needs exactly one of calls, pattern and argv")
    if rule.tool == ANY_TOOL and not rule.deny and not rule.calls:
        raise RuleError(f"{name}: only a deny rule can cover every tool")
    if rule.sandbox and rule.sandbox not in LEVELS:
        raise RuleError(f"{name}: unknown sandbox level {rule.sandbox!r}")
    if rule.calls:
        _check_short(rule, name, limits)
    elif rule.argv:
        _check_words(rule.argv, name)
    else:
        _check_pattern(rule.pattern, name, limits)
    _check_rights(rule, name)
    for example in rule.matches:
        if not _covers(rule, example, limits):
            raise RuleError(f"{name}: must match {example}, but does not")
    for example in rule.rejects:
        if _covers(rule, example, limits):
            raise RuleError(f"{name}: must not match {example}, but does")
    return rule


def covers_command(rule: Rule, command: tuple[str | None, ...]) -> bool:
    """Return whether the words of a rule cover one simple command.

    In the short form, `*` does not stand for code, nor for an option that runs another program.
    """
    if not rule.words or not words_fit(rule.words, command):
        return False
    if not (rule.calls and parse_rule(rule.calls).open):
        return True
    from handrail.ops.shell.program_kinds import runs_words  # noqa: PLC0415  only rules for commands need it

    return not runs_words(command)


def _covers(rule: Rule, example: str, limits: Limits) -> bool:
    if rule.pattern:
        return bool(fits(rule.pattern, example, limits))
    short = parse_rule(rule.calls) if rule.calls else None
    if short and short.kind != RUN:
        return covers_file(short.words, example) if short.kind == EDIT else covers_host(short.words, example)
    from handrail.ops.shell.command_programs import parse_command  # noqa: PLC0415  few rules have words and examples

    line = parse_command(example, limits.command_chars)
    certain = not (line.unknown or line.assigns or line.redirects)
    return certain and bool(line.commands) and all(covers_command(rule, command) for command in line.commands)


def _check_short(rule: Rule, name: str, limits: Limits) -> None:
    if len(rule.calls) > limits.rule_chars:
        raise RuleError(f"{name}: the rule is too long")
    if rule.tool != ANY_TOOL:
        raise RuleError(f"{name}: calls needs no tool")
    try:
        parse_rule(rule.calls)
    except RuleError as error:
        raise RuleError(f"{name}: {error}") from None


def _check_rights(rule: Rule, name: str) -> None:
    """Raise RuleError for rights that no rule can grant, or that are no rights."""
    if not rule.rights:
        return
    from handrail.ops.network.host_patterns import parse_pattern  # noqa: PLC0415  few rules grant rights

    if rule.deny:
        raise RuleError(f"{name}: a deny rule grants no rights")
    try:
        for host in parse_rights(rule.rights).hosts:
            parse_pattern(host)
    except ValueError as error:
        raise RuleError(f"{name}: {error}") from None


def _check_words(argv: tuple[str, ...], name: str) -> None:
    if argv[0] in (ONE, REST) or not argv[0]:
        raise RuleError(f"{name}: argv must begin with a program")
    if REST in argv[:-1]:
        raise RuleError(f"{name}: only the last word of argv can be {REST}")


def _check_pattern(pattern: str, name: str, limits: Limits) -> None:
    import regex  # noqa: PLC0415  most sessions have no rules

    if _expanded_length(pattern) > limits.rule_chars:
        raise RuleError(f"{name}: the pattern is too long, or repeats too much")
    try:
        pattern.encode()
        regex.compile(pattern)
    except (regex.error, UnicodeEncodeError, RecursionError) as error:
        raise RuleError(f"{name}: the pattern is not a valid regular expression: {error}") from None


def _expanded_length(pattern: str) -> int:
    """Return the length of the pattern with its counted repetitions expanded: compiling takes as long."""
    return len(pattern) * math.prod(max(int(n[:9] or 1) for n in found) for found in _REPEAT.findall(pattern))


_KINDS: dict[str, Any] = {
    "tool": str,
    "calls": str,
    "pattern": str,
    "argv": list,
    "deny": bool,
    "enabled": bool,
    "expires_at": (str, datetime),
    "matches": list,
    "rejects": list,
    "sandbox": str,
    "unattended": bool,
    "rights": list,
}


def from_entry(entry: Any, name: str, limits: Limits) -> Rule:
    """Return the rule that a [[rule]] table of a file describes. Raises RuleError."""
    if not isinstance(entry, dict):
        raise RuleError(f"{name}: write each rule as a [[rule]] table")
    if unknown := entry.keys() - _KINDS.keys():
        raise RuleError(f"{name}: unknown key {min(unknown)!r}")
    if "tool" not in entry and "calls" not in entry:
        raise RuleError(f"{name}: the key tool is missing")
    for key, value in entry.items():
        items = value if isinstance(value, list) else []
        if not isinstance(value, _KINDS[key]) or not all(isinstance(item, str) for item in items):
            raise RuleError(f"{name}: invalid value for {key}: {value!r}")
    try:
        expires = parse_time(str(entry["expires_at"])) if "expires_at" in entry else None
    except RuleError as error:
        raise RuleError(f"{name}: {error}") from None
    lists = {key: tuple(entry.get(key, ())) for key in ("matches", "rejects", "argv", "rights")}
    made = {"tool": ANY_TOOL, **entry, "expires_at": expires} | lists
    return checked(Rule(**made), name, limits)


def from_text(tool: str, text: str, name: str, limits: Limits) -> Rule:
    """Return the rule that a user types for a tool: a regular expression, or the words of a command as a JSON list."""
    if not text.lstrip().startswith("["):
        return checked(Rule(tool, text), name, limits)
    try:
        words = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuleError(f"{name}: not a JSON list: {error}") from None
    return from_entry({"tool": tool, "argv": words}, name, limits)


def typed_rule(tool: str, text: str, name: str, limits: Limits) -> Rule:
    """Return the rule that a user types in any form; the short form needs no tool."""
    return short_rule(text) if is_short(text) else from_text(tool, text, name, limits)


def short_rule(text: str) -> Rule:
    """Return a new rule that allows what the short form says. Raises RuleError, also if it can never match."""
    text = text.strip()
    if why := why_never(text):
        raise RuleError(why)
    return Rule(ANY_TOOL, calls=text)


def parse_time(text: str) -> datetime:
    """Parse an ISO 8601 time and return it in UTC; a time without a zone is UTC. Raises RuleError."""
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise RuleError(f"not an ISO 8601 time: {text!r}") from None


def to_entry(rule: Rule) -> dict[str, Any]:
    """Return the entry of a rule in a rule file: the inverse of `from_entry`."""
    if rule.calls:
        entry: dict[str, Any] = {"calls": rule.calls}
    else:
        entry = {"tool": rule.tool} | ({"argv": list(rule.argv)} if rule.argv else {"pattern": rule.pattern})
    if rule.deny:
        entry["deny"] = True
    if rule.sandbox:
        entry["sandbox"] = rule.sandbox
    entry["enabled"] = rule.enabled
    if rule.unattended:
        entry["unattended"] = True
    if rule.expires_at:
        entry["expires_at"] = rule.expires_at
    lists = (("rights", rule.rights), ("matches", rule.matches), ("rejects", rule.rejects))
    entry |= {key: list(each) for key, each in lists if each}
    return entry
