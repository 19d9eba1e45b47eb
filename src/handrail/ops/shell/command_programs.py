"""Determines the programs that a command would run, for approval rules to match and for the user to see.

`CommandLine.simple` is the strict part: a command that every shell splits into the same words. It uses no grammar, so
that a command that a grammar misreads never counts as simple. tree-sitter reads all other commands, and the result
says where it is uncertain.
"""

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handrail.model.limits import Limits
from handrail.model.record import record
from handrail.ops.shell.evaluation import evaluated, settled, value_of
from handrail.ops.shell.first_words import first_words
from handrail.ops.shell.program_kinds import takes_code
from handrail.ops.shell.redirections import parts_of
from handrail.ops.shell.shell_builtins import assigned_name
from handrail.ops.shell.started import Argv
from handrail.ops.shell.wrappers import is_followed, started_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Language, Node, Parser

_LAYERS = 8
"""The most levels of scripts inside scripts, and of programs that start programs, that are followed."""

# Shells disagree on a backslash before the end of a single-quoted string (fish) and on an unquoted `!`.
_PIECE = re.compile(
    r"""'((?:[^'\\]|\\(?!['\\]))*)'|"((?:[^"\\$`!]|\\[^\n!])*)"|\\([^\n])|(\\\n)"""
    r"""|([A-Za-z0-9_@%+:,./^=\]{}~#-]|[^\x00-\x7f])"""
)
_DOUBLE_QUOTED_ESCAPE = re.compile(r'\\([$`"\\])')
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
# The grammar reads two words where the shell joins two lines into one word.
_JOINED = re.compile(r"[^ \t\n]\\\n[^ \t\n]")
# The grammar treats these as blanks; the shell makes them part of a word.
_NO_BLANKS = re.compile(r"[\r\v\f]")
_RANGE = re.compile(r"\{-?[0-9]+\.\.-?[0-9]+(?:\.\.-?[0-9]+)?\}")
_COMMENT = re.compile(r"#[^\n]*")
_EXPANDS = re.compile(r"^[~=]|[=:]~|\{.*(?:,|\.\.)", re.DOTALL)
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_RESERVED = frozenset(
    {"if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in", "function"}
    | {"select", "time", "coproc", "{", "}"}
)

_MAGIC = frozenset({"BASH_ALIASES", "BASH_CMDS", "BASH_ENV", "BASHOPTS", "PROMPT_COMMAND", "PS4", "SHELLOPTS"})
"""Variables that change the meaning of a name, or make the shell run more than the commands."""
_INTEGERS = frozenset({"BASHPID", "EPOCHSECONDS", "HISTCMD", "LINENO", "OPTIND", "RANDOM", "SECONDS", "SRANDOM"})
"""Variables whose value the shell evaluates as an expression."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Holds what is known about a command from its text."""

    commands: tuple[Argv, ...] = ()
    """Every simple command, also those that another one starts. None is a word that is known only at run time."""
    programs: tuple[str, ...] = ()
    """The first words of the commands as they are written, each once."""
    assigns: tuple[str, ...] = ()
    """The variables that the command sets; some, such as PATH, change the meaning of a program's name."""
    redirects: bool = False
    unknown: bool = False
    """True if the command may run programs that are not named here."""
    simple: tuple[str, ...] | None = None
    """The words, if the text is one command with only literal words."""
    code: bool = False
    """True if a program gets code, or a program to run, in a way that is not followed here."""
    texts: tuple[str, ...] = field(default=(), compare=False)
    """Values of variables and here-documents, which a program may run as code."""


