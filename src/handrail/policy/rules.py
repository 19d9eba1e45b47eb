"""Approval rules: a tool, and a pattern that the whole call must match. A rule carries its own examples."""

import json
import math
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from handrail.kernel.state import locked_beside, read_text, write_text
from handrail.limits import Limits

_REPEAT = re.compile(r"\{\s*0*(\d*)\s*,?\s*0*(\d*)\s*\}")


class BadRule(Exception):  # noqa: N818  a message for the person who wrote the rule
    pass


@dataclass(frozen=True, slots=True)
class Rule:
    tool: str
    pattern: str
    enabled: bool = True
    expires_at: datetime | None = None
    matches: tuple[str, ...] = field(default=())
    """Calls, as compact JSON, that the rule must cover; checked when it loads."""
    rejects: tuple[str, ...] = field(default=())

    @property
    def expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= datetime.now(UTC)


def call_text(params: dict[str, Any]) -> str:
    """A call's parameters as rules see them."""
    return json.dumps(params, separators=(",", ":"), ensure_ascii=False)


def exact_pattern(params: dict[str, Any]) -> str:
    return f"^{re.escape(call_text(params))}$"


@dataclass(slots=True)
class RuleBook:
    path: str
    limits: Limits
    rules: list[Rule] = field(default_factory=list)
    _text: str = ""

    @classmethod
    def load(cls, home: str, limits: Limits) -> "RuleBook":
        book = cls(f"{home}/approvals.toml", limits)
        book.read()
        return book

    def read(self) -> None:
        """Take over what the file says now: another session, or the person, may have changed it."""
        try:
            text = read_text(self.path)
            if text == self._text:
                return
            found = tomllib.loads(text)
        except (OSError, ValueError) as error:
            raise BadRule(f"{self.path} cannot be read: {error}") from None
        if unknown := found.keys() - {"rule"}:
            raise BadRule(f"{self.path}: unknown key {min(unknown)!r}; rules are [[rule]] tables")
        entries = found.get("rule", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise BadRule(f"{self.path}: rules are [[rule]] tables")
        self.rules = [self._entry(entry, f"rule {n} in {self.path}") for n, entry in enumerate(entries, 1)]
        self._text = text

    def add(self, rule: Rule) -> int:
        """Store a rule and return its number."""
        with self._changing():
            if rule not in self.rules:
                self.rules.append(self.checked(rule, "the rule"))
            return self.rules.index(rule) + 1

    def remove(self, number: int) -> Rule:
        with self._changing():
            self.get(number)
            return self.rules.pop(number - 1)

    def enable(self, number: int, *, enabled: bool) -> Rule:
        with self._changing():
            self.rules[number - 1] = replace(self.get(number), enabled=enabled)
            return self.rules[number - 1]

    def get(self, number: int) -> Rule:
        if not 1 <= number <= len(self.rules):
            raise BadRule(f"there is no rule {number}")
        return self.rules[number - 1]

    def match(self, tool: str, params: dict[str, Any]) -> int | None:
        """The number of the first rule in force that covers this call. A file that makes no sense approves nothing."""
        try:
            self.read()
        except BadRule:
            return None
        text = call_text(params)
        for number, rule in enumerate(self.rules, 1):
            if rule.tool == tool and rule.enabled and not rule.expired and self._fits(rule.pattern, text):
                return number
        return None

    def checked(self, rule: Rule, name: str) -> Rule:
        """The rule, if its pattern compiles and its examples hold."""
        import regex  # noqa: PLC0415  most sessions have no rules

        if _work(rule.pattern) > self.limits.rule_chars:
            raise BadRule(f"{name}: the pattern is too long, or repeats too much")
        try:
            rule.pattern.encode()
            regex.compile(rule.pattern)
        except (regex.error, UnicodeEncodeError, RecursionError) as error:
            raise BadRule(f"{name}: the pattern is not a valid regular expression: {error}") from None
        for example in rule.matches:
            if not self._fits(rule.pattern, example):
                raise BadRule(f"{name}: must match {example}, but does not")
        for example in rule.rejects:
            if self._fits(rule.pattern, example):
                raise BadRule(f"{name}: must not match {example}, but does")
        return rule

    def _entry(self, entry: dict[str, Any], name: str) -> Rule:
        return self.checked(_rule(entry, name), name)

    def _fits(self, pattern: str, text: str) -> bool:
        import regex  # noqa: PLC0415  the stdlib's cannot be stopped

        try:
            return regex.fullmatch(pattern, text, timeout=self.limits.rule_seconds) is not None
        except TimeoutError:
            return False  # a rule that cannot decide in time approves nothing

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with locked_beside(self.path):
            self.read()
            yield
            self._text = "\n".join(map(_toml, self.rules))
            write_text(self.path, self._text)


def _work(pattern: str) -> int:
    """How long the pattern is with its counted repeats written out, which is what compiling it costs."""
    return len(pattern) * math.prod(max(int(n[:9] or 1) for n in found) for found in _REPEAT.findall(pattern))


_KINDS: dict[str, Any] = {
    "tool": str,
    "pattern": str,
    "enabled": bool,
    "expires_at": (str, datetime),
    "matches": list,
    "rejects": list,
}


def _rule(entry: dict[str, Any], name: str) -> Rule:
    if unknown := entry.keys() - _KINDS.keys():
        raise BadRule(f"{name}: unknown key {min(unknown)!r}")
    if missing := {"tool", "pattern"} - entry.keys():
        raise BadRule(f"{name}: needs {max(missing)}")
    for key, value in entry.items():
        items = value if isinstance(value, list) else []
        if not isinstance(value, _KINDS[key]) or not all(isinstance(item, str) for item in items):
            raise BadRule(f"{name}: {key} cannot be {value!r}")
    try:
        expires = parse_time(str(entry["expires_at"])) if "expires_at" in entry else None
    except BadRule as error:
        raise BadRule(f"{name}: {error}") from None
    examples = {key: tuple(entry.get(key, ())) for key in ("matches", "rejects")}
    return Rule(entry["tool"], entry["pattern"], entry.get("enabled", True), expires, **examples)


def parse_time(text: str) -> datetime:
    """In UTC, which is also meant where the text names no zone."""
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise BadRule(f"not an ISO 8601 time: {text!r}") from None


def _toml(rule: Rule) -> str:
    lines = ["[[rule]]", f"tool = {_quoted(rule.tool)}", f"pattern = {_quoted(rule.pattern)}"]
    lines.append(f"enabled = {'true' if rule.enabled else 'false'}")
    if rule.expires_at:
        lines.append(f"expires_at = {rule.expires_at.isoformat()}")
    for key, examples in (("matches", rule.matches), ("rejects", rule.rejects)):
        if examples:
            lines.append(f"{key} = [{', '.join(map(_quoted, examples))}]")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML basic string: JSON's escapes are TOML's, but for a pair of surrogates, which JSON needs not."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
