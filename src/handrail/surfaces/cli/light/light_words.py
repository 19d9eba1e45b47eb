"""Reads the ordinary arguments of a command without click, and leaves help, mistakes and rare forms to click."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from handrail.dialects import NAMES
from handrail.settings import APPROVE, PRESETS, SANDBOX

FLAG = "flag"
"""The kind of an option without a value."""
TEXT = "text"
"""The kind of an option with any value. The values of an option with a choice are its kind."""


class Option(NamedTuple):
    """Describes one option: the parameter that it sets, its kind, and whether it may be given several times."""

    name: str
    kind: str | Sequence[str] = TEXT
    many: bool = False
    default: Any = None


class Ordinary(NamedTuple):
    """Reads the arguments of a command that need no click."""

    options: dict[str, Option]
    first: str = ""
    """The name of the first word that is no option; empty if the command takes no words."""
    rest: str = ""
    """The name of the words after the first."""

    def read(self, words: list[str]) -> dict[str, Any] | None:
        """Return the parameters of the command; None if click must read the words."""
        found = {each.name: () if each.many else each.default for each in self.options.values()}
        plain, seen, left = list[str](), set[str](), iter(words)
        for word in left:
            if not word.startswith("-") or word == "-":
                plain.append(word)
                continue
            spelled, equals, value = word.partition("=")
            option = self.options.get(spelled)
            if option is None or (option.kind == FLAG and equals) or (spelled in seen and not option.many):
                return None
            seen.add(spelled)
            given = True if option.kind == FLAG else value if equals else next(left, None)
            if given is None or (option.kind not in (FLAG, TEXT) and given not in option.kind):
                return None
            found[option.name] = (*found[option.name], given) if option.many else given
        return self._with_words(found, plain)

    def _with_words(self, found: dict[str, Any], plain: list[str]) -> dict[str, Any] | None:
        if bool(plain) is not bool(self.first):
            return None
        if not plain:
            return found
        return {**found, self.first: plain[0], self.rest: tuple(plain[1:])}


WORKSPACE_OPTIONS = {
    "--image": Option("image"),
    "--workdir": Option("workdir"),
    "--dialect": Option("dialect", NAMES),
    "--read-only": Option("read_only", FLAG),
    "--layered": Option("layered", FLAG),
    "--preset": Option("preset", (*PRESETS,)),
    "--approve": Option("approve", APPROVE),
    "--network": Option("network", many=True),
    "--sandbox": Option("sandbox", SANDBOX),
    "--log": Option("log"),
}
"""The options that open a workspace, for every command that runs without click."""
