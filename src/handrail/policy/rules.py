"""One approval rule: a tool, and what it covers of its calls. A rule carries its own examples.

What a rule covers is either a pattern, which the whole call must match as compact JSON, or, for a command, its words:
`*` stands for one argument that is no option, a final `...` for any further arguments.
"""

import json
import math
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from handrail.model.limits import Limits
from handrail.settings import SANDBOX

ANY_TOOL = "*"
ONE, REST = "*", "..."
_REPEAT = re.compile(r"\{\s*0*(\d*)\s*,?\s*0*(\d*)\s*\}")


class BadRule(Exception):  # noqa: N818  a message for the person who wrote the rule
    pass


class Rule(NamedTuple):
    tool: str
    """Its exact name; `*` in a rule that denies is every tool."""
    pattern: str = ""
    enabled: bool = True
    expires_at: datetime | None = None
    matches: tuple[str, ...] = ()
    """Calls as compact JSON (where the rule has words: commands) that it must cover; checked when it loads."""
    rejects: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    deny: bool = False
    """It forbids what it covers, whatever other rules, the policy and the person say."""
    sandbox: str = ""
    """Of a rule for commands: the weakest sandbox in which it approves; empty: any."""
    unattended: bool = False
    """Whether it was added or switched where no user was at a terminal."""

    @property
    def expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)

    @property
    def covers(self) -> str:
        """What it is about, as one may also type it."""
        return json.dumps(self.argv, ensure_ascii=False) if self.argv else self.pattern


def exact_pattern(call: str) -> str:
    """A pattern for one call, given as compact JSON, and no other."""
    return f"^{re.escape(call)}$"


def fits(pattern: str, text: str, limits: Limits) -> bool | None:
    """Whether the pattern matches the whole text; None where it cannot decide in time."""
    import regex  # noqa: PLC0415  the stdlib's cannot be stopped

    try:
        return regex.fullmatch(pattern, text, timeout=limits.rule_seconds) is not None
    except TimeoutError:
        return None


def words_fit(wanted: tuple[str, ...], found: tuple[str | None, ...], *, unsure: bool = False) -> bool:
    """Whether the words of a simple command are those of a rule. What only running it would tell is `unsure`."""
    open_ended = wanted[-1] == REST
    fixed = wanted[:-1] if open_ended else wanted
    if len(found) < len(fixed) or (len(found) > len(fixed) and not open_ended):
        return False
    return all(
        (unsure if word is None else not word.startswith("-") if want == ONE else word == want)
        for want, word in zip(fixed, found[: len(fixed)], strict=True)
    ) and (unsure or None not in found)


def checked(rule: Rule, name: str, limits: Limits) -> Rule:
    """The rule, if it makes sense and its examples hold."""
    if bool(rule.pattern) == bool(rule.argv):
        raise BadRule(f"{name}: needs either pattern or argv")
    if rule.tool == ANY_TOOL and not rule.deny:
        raise BadRule(f"{name}: only a rule that denies can be for every tool")
    if rule.sandbox and rule.sandbox not in SANDBOX:
        raise BadRule(f"{name}: sandbox cannot be {rule.sandbox!r}")
    if rule.argv:
        _check_words(rule.argv, name)
    else:
        _check_pattern(rule.pattern, name, limits)
    for example in rule.matches:
        if not _holds(rule, example, limits):
            raise BadRule(f"{name}: must match {example}, but does not")
    for example in rule.rejects:
        if _holds(rule, example, limits):
            raise BadRule(f"{name}: must not match {example}, but does")
    return rule


def _holds(rule: Rule, example: str, limits: Limits) -> bool:
    if not rule.argv:
        return bool(fits(rule.pattern, example, limits))
    from handrail.ops.shell.command_programs import parse_command  # noqa: PLC0415  few rules have words and examples

    line = parse_command(example, limits.command_chars)
    sure = not (line.unknown or line.assigns or line.redirects)
    return sure and bool(line.commands) and all(words_fit(rule.argv, command) for command in line.commands)


def _check_words(argv: tuple[str, ...], name: str) -> None:
    if argv[0] in (ONE, REST) or not argv[0]:
        raise BadRule(f"{name}: argv must begin with a program")
    if REST in argv[:-1]:
        raise BadRule(f"{name}: only the last word of argv can be {REST}")


def _check_pattern(pattern: str, name: str, limits: Limits) -> None:
    import regex  # noqa: PLC0415  most sessions have no rules

    if _work(pattern) > limits.rule_chars:
        raise BadRule(f"{name}: the pattern is too long, or repeats too much")
    try:
        pattern.encode()
        regex.compile(pattern)
    except (regex.error, UnicodeEncodeError, RecursionError) as error:
        raise BadRule(f"{name}: the pattern is not a valid regular expression: {error}") from None


def _work(pattern: str) -> int:
    """How long the pattern is with its counted repeats written out, which is what compiling it costs."""
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
    """A rule as a file has it."""
    if not isinstance(entry, dict):
        raise BadRule(f"{name}: rules are [[rule]] tables")
    if unknown := entry.keys() - _KINDS.keys():
        raise BadRule(f"{name}: unknown key {min(unknown)!r}")
    if "tool" not in entry:
        raise BadRule(f"{name}: needs tool")
    for key, value in entry.items():
        items = value if isinstance(value, list) else []
        if not isinstance(value, _KINDS[key]) or not all(isinstance(item, str) for item in items):
            raise BadRule(f"{name}: {key} cannot be {value!r}")
    try:
        expires = parse_time(str(entry["expires_at"])) if "expires_at" in entry else None
    except BadRule as error:
        raise BadRule(f"{name}: {error}") from None
    made = {**entry, "expires_at": expires} | {key: tuple(entry.get(key, ())) for key in ("matches", "rejects", "argv")}
    return checked(Rule(**made), name, limits)


def from_text(tool: str, text: str, name: str, limits: Limits) -> Rule:
    """A rule as a person types it: a regular expression, or the words of a command as a JSON list."""
    if not text.lstrip().startswith("["):
        return checked(Rule(tool, text), name, limits)
    try:
        words = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRule(f"{name}: not a JSON list: {error}") from None
    return from_entry({"tool": tool, "argv": words}, name, limits)


def parse_time(text: str) -> datetime:
    """In UTC, which is also meant where the text names no zone."""
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise BadRule(f"not an ISO 8601 time: {text!r}") from None


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
