"""Approval rules: a tool, and a pattern that the whole call must match. A rule carries its own examples."""

import json
import re
import tomllib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from handrail.kernel.state import read_text, write_text


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
    seconds: float
    rules: list[Rule] = field(default_factory=list)

    @classmethod
    def load(cls, home: str, seconds: float) -> "RuleBook":
        book = cls(f"{home}/approvals.toml", seconds)
        text = read_text(book.path)
        try:
            entries = tomllib.loads(text).get("rule", []) if text else []
        except tomllib.TOMLDecodeError as error:
            raise BadRule(f"{book.path} is not valid TOML: {error}") from None
        for number, entry in enumerate(entries, 1):
            book.rules.append(book.checked(_rule(entry, f"rule {number} in {book.path}"), f"rule {number}"))
        return book

    def add(self, rule: Rule) -> int:
        """Store a rule and return its number."""
        if rule not in self.rules:
            self.rules.append(self.checked(rule, "the rule"))
            self._save()
        return self.rules.index(rule) + 1

    def remove(self, number: int) -> Rule:
        rule = self.get(number)
        self.rules.remove(rule)
        self._save()
        return rule

    def enable(self, number: int, *, enabled: bool) -> Rule:
        rule = replace(self.get(number), enabled=enabled)
        self.rules[number - 1] = rule
        self._save()
        return rule

    def get(self, number: int) -> Rule:
        if not 1 <= number <= len(self.rules):
            raise BadRule(f"there is no rule {number}")
        return self.rules[number - 1]

    def match(self, tool: str, params: dict[str, Any]) -> int | None:
        """The number of the first rule in force that covers this call."""
        text = call_text(params)
        for number, rule in enumerate(self.rules, 1):
            if rule.tool == tool and rule.enabled and not rule.expired and self._fits(rule.pattern, text):
                return number
        return None

    def checked(self, rule: Rule, name: str) -> Rule:
        """The rule, if its pattern compiles and its examples hold."""
        import regex  # noqa: PLC0415  most sessions have no rules

        try:
            regex.compile(rule.pattern)
        except regex.error as error:
            raise BadRule(f"{name}: the pattern is not a valid regular expression: {error}") from None
        for example in rule.matches:
            if not self._fits(rule.pattern, example):
                raise BadRule(f"{name}: must match {example}, but does not")
        for example in rule.rejects:
            if self._fits(rule.pattern, example):
                raise BadRule(f"{name}: must not match {example}, but does")
        return rule

    def _fits(self, pattern: str, text: str) -> bool:
        import regex  # noqa: PLC0415  the stdlib's cannot be stopped

        try:
            return regex.fullmatch(pattern, text, timeout=self.seconds) is not None
        except TimeoutError:
            return False  # a rule that cannot decide in time approves nothing

    def _save(self) -> None:
        write_text(self.path, "\n".join(map(_toml, self.rules)))


def _rule(entry: dict[str, Any], name: str) -> Rule:
    known = {"tool", "pattern", "enabled", "expires_at", "matches", "rejects"}
    if unknown := entry.keys() - known:
        raise BadRule(f"{name}: unknown key {min(unknown)!r}")
    if not isinstance(entry.get("tool"), str) or not isinstance(entry.get("pattern"), str):
        raise BadRule(f"{name}: needs tool and pattern")
    expires = entry.get("expires_at")
    if isinstance(expires, str):
        expires = parse_time(expires)
    if expires is not None and expires.tzinfo is None:
        expires = expires.replace(tzinfo=UTC)
    examples = {key: tuple(entry.get(key, ())) for key in ("matches", "rejects")}
    return Rule(entry["tool"], entry["pattern"], entry.get("enabled", True), expires, **examples)


def parse_time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadRule(f"not an ISO 8601 time: {text!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


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
