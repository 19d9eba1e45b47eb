"""Where rules are kept: a file of the person's for all projects, one for each project, and a session's memory."""

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
    path: str
    """Empty: nothing is stored."""
    limits: Limits
    rules: list[Rule] = field(default_factory=list)
    _text: str = ""
    _version: Version | None = None
    _denied: frozenset[str] = frozenset()
    """The tools of the rules that deny, as they were in this version of the file."""

    @classmethod
    def load(cls, home: str, limits: Limits) -> "RuleFile":
        book = cls(f"{home}/approvals.toml", limits)
        book.read()
        return book

    def read(self) -> None:
        """Take over what the file says now: another session, or the person, may have changed it."""
        if not self.path:
            return
        try:
            text = read_small_text(self.path, self.limits.config_bytes)
        except (OSError, ValueError) as error:
            raise RuleError(f"{self.path} cannot be read: {error}") from None
        if text != self._text:
            self.rules, self._text = self._rules_of(text), text

    def _rules_of(self, text: str) -> list[Rule]:
        from handrail.settings import parse_toml  # noqa: PLC0415  only where there is a file

        try:
            found = parse_toml(text)
        except ValueError as error:
            raise RuleError(f"{self.path} cannot be read: {error}") from None
        if unknown := found.keys() - {"rule"}:
            raise RuleError(f"{self.path}: unknown key {min(unknown)!r}; rules are [[rule]] tables")
        entries = found.get("rule", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise RuleError(f"{self.path}: rules are [[rule]] tables")
        return [from_entry(entry, f"rule {n} in {self.path}", self.limits) for n, entry in enumerate(entries, 1)]

    def version(self) -> Version | None:
        """Return the version of the file now; None if there is none."""
        return version_of(self.path) if self.path else None

    def now(self) -> list[tuple[int, Rule]]:
        """The rules, numbered. Where the file makes no sense nothing is approved, and what was forbidden stays so."""
        try:
            self.read()
        except RuleError:
            return [(number, rule) for number, rule in enumerate(self.rules, 1) if rule.deny]
        return list(enumerate(self.rules, 1))

    def denies(self, tool: str) -> bool:
        """Whether there is a rule that denies calls of a tool; the file is read only where it is another one."""
        if not self.path:
            return bool(self.rules) and any(rule.deny and rule.tool in (tool, ANY_TOOL) for rule in self.rules)
        if (found := version_of(self.path)) != self._version:
            self._denied = frozenset(rule.tool for _, rule in self.now() if rule.deny)
            self._version = found
        return tool in self._denied or ANY_TOOL in self._denied

    def add(self, rule: Rule) -> int:
        """Store a rule and return its number."""
        from handrail.policy.ruletext import added  # noqa: PLC0415  most sessions change no rule

        with self._changing():
            if rule not in self.rules:
                wanted = [*self.rules, checked(rule, "the rule", self.limits)]
                self._become(wanted, lambda text: added(text, to_toml(rule)))
            return self.rules.index(rule) + 1

    def remove(self, number: int) -> Rule:
        from handrail.policy.ruletext import removed  # noqa: PLC0415  the same

        with self._changing():
            rule = self.get(number)
            wanted = [*self.rules[: number - 1], *self.rules[number:]]
            self._become(wanted, lambda text: removed(text, number))
            return rule

    def enable(self, number: int, *, enabled: bool, unattended: bool = False) -> Rule:
        """Switch a rule on or off; `unattended` marks it, and no later switch takes the mark away."""
        from handrail.policy.ruletext import switched  # noqa: PLC0415  the same

        def edit(text: str) -> str:
            text = switched(text, number, "enabled", on=enabled)
            return switched(text, number, "unattended", on=True) if unattended else text

        with self._changing():
            old = self.get(number)
            rule = old._replace(enabled=enabled, unattended=old.unattended or unattended)
            if rule != old:
                self._become([*self.rules[: number - 1], rule, *self.rules[number:]], edit)
            return rule

    def get(self, number: int) -> Rule:
        if not 1 <= number <= len(self.rules):
            raise RuleError(f"there is no rule {number}")
        return self.rules[number - 1]

    @contextmanager
    def _changing(self) -> Iterator[None]:
        if not self.path:
            yield
            return
        with locked_beside(self.path):
            self.read()
            yield

    def _become(self, wanted: list[Rule], edit: Callable[[str], str]) -> None:
        """Take these rules over, and store the text if an edit of it says just that."""
        if self.path:
            text = edit(self._text)
            if not self._says(text, wanted):
                raise RuleError(f"{self.path} is written in a way that only its writer can change: use [[rule]] tables")
            write_text(self.path, text)
            self._text = text
        self.rules = wanted

    def _says(self, text: str, wanted: list[Rule]) -> bool:
        try:
            return self._rules_of(text) == wanted
        except RuleError:
            return False
