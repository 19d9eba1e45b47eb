"""Stores rules: in one file of the user for all projects, in one file for each project, and in memory for a session."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field

from handrail.errors import RuleError
from handrail.kernel.host.state_dir import locked_directory_of, read_small_text, version_of, write_text
from handrail.model.files import Version
from handrail.model.limits import Limits
from handrail.model.record import record
from handrail.policy.rules import ANY_TOOL, Rule, checked, from_entry, to_entry

_KEY = "rule"
"""The key of the array in a rule file."""


@record
class RuleFile:
    """Holds the rules of one file, or of a session."""

    path: str
    """The path of the file; empty if the rules are kept in memory only."""
    limits: Limits
    rules: list[Rule] = field(default_factory=list)
    _text: str = ""
    _version: Version | None = None
    _denied: frozenset[str] = frozenset()
    """The tools of the rules that deny, in this version of the file."""

    @classmethod
    def load(cls, home: str, limits: Limits) -> "RuleFile":
        """Read the rule file of a directory; a file that does not exist holds no rules."""
        file = cls(f"{home}/approvals.toml", limits)
        file.read()
        return file

    def read(self) -> None:
        """Read the rules again: another session or the user may have changed the file."""
        if not self.path:
            return
        try:
            text = read_small_text(self.path, self.limits.config_bytes)
        except (OSError, ValueError) as error:
            raise RuleError(f"cannot read {self.path}: {error}") from None
        if text != self._text:
            self.rules, self._text = self._rules_of(text), text

    def _rules_of(self, text: str) -> list[Rule]:
        from handrail.ops.toml_read import parse_toml  # noqa: PLC0415  most sessions have no rule file

        try:
            found = parse_toml(text)
        except ValueError as error:
            raise RuleError(f"cannot read {self.path}: {error}") from None
        if unknown := found.keys() - {_KEY}:
            raise RuleError(f"{self.path}: unknown key {min(unknown)!r}; write each rule as a [[rule]] table")
        entries = found.get(_KEY, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise RuleError(f"{self.path}: write each rule as a [[rule]] table")
        return [from_entry(entry, f"rule {n} in {self.path}", self.limits) for n, entry in enumerate(entries, 1)]

    def version(self) -> Version | None:
        """Return the version of the file now; None if there is none."""
        return version_of(self.path) if self.path else None

    def now(self) -> list[tuple[int, Rule]]:
        """Return the numbered rules in force. If the file is invalid, only the deny rules of its last valid version."""
        try:
            self.read()
        except RuleError:
            return [(number, rule) for number, rule in enumerate(self.rules, 1) if rule.deny]
        return list(enumerate(self.rules, 1))

    def denies(self, tool: str) -> bool:
        """Return whether a rule may deny calls of a tool. Reads the file only if it has changed."""
        if not self.path:
            return bool(self.rules) and any(rule.deny and rule.tool in (tool, ANY_TOOL) for rule in self.rules)
        if (found := version_of(self.path)) != self._version:
            self._denied = frozenset(rule.tool for _, rule in self.now() if rule.deny)
            self._version = found
        return tool in self._denied or ANY_TOOL in self._denied

    def add(self, rule: Rule) -> int:
        """Store a rule and return its number."""
        from handrail.ops.toml_edit import add_element  # noqa: PLC0415  most sessions change no rule

        with self._locked():
            if rule not in self.rules:
                wanted = [*self.rules, checked(rule, "the rule", self.limits)]
                self._store(wanted, lambda text: add_element(text, _KEY, to_entry(rule)))
            return self.rules.index(rule) + 1

    def remove(self, number: int, expected: Rule | None = None) -> Rule:
        """Remove a rule from the file and return it. Raises RuleError if it is not the expected one."""
        from handrail.ops.toml_edit import remove_element  # noqa: PLC0415  most sessions change no rule

        with self._locked():
            rule = self.get(number, expected)
            wanted = [*self.rules[: number - 1], *self.rules[number:]]
            self._store(wanted, lambda text: remove_element(text, _KEY, number - 1))
            return rule

    def enable(self, number: int, *, enabled: bool, unattended: bool = False, expected: Rule | None = None) -> Rule:
        """Enable or disable a rule. `unattended` marks the rule; no later call removes the mark."""
        from handrail.ops.toml_edit import set_in_element  # noqa: PLC0415  most sessions change no rule

        def edit(text: str) -> str:
            text = set_in_element(text, _KEY, number - 1, "enabled", enabled)
            return set_in_element(text, _KEY, number - 1, "unattended", value=True) if unattended else text

        with self._locked():
            old = self.get(number, expected)
            rule = old._replace(enabled=enabled, unattended=old.unattended or unattended)
            if rule != old:
                self._store([*self.rules[: number - 1], rule, *self.rules[number:]], edit)
            return rule

    def get(self, number: int, expected: Rule | None = None) -> Rule:
        """Return a rule by its number, counted from 1. Raises RuleError if there is none, or not the expected one."""
        if not 1 <= number <= len(self.rules) or expected not in (None, self.rules[number - 1]):
            raise RuleError(f"rule {number} not found")
        return self.rules[number - 1]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other sessions from changing the file, and read it first."""
        if not self.path:
            yield
            return
        with locked_directory_of(self.path):
            self.read()
            yield

    def _store(self, wanted: list[Rule], edit: Callable[[str], str]) -> None:
        """Edit the text of the file, check that the result holds exactly the wanted rules, and store it."""
        if self.path:
            text = self._edited(wanted, edit)
            write_text(self.path, text)
            self._text = text
        self.rules = wanted

    def _edited(self, wanted: list[Rule], edit: Callable[[str], str]) -> str:
        try:
            text = edit(self._text)
            if self._rules_of(text) == wanted:
                return text
        except (RuleError, ValueError):
            pass  # refused below
        raise RuleError(f"cannot edit {self.path} automatically: write each rule as a [[rule]] table")