@record
class _Findings:
    """Collects the content of a `CommandLine` while scripts are read."""

    commands: list[Argv] = field(default_factory=list)
    assigns: list[str] = field(default_factory=list)
    redirects: bool = False
    unknown: bool = False
    code: bool = False
    values: dict[str, list[str | None]] = field(default_factory=dict)
    """The values that each variable gets; None for an unknown value."""
    evaluated: set[str] = field(default_factory=lambda: set(_INTEGERS))
    """Variables whose values the shell evaluates as expressions."""
    bodies: list[str] = field(default_factory=list)
    """Here-documents and here-strings."""

    def set(self, name: str, value: str | None) -> None:
        """Add a value that a variable gets."""
        self.values.setdefault(name, []).append(value)

    @property
    def texts(self) -> tuple[str, ...]:
        return (*(value for values in self.values.values() for value in values if value), *self.bodies)


def parse_command(text: str, longest: int = Limits().command_chars) -> CommandLine:
    """Determine the programs of a command; if it has more than `longest` characters, they are unknown."""
    findings = _Findings()
    scripts = [(text, 0)]
    for script, layer in scripts:
        if layer > _LAYERS or sum(len(known) for known, _ in scripts) > longest or "\0" in script:
            findings.unknown = True
            break
        for argv in _read(script, findings):
            scripts += [(inner, layer + 1) for inner in _follow(argv, findings)]
    programs = dict.fromkeys(argv[0] for argv in findings.commands if argv[0] is not None)
    evaluates = not _MAGIC.isdisjoint(findings.assigns) or not settled(findings.evaluated, findings.values)
    return CommandLine(
        tuple(findings.commands),
        tuple(programs),
        tuple(dict.fromkeys(findings.assigns)),
        findings.redirects,
        findings.unknown or evaluates,
        plain_argv(text),
        findings.code,
        findings.texts,
    )


def plain_argv(text: str) -> tuple[str, ...] | None:
    """Return the words of one command without operators, redirections, assignments or expansions; else None."""
    words: list[str] = []
    i, ended = 0, False
    while True:
        i = _end(_BLANKS, text, i)
        i = _end(_COMMENT, text, i)
        if i == len(text):
            break
        if text[i] == "\n":
            ended = bool(words)
            i += 1
            continue
        end, word = _plain_word(text, i)
        if word is None or ended or (not words and _is_special(text[i:end])):
            return None
        words.append(word)
        i = end
    return tuple(words) or None


def _is_special(first_word: str) -> bool:
    """Return whether a first word is an assignment or a reserved word."""
    joined = first_word.replace("\\\n", "")
    return "=" in joined or joined in _RESERVED


def _end(pattern: re.Pattern[str], text: str, i: int) -> int:
    match = pattern.match(text, i)
    return match.end() if match else i


def _plain_word(text: str, i: int) -> tuple[int, str | None]:
    """Return where the word at `i` ends, and its value; None as the value if shells may read the word differently."""
    value, unquoted = [], []
    while match := _PIECE.match(text, i):
        single, double, escaped, _, plain = match.groups()
        if double is not None:
            value.append(_DOUBLE_QUOTED_ESCAPE.sub(r"\1", double))
        else:
            value.append(single or escaped or plain or "")
        unquoted.append(plain or "")
        i = match.end()
    ended = i == len(text) or text[i] in " \t\n"
    return i, "".join(value) if value and ended and not _EXPANDS.search("".join(unquoted)) else None


def _read(script: str, findings: _Findings) -> "Iterator[Argv]":
    """Yield the commands of a script and collect everything else about it."""
    root = _parser().parse(script.encode(errors="surrogatepass")).root_node
    for node in _nodes(root):
        kind = node.type
        if kind == "command":
            yield _argv(node)
        elif kind in ("declaration_command", "unset_command"):
            yield _declaration(node, findings)
        elif kind == "test_command":
            yield (_text(node.children[0]),)
        elif kind in ("variable_assignment", "for_statement"):
            _collect_values(node, findings)
        elif kind in _REDIRECTS:
            findings.redirects = True
            findings.bodies += [_text(node)] if kind != "file_redirect" else []
    misread = _JOINED.search(script) or _NO_BLANKS.search(script)
    found = evaluated(script)
    findings.evaluated |= found.names
    for name in found.sets:
        findings.set(name, None)
    findings.unknown |= root.has_error or bool(misread) or found.unsure or not _grammar_saw_all(script, findings)


