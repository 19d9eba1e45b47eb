"""Suggests the rules that an answer can store. The user reads each of them as a sentence before answering."""

import re
import shlex

from handrail.errors import RuleError
from handrail.model.approval import Keep, Question
from handrail.model.limits import Limits
from handrail.model.paths import unquote
from handrail.ops.glob.globs import literal_glob
from handrail.policy.rule_match import RuleMatcher, why_nothing_kept
from handrail.policy.rule_text import ALL_EDITS, EDIT, FETCH, RUN, brief, sentence
from handrail.policy.rules import typed_rule

_SUBCOMMAND = re.compile(r"[a-z][a-z0-9:_-]*")
_EXACT_PROGRAMS = frozenset(
    ("chgrp", "chmod", "chown", "dd", "kill", "killall", "ln", "mv", "pkill", "rm", "rmdir", "shred", "sudo")
)
"""Programs whose further words matter so much that a rule for them names the whole command."""
_ONE_MORE = frozenset(
    ("bundle exec", "make", "node", "npx", "perl", "php", "pipenv run", "poetry run", "python", "python -m", "python3")
) | {"python3 -m", "ruby", "uv run", "uvx"}
"""First words that mean little without the next one: a script, a module or a target."""
_NO_QUOTES = re.compile(r"""[^\s'"\\]+""")
_MOST_PLACES = 3
_EXACT = "make exactly this call"


def keeps(question: Question, limits: Limits) -> dict[str, Keep]:
    """Return what the answers `session` and `always` would store; empty if no rule can be kept."""
    if why_nothing_kept(question):
        return {}
    lasting = suggestion(question, limits)
    session = ALL_EDITS if lasting.startswith(f"{EDIT} ") and _covers(ALL_EDITS, question, limits) else lasting
    return {"session": Keep("session", session), "always": Keep("project", lasting)}


def suggestion(question: Question, limits: Limits) -> str:
    """Return a rule in its short form that covers this call and similar ones; empty if only this very call fits."""
    if question.host:
        text = f"{FETCH} {question.host}"
    elif question.command and not question.terminal:
        text = _command(question, limits)
    else:
        text = _places(question)
    return text if text and _covers(text, question, limits) else ""


def kept_sentence(keep: Keep) -> str:
    """Return what an answer would allow, as the end of a sentence."""
    return sentence(keep.rule) if keep.rule else _EXACT


def kept_words(keep: Keep) -> str:
    """Return what an answer would allow in few words: a client may show only the first forty characters."""
    return brief(keep.rule) if keep.rule else _EXACT


def _covers(text: str, question: Question, limits: Limits) -> bool:
    try:
        rule = typed_rule(question.tool, text, "the rule", limits)._replace(rights=question.rights.words)
        return not RuleMatcher(question, limits).why_not(rule)
    except RuleError:
        return False


def _command(question: Question, limits: Limits) -> str:
    """Return the first words of a simple command and `*`; nothing for a command that runs several programs."""
    from handrail.ops.shell.command_programs import parse_command  # noqa: PLC0415  only commands need it
    from handrail.ops.shell.program_kinds import last_name  # noqa: PLC0415  only commands need it

    line = parse_command(question.command, limits.command_chars)
    if line.simple is None or len(line.commands) != 1:
        return ""
    if last_name(line.simple[0]) in _EXACT_PROGRAMS:
        return _typed(line.simple)
    wide = f"{_typed(_first_words(line.simple))} *"
    return wide if _covers(wide, question, limits) else _typed(line.simple)


def _first_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the program, and what says more about the command: a subcommand, a script, a module or a target."""
    from handrail.ops.shell.program_kinds import names_subcommand  # noqa: PLC0415  only commands need it

    for count in (1, 2):
        sub = count == 1 and names_subcommand(words) and _SUBCOMMAND.fullmatch("".join(words[1:2]))
        if not sub and " ".join(words[:count]) not in _ONE_MORE:
            return words[:count]
    return words[:3]


def _typed(words: tuple[str, ...]) -> str:
    """Return a command as a rule names it. A program that is called like a kind of rule needs a first word `run`."""
    return f"{RUN} {shlex.join(words)}" if words[0] in (EDIT, FETCH, RUN) else shlex.join(words)


def _places(question: Question) -> str:
    """Return a rule for the top directories of the files, and for single files at the top or in hidden directories."""
    places: dict[str, None] = {}
    for target in question.targets:
        top, slash, _ = target.partition("/")
        if unquote(target) != target:
            return ""  # its name cannot be shown as it is
        wide = slash and top and not top.startswith(".")
        places[f"{literal_glob(top)}/**" if wide else literal_glob(target)] = None
    if len(places) > _MOST_PLACES:
        return ALL_EDITS
    shown = [place if _NO_QUOTES.fullmatch(place) else shlex.quote(place) for place in places]
    return f"{EDIT} {' '.join(shown)}" if shown else ""
