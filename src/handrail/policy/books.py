"""Where rules are kept: a file of the person's for all projects, one for each project, and a session's memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from handrail.kernel.state import Stamp, locked_beside, read_text, stamp, write_text
from handrail.limits import Limits
from handrail.policy.rules import ANY_TOOL, BadRule, Rule, checked, from_entry, to_toml
from handrail.structs import struct


@struct
class RuleBook:
    path: str
    """Empty: nothing is stored."""
    limits: Limits
    rules: list[Rule] = field(default_factory=list)
    _text: str = ""
    _stamp: Stamp | None = None
    _denied: frozenset[str] = frozenset()
    """The tools of the rules that deny, as they were when the file had this stamp."""

    @classmethod
    def load(cls, home: str, limits: Limits) -> "RuleBook":
        book = cls(f"{home}/approvals.toml", limits)
        book.read()
        return book

    def read(self) -> None:
        """Take over what the file says now: another session, or the person, may have changed it."""
        if not self.path:
            return
        try:
            text = read_text(self.path)
            if text == self._text:
                return
            import tomllib  # noqa: PLC0415  only where there is a file

            found = tomllib.loads(text)
        except (OSError, ValueError) as error:
            raise BadRule(f"{self.path} cannot be read: {error}") from None
        if unknown := found.keys() - {"rule"}:
            raise BadRule(f"{self.path}: unknown key {min(unknown)!r}; rules are [[rule]] tables")
        entries = found.get("rule", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise BadRule(f"{self.path}: rules are [[rule]] tables")
        self.rules = [from_entry(entry, f"rule {n} in {self.path}", self.limits) for n, entry in enumerate(entries, 1)]
        self._text = text

    def now(self) -> list[tuple[int, Rule]]:
        """The rules, numbered. Where the file makes no sense nothing is approved, and what was forbidden stays so."""
        try:
            self.read()
        except BadRule:
            return [(number, rule) for number, rule in enumerate(self.rules, 1) if rule.deny]
        return list(enumerate(self.rules, 1))

    def denies(self, tool: str) -> bool:
        """Whether there is a rule that denies calls of a tool; the file is read only where it is another one."""
        if not self.path:
            return bool(self.rules) and any(rule.deny and rule.tool in (tool, ANY_TOOL) for rule in self.rules)
        if (found := stamp(self.path)) != self._stamp:
            self._denied = frozenset(rule.tool for _, rule in self.now() if rule.deny)
            self._stamp = found
        return tool in self._denied or ANY_TOOL in self._denied

    def add(self, rule: Rule) -> int:
        """Store a rule and return its number."""
        with self._changing():
            if rule not in self.rules:
                self.rules.append(checked(rule, "the rule", self.limits))
            return self.rules.index(rule) + 1

    def remove(self, number: int) -> Rule:
        with self._changing():
            self.get(number)
            return self.rules.pop(number - 1)

    def enable(self, number: int, *, enabled: bool) -> Rule:
        with self._changing():
            self.rules[number - 1] = self.get(number)._replace(enabled=enabled)
            return self.rules[number - 1]

    def get(self, number: int) -> Rule:
        if not 1 <= number <= len(self.rules):
            raise BadRule(f"there is no rule {number}")
        return self.rules[number - 1]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        if not self.path:
            yield
            return
        with locked_beside(self.path):
            self.read()
            yield
            self._text = "\n".join(map(to_toml, self.rules))
            write_text(self.path, self._text)