def _collect_values(node: "Node", findings: _Findings) -> None:
    """Collect the values that an assignment or a loop gives its variable."""
    name = _text(node.named_children[0]).partition("[")[0]
    findings.assigns.append(name)
    if node.type == "variable_assignment":
        texts = [_text(node).partition("=")[2]]
    else:
        texts = [_text(each) for each in node.named_children[1:] if each.type != "do_group"] or ["$@"]
    for text in texts:
        range_of_numbers = node.type == "for_statement" and _RANGE.fullmatch(text)
        findings.set(name, "0" if range_of_numbers else value_of(text, _literal(text)))


def _declaration(node: "Node", findings: _Findings) -> Argv:
    """Return the words of a declaration; of an assignment whose value is not literal, only the name."""
    words: list[str | None] = [_text(node.children[0])]
    for child in parts_of(node)[1:]:
        text = _text(child)
        name = assigned_name(text)
        if child.type in _REDIRECTS:
            continue
        if name is not None and (child.type == "variable_assignment" or _literal(text) is None):
            if child.type != "variable_assignment":
                findings.set(name, None)
            words.append(_literal(text) or name)
        elif child.type == "variable_assignment":
            words.append(_text(child.named_children[0]))
        else:
            words.append(_literal(text))
    return tuple(words)


def _grammar_saw_all(script: str, findings: _Findings) -> bool:
    """Compare the grammar's commands with those of `first_words`; return False if one is missing.

    A script with substitutions cannot be compared.
    """
    first = first_words(script)
    if first is None:
        return False
    findings.assigns += first.assigns
    findings.redirects |= first.redirects
    seen = {argv[0] for argv in findings.commands}
    return all((word if word == "[" else _plain_word(word, 0)[1]) in seen for word in first.words)


def _follow(argv: Argv, findings: _Findings) -> "Iterator[str]":
    """Collect a command and the commands that it starts, layer by layer; yield the scripts that a shell would run."""
    waiting = [(argv, 0)]
    for command, layer in waiting:
        findings.commands.append(command)
        started = started_by(command)
        findings.assigns += started.assigns
        findings.unknown |= started.unknown or layer > _LAYERS
        findings.code |= not is_followed((command[0] or "").rpartition("/")[2]) and takes_code(command)
        findings.evaluated |= started.evaluated
        for name, value in (*started.sets, *((name, None) for name in started.assigns)):
            findings.set(name, value)
        if layer <= _LAYERS:
            waiting += [(inner, layer + 1) for inner in started.argvs]
            yield from started.scripts


def _nodes(root: "Node") -> "Iterator[Node]":
    """Yield all nodes in the order of the text, without recursion: a hostile command can be nested very deep."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def _argv(command: "Node") -> Argv:
    """Return the words of a command, without assignments and redirections; None for a word known only at run time."""
    words: list[str | None] = []
    for child in parts_of(command):
        if child.type == "variable_assignment" or child.type in _REDIRECTS:
            continue
        words.append(_literal(_text(child)))
    return tuple(words) or (None,)


def _literal(text: str) -> str | None:
    """Return the value of a word that every shell reads in the same way; None for any other word."""
    end, word = _plain_word(text, 0)
    return word if end == len(text) else None


def _text(node: "Node") -> str:
    return (node.text or b"").decode(errors="surrogatepass")


def _parser() -> "Parser":
    from tree_sitter import Parser  # noqa: PLC0415  slow to import: at first use

    return Parser(_language())


@functools.cache
def _language() -> "Language":
    import tree_sitter_bash  # noqa: PLC0415  slow to import: at first use
    from tree_sitter import Language  # noqa: PLC0415  slow to import: at first use

    return Language(tree_sitter_bash.language())
