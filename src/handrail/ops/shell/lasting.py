"""Tells whether a command may change the shell that runs it, so that words of later commands mean something else."""

import re

from handrail.ops.shell.command_programs import parse_command
from handrail.ops.shell.started import Argv

_HARMLESS_BUILTINS = frozenset(
    {"cd", "pushd", "popd", "dirs", "pwd", "echo", "printf", "true", "false", "test", "[", ":", "type", "times"}
    | {"kill", "exit", "logout"}
)
_BUILTINS = frozenset(
    {".", "alias", "bg", "bind", "break", "builtin", "caller", "command", "compgen", "complete", "compopt", "continue"}
    | {"declare", "disown", "enable", "eval", "exec", "export", "fc", "fg", "getopts", "hash", "help", "history"}
    | {"jobs", "let", "local", "mapfile", "read", "readarray", "readonly", "return", "set", "shift", "shopt"}
    | {"source", "suspend", "trap", "typeset", "ulimit", "umask", "unalias", "unset", "wait", "coproc", "function"}
)
# An expansion may assign: ${x:=y}, $((x = 1)), (( x = 1 )).
_ASSIGNS_IN_EXPANSION = re.compile(r"\$\{|\(\(|\$\[|\bfunction\b|\(\s*\)")


def may_last(text: str) -> bool:
    """Return False only if no later command of the same shell can notice that this one ran, except by files and cwd."""
    if _ASSIGNS_IN_EXPANSION.search(text):
        return True
    line = parse_command(text)
    return line.unknown or bool(line.assigns) or any(map(_lasts, line.commands)) or not line.commands


def is_builtin(program: str) -> bool:
    """Return whether bash runs a name itself, without a program file."""
    return program in _HARMLESS_BUILTINS or program in _BUILTINS or program == "[["


def _lasts(command: Argv) -> bool:
    program = command[0]
    if program is None:
        return True
    if program == "printf":
        return any(word is None or word.startswith("-v") for word in command[1:2])
    return program not in _HARMLESS_BUILTINS and program in _BUILTINS
