"""The programs that a command would run, for approval rules to match and for people to see.

`simple` is the strict half: a command whose argv any shell reads alike. It needs no grammar, so that nothing that a
grammar misreads can pass for simple. The rest is read by tree-sitter, and says so where it cannot be sure.
"""

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handrail.model.limits import Limits
from handrail.ops.shell.evaluation import evaluated, settled, value_of
from handrail.ops.shell.first_words import first_words
from handrail.ops.shell.program_kinds import takes_code
from handrail.ops.shell.shell_builtins import assigned_name
from handrail.ops.shell.started import Argv
from handrail.ops.shell.wrappers import is_followed, started_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Language, Node, Parser

_LAYERS = 8
"""How many scripts within scripts, and programs that start programs, are followed."""

# A backslash before the end of a single-quoted string is read in two ways (fish), so is an unquoted `!`.
_PIECE = re.compile(
    r"""'((?:[^'\\]|\\(?!['\\]))*)'|"((?:[^"\\$`!]|\\[^\n!])*)"|\\([^\n])|(\\\n)"""
    r"""|([A-Za-z0-9_@%+:,./^=\]{}~#-]|[^\x00-\x7f])"""
)
_DOUBLE_QUOTED_ESCAPE = re.compile(r'\\([$`"\\])')
_BLANKS = re.compile(r"(?:[ \t]|\\\n)*")
# The grammar reads two words where the shell joins two lines within one.
_JOINED = re.compile(r"[^ \t\n]\\\n[^ \t\n]")
# The grammar takes these for blanks; the shell makes them part of a word.
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
"""Setting these changes what a name means, or what the shell runs beside the commands."""
_INTEGERS = frozenset({"BASHPID", "EPOCHSECONDS", "HISTCMD", "LINENO", "OPTIND", "RANDOM", "SECONDS", "SRANDOM"})
"""The shell takes what these are set to for an expression."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    commands: tuple[Argv, ...] = ()
    """Every simple command, also those that another one starts. None is a word that only running it would tell."""
    programs: tuple[str, ...] = ()
    """The first words of the commands as they are written, each once."""
    assigns: tuple[str, ...] = ()
    """The variables that it sets; some, such as PATH, change what a program's name means."""
    redirects: bool = False
    unknown: bool = False
    """It may run programs that are not named here."""
    simple: tuple[str, ...] | None = None
    """The argv, if it is one command with nothing but literal words."""
    code: bool = False
    """One of its programs is given code, or a program to run, in a way that is not followed here."""
    texts: tuple[str, ...] = field(default=(), compare=False)
    """Values of variables and here-documents, which a program may take for code."""


@dataclass
class _Findings:
    commands: list[Argv] = field(default_factory=list)
    assigns: list[str] = field(default_factory=list)
    redirects: bool = False
    unknown: bool = False
    code: bool = False
    values: dict[str, list[str | None]] = field(default_factory=dict)
    """What each variable is set to; None where it cannot be told."""
    evaluated: set[str] = field(default_factory=lambda: set(_INTEGERS))
    bodies: list[str] = field(default_factory=list)

    def set(self, name: str, value: str | None) -> None:
        self.values.setdefault(name, []).append(value)

    @property
    def texts(self) -> tuple[str, ...]:
        return (*(value for values in self.values.values() for value in values if value), *self.bodies)


def parse_command(text: str, longest: int = Limits().command_chars) -> CommandLine:
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
    """The words of one command without operator, redirection, assignment or expansion; None if it is not one."""
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
    joined = first_word.replace("\\\n", "")
    return "=" in joined or joined in _RESERVED


def _end(pattern: re.Pattern[str], text: str, i: int) -> int:
    match = pattern.match(text, i)
    return match.end() if match else i


def _plain_word(text: str, i: int) -> tuple[int, str | None]:
    """Where the word at `i` ends, and its value if every shell reads it as it stands."""
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
            _note_values(node, findings)
        elif kind in _REDIRECTS:
            findings.redirects = True
            findings.bodies += [_text(node)] if kind != "file_redirect" else []
    misread = _JOINED.search(script) or _NO_BLANKS.search(script)
    found = evaluated(script)
    findings.evaluated |= found.names
    for name in found.sets:
        findings.set(name, None)
    findings.unknown |= root.has_error or bool(misread) or found.unsure or not _second_opinion(script, findings)


def _note_values(node: "Node", findings: _Findings) -> None:
    """What an assignment, or a loop, sets its variable to."""
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
    """Its words; of an assignment whose value is not literal, only the name."""
    words: list[str | None] = [_text(node.children[0])]
    for child in node.children[1:]:
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


def _second_opinion(script: str, findings: _Findings) -> bool:
    """Whether the grammar saw all that runs. There is none on what stands inside substitutions."""
    first = first_words(script)
    if first is None:
        return False
    findings.assigns += first.assigns
    findings.redirects |= first.redirects
    seen = {argv[0] for argv in findings.commands}
    return all((word if word == "[" else _plain_word(word, 0)[1]) in seen for word in first.words)


def _follow(argv: Argv, findings: _Findings) -> "Iterator[str]":
    """Note the command and those that it starts, layer by layer; yields the scripts that a shell would run."""
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
    """In the order of the text, without recursion: a hostile command can be nested as deep as it is long."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def _argv(command: "Node") -> Argv:
    words: list[str | None] = []
    for child in command.children:
        if child.type == "variable_assignment" or child.type in _REDIRECTS:
            continue
        words.append(_literal(_text(child)))
    return tuple(words) or (None,)


def _literal(text: str) -> str | None:
    """The value of a word that every shell reads as it stands."""
    end, word = _plain_word(text, 0)
    return word if end == len(text) else None


def _text(node: "Node") -> str:
    return (node.text or b"").decode(errors="surrogatepass")


def _parser() -> "Parser":
    from tree_sitter import Parser  # noqa: PLC0415  heavy: at first use

    return Parser(_language())


@functools.cache
def _language() -> "Language":
    import tree_sitter_bash  # noqa: PLC0415  heavy: at first use
    from tree_sitter import Language  # noqa: PLC0415  the same

    return Language(tree_sitter_bash.language())
