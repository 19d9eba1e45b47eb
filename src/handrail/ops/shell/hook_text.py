"""Finds the programs and files that the text of a hook names: an agent must not be able to write any of them."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from handrail.model.limits import Limits
from handrail.ops.shell.command_programs import parse_command
from handrail.ops.shell.started import Argv

_HOME = re.compile(r"(?<![\w/.~])~(?=/)")
_PLAIN_VALUE = re.compile(r"[\w./@%+:,-]+")
_PATH = re.compile(r"[\w./@%+:,~-]+")
_REDIRECTED = re.compile(r"(?:>>|>\||>|(?<!<)<(?!<))\s*[\"']?([\w./@%+:,~-]+)")
_INTERPRETERS = {
    re.compile(r"(?:ba|da|z|k|a)?sh|source|\."): "c",
    re.compile(r"python[\d.]*|pypy[\d.]*"): "cm",
    re.compile(r"node|nodejs|perl|ruby|php|lua|luajit|Rscript|julia"): "eEpr",
}
"""Programs that run a file, each with the letters of options that hold code instead."""
_MEANINGS = frozenset({"eval", "trap", "alias", "enable", "hash", "bind", "complete", "coproc", "function"})
"""Builtins that run a text later, or change what a name means."""
_STEERS = frozenset(
    {"PATH", "BASH_ENV", "ENV", "IFS", "CDPATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME"}
    | {"PYTHONSAFEPATH", "NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT"}
)
"""Variables that decide which code programs load."""
_RUNS_WORKSPACE = frozenset(
    {"ant", "bazel", "bun", "bunx", "bundle", "cargo", "cmake", "composer", "deno", "gmake", "gradle", "gradlew"}
    | {"invoke", "just", "make", "meson", "mix", "mvn", "mvnw", "ninja", "nox", "npm", "npx", "nx", "pnpm", "pnpx"}
    | {"poe", "pre-commit", "pytest", "rake", "sbt", "scons", "task", "tox", "turbo", "yarn", "yarnpkg"}
)
"""Programs that run what files in the current directory say."""


class HookText(NamedTuple):
    """Holds what the text of a hook shows."""

    programs: tuple[str, ...]
    files: tuple[str, ...]
    """Files that an interpreter would run, and targets of redirections."""
    words: tuple[str, ...]
    """Words that may be names of files."""
    runs_workspace: str = ""
    """A program that runs what files of the workspace say."""
    coded: tuple[str, ...] = ()
    """Interpreters of Python that get code or the name of a module: old ones import from the current directory."""
    clear: bool = True
    """False if a program is known only at run time."""


def read_hook(text: str, variables: Mapping[str, str]) -> HookText:
    """Return the programs and files that a text for bash names, with these variables put in."""
    known = _with_values(text, variables)
    line = parse_command(known, Limits().command_chars)
    programs = tuple(dict.fromkeys(each[0] for each in line.commands if each and each[0] is not None))
    runs = next((name for name in programs if _last_name(name) in _RUNS_WORKSPACE), "")
    scripts = {each: _script(each) for each in line.commands if each and each[0] is not None}
    named = [word for each in line.commands for word in each[1:] if word and not word.startswith("-")]
    paths = [word for word in _PATH.findall(known) if "/" in word or "." in word]
    words = tuple(dict.fromkeys([*named, *paths]))
    clear = bool(line.commands) and all(each and each[0] is not None for each in line.commands)
    clear &= "-" not in scripts.values() and _MEANINGS.isdisjoint(programs) and _STEERS.isdisjoint(line.assigns)
    files = (*filter(None, scripts.values()), *_REDIRECTED.findall(known))
    coded = tuple(each[0] for each, script in scripts.items() if script == "" and each[0] and _is_python(each[0]))
    return HookText(programs, files, words, runs, coded, clear)


def _with_values(text: str, variables: Mapping[str, str]) -> str:
    """Return the text with plain values in place of variables; a variable with an odd value stays."""
    plain = {name: value for name, value in variables.items() if _PLAIN_VALUE.fullmatch(value)}
    if "HOME" in plain:
        text = _HOME.sub(lambda _: plain["HOME"], text)
    for name, value in plain.items():
        text = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", value, text)  # a plain value has no backslash
    return text


def _script(command: Argv) -> str | None:
    """Return the file that an interpreter would run, or an empty text if it gets code; None for other programs.

    `-` stands for a program that the text does not show: on the input, or in a word that is known only at run time.
    """
    program, *words = command
    letters = next((each for name, each in _INTERPRETERS.items() if name.fullmatch(_last_name(program or ""))), None)
    if letters is None:
        return None
    for word, after in zip(words, [*words[1:], None], strict=True):
        if word is None:
            return "-"
        if word.startswith("-") and word[1:2] != "-" and not {*word}.isdisjoint(letters):
            return "-" if after is None else ""
        if not word.startswith("-"):
            return word
    return "-"


def _is_python(program: str) -> bool:
    return _last_name(program).startswith(("python", "pypy"))


def _last_name(program: str) -> str:
    return program.rpartition("/")[2] or program
