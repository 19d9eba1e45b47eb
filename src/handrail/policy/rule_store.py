"""Stores rules: in one file of the user for all projects, in one file for each project, or in memory for a session."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field

from handrail.errors import RuleError
from handrail.kernel.host.state_dir import locked_beside, read_small_text, version_of, write_text
from handrail.model.files import Version
from handrail.model.limits import Limits
from handrail.model.record import record
from handrail.policy.rules import ANY_TOOL, Rule, checked, from_entry, to_toml


@record
class RuleFile:
    """Holds the rules of one file and keeps both in step."""

    path: str
    """The path of the file; empty if the rules live only in memory."""
    limits: Limits
    rules: list[Rule] = field(default_factory=list)
    _text: str = ""
    _version: Version | None = None
    _denied: frozenset[str] = frozenset()
    """The tools of the deny rules in `_version` of the file."""

    @classmethod
    def load(cls, home: str, limits: Limits) -> "RuleFile":
        """Read the rules from the directory `home`. Raises RuleError."""
        file = cls(f"{home}/approvals.toml", limits)
        file.read()
        return file

    def read(self) -> None:
        """Read the file again: the user or another session may have changed it. Raises RuleError."""
        if not self.path:
            return
        try:
            text = read_small_text(self.path, self.limits.config_bytes)
        except (OSError, ValueError) as error:
            raise RuleError(f"cannot read {self.path}: {error}") from None
        if text != self._text:
            self.rules, self._text = self._rules_of(text), text

    def _rules_of(self, text: str) -> list[Rule]:
        from handrail.settings import parse_toml  # noqa: PLC0415  only if a file exists

        try:
            found = parse_toml(text)
        except ValueError as error:
            raise RuleError(f"cannot read {self.path}: {error}") from None
        if unknown := found.keys() - {"rule"}:
            raise RuleError(f"{self.path}: unknown key {min(unknown)!r}; write each rule as a [[rule]] table")
        entries = found.get("rule", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise RuleError(f"{self.path}: write each rule as a [[rule]] table")
        return [from_entry(entry, f"rule {n} in {self.path}", self.limits) for n, entry in enumerate(entries, 1)]

    def version(self) -> Version | None:
        """Return the version of the file now; None if there is none."""
        return version_of(self.path) if self.path else None

    def now(self) -> list[tuple[int, Rule]]:
        """Return the current rules with their numbers; only the last known deny rules if the file is invalid."""
        try:
            self.read()
        except RuleError:
            return [(number, rule) for number, rule in enumerate(self.rules, 1) if rule.deny]
        return list(enumerate(self.rules, 1))

    def denies(self, tool: str) -> bool:
        """Return whether a rule denies calls of a tool. Reads the file only if its version changed."""
        if not self.path:
            return bool(self.rules) and any(rule.deny and rule.tool in (tool, ANY_TOOL) for rule in self.rules)
        if (found := version_of(self.path)) != self._version:
            self._denied = frozenset(rule.tool for _, rule in self.now() if rule.deny)
            self._version = found
        return tool in self._denied or ANY_TOOL in self._denied

    def add(self, rule: Rule) -> int:
        """Store a rule, unless it is already stored, and return its number."""
        from handrail.policy.ruletext import added  # noqa: PLC0415  most sessions change no rule

        with self._locked():
            if rule not in self.rules:
                wanted = [*self.rules, checked(rule, "the rule", self.limits)]
                self._store(wanted, lambda text: added(text, to_toml(rule)))
            return self.rules.index(rule) + 1

    def remove(self, number: int) -> Rule:
        """Remove a rule and return it."""
        from handrail.policy.ruletext import removed  # noqa: PLC0415  most sessions change no rule

        with self._locked():
            rule = self.get(number)
            wanted = [*self.rules[: number - 1], *self.rules[number:]]
            self._store(wanted, lambda text: removed(text, number))
            return rule

    def enable(self, number: int, *, enabled: bool, unattended: bool = False) -> Rule:
        """Enable or disable a rule. `unattended` marks the rule; no later call removes the mark."""
        from handrail.policy.ruletext import switched  # noqa: PLC0415  most sessions change no rule

        def edit(text: str) -> str:
            text = switched(text, number, "enabled", on=enabled)
            return switched(text, number, "unattended", on=True) if unattended else text

        with self._locked():
            old = self.get(number)
            rule = old._replace(enabled=enabled, unattended=old.unattended or unattended)
            if rule != old:
                self._store([*self.rules[: number - 1], rule, *self.rules[number:]], edit)
            return rule

    def get(self, number: int) -> Rule:
        """Return a rule by its number, counted from 1. Raises RuleError."""
        if not 1 <= number <= len(self.rules):
            raise RuleError(f"rule {number} not found")
        return self.rules[number - 1]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other sessions from changing the file, and read it first."""
        if not self.path:
            yield
            return
        with locked_beside(self.path):
            self.read()
            yield

    def _store(self, wanted: list[Rule], edit: Callable[[str], str]) -> None:
        """Write the edited text if it contains exactly the wanted rules; then keep these rules."""
        if self.path:
            text = edit(self._text)
            if not self._contains_exactly(text, wanted):
                raise RuleError(f"cannot edit {self.path} automatically: write each rule as a [[rule]] table")
            write_text(self.path, text)
            self._text = text
        self.rules = wanted

    def _contains_exactly(self, text: str, wanted: list[Rule]) -> bool:
        try:
            return self._rules_of(text) == wanted
        except RuleError:
            return False
