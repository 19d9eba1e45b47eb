"""Defines an approval rule, checks it, and reads and writes it as TOML.

A rule names a tool and says which of its calls it covers. It has either a pattern, which the whole call must match as
compact JSON, or, for commands, words (`argv`): `*` stands for one argument that is not an option, a final `...` for
any further arguments. A rule can carry examples that it must match or reject.
"""

import json
import math
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from handrail.errors import RuleError
from handrail.model.limits import Limits

ANY_TOOL = "*"
LEVELS = {
    "off": frozenset[str](),
    "reduced-network": frozenset({"files"}),
    "reduced": frozenset({"files", "network"}),
    "network": frozenset({"files", "mounts"}),
    "strict": frozenset({"files", "mounts", "network"}),
}
"""The sandbox levels that a question can name, and what each confines. `reduced` at level `network` has a network."""
ONE, REST = "*", "..."
_REPEAT = re.compile(r"\{\s*0*(\d*)\s*,?\s*0*(\d*)\s*\}")


class Rule(NamedTuple):
    """Holds one approval rule."""

    tool: str
    """The exact name of the tool; `*` in a deny rule stands for every tool."""
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

    @property
    def expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)

    @property
    def covers(self) -> str:
        """The pattern, or the words as JSON, in the form that the user can also type."""
        return json.dumps(self.argv, ensure_ascii=False) if self.argv else self.pattern


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
    if bool(rule.pattern) == bool(rule.argv):
        raise RuleError(f"{name}: needs either pattern or argv")
    if rule.tool == ANY_TOOL and not rule.deny:
        raise RuleError(f"{name}: only a deny rule can cover every tool")
    if rule.sandbox and rule.sandbox not in LEVELS:
        raise RuleError(f"{name}: unknown sandbox level {rule.sandbox!r}")
    if rule.argv:
        _check_words(rule.argv, name)
    else:
        _check_pattern(rule.pattern, name, limits)
    for example in rule.matches:
        if not _covers(rule, example, limits):
            raise RuleError(f"{name}: must match {example}, but does not")
    for example in rule.rejects:
        if _covers(rule, example, limits):
            raise RuleError(f"{name}: must not match {example}, but does")
    return rule


def _covers(rule: Rule, example: str, limits: Limits) -> bool:
    if not rule.argv:
        return bool(fits(rule.pattern, example, limits))
    from handrail.ops.shell.command_programs import parse_command  # noqa: PLC0415  few rules have words and examples

    line = parse_command(example, limits.command_chars)
    certain = not (line.unknown or line.assigns or line.redirects)
    return certain and bool(line.commands) and all(words_fit(rule.argv, command) for command in line.commands)


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
    "pattern": str,
    "argv": list,
    "deny": bool,
    "enabled": bool,
    "expires_at": (str, datetime),
    "matches": list,
    "rejects": list,
    "sandbox": str,
    "unattended": bool,
}


def from_entry(entry: Any, name: str, limits: Limits) -> Rule:
    """Return the rule that a [[rule]] table of a file describes. Raises RuleError."""
    if not isinstance(entry, dict):
        raise RuleError(f"{name}: write each rule as a [[rule]] table")
    if unknown := entry.keys() - _KINDS.keys():
        raise RuleError(f"{name}: unknown key {min(unknown)!r}")
    if "tool" not in entry:
        raise RuleError(f"{name}: the key tool is missing")
    for key, value in entry.items():
        items = value if isinstance(value, list) else []
        if not isinstance(value, _KINDS[key]) or not all(isinstance(item, str) for item in items):
            raise RuleError(f"{name}: invalid value for {key}: {value!r}")
    try:
        expires = parse_time(str(entry["expires_at"])) if "expires_at" in entry else None
    except RuleError as error:
        raise RuleError(f"{name}: {error}") from None
    made = {**entry, "expires_at": expires} | {key: tuple(entry.get(key, ())) for key in ("matches", "rejects", "argv")}
    return checked(Rule(**made), name, limits)


def from_text(tool: str, text: str, name: str, limits: Limits) -> Rule:
    """Return the rule that a user types: a regular expression, or the words of a command as a JSON list."""
    if not text.lstrip().startswith("["):
        return checked(Rule(tool, text), name, limits)
    try:
        words = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RuleError(f"{name}: not a JSON list: {error}") from None
    return from_entry({"tool": tool, "argv": words}, name, limits)


def parse_time(text: str) -> datetime:
    """Parse an ISO 8601 time and return it in UTC; a time without a zone is UTC. Raises RuleError."""
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise RuleError(f"not an ISO 8601 time: {text!r}") from None


def to_entry(rule: Rule) -> dict[str, Any]:
    """Return the entry of a rule in a rule file: the inverse of `from_entry`."""
    entry: dict[str, Any] = {"tool": rule.tool}
    entry |= {"argv": list(rule.argv)} if rule.argv else {"pattern": rule.pattern}
    if rule.deny:
        entry["deny"] = True
    if rule.sandbox:
        entry["sandbox"] = rule.sandbox
    entry["enabled"] = rule.enabled
    if rule.unattended:
        entry["unattended"] = True
    if rule.expires_at:
        entry["expires_at"] = rule.expires_at
    entry |= {key: list(calls) for key, calls in (("matches", rule.matches), ("rejects", rule.rejects)) if calls}
    return entry
