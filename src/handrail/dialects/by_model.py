"""Chooses a dialect for a model by the family that its name belongs to."""

import warnings
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import NamedTuple

UNKNOWN = "context"
"""The dialect for a model of no known family: its tools explain themselves."""

FAMILIES = (
    ("claude*", "claude"),
    ("*codex*", "codex-2026"),
    ("gpt-5", "codex-2026"),
    ("gpt-5-*", "codex-2026"),
    ("gpt-[5-9]*", "openai"),
    ("o[1-9]*", "codex"),
    ("gpt-oss*", "codex-2026"),
    ("gpt*", "copilot"),
    ("gemini-[12]*", "gemini"),
    ("gemini*", "gemini-3"),
    ("antigravity*", "gemini-3"),
    ("qwen*", "gemini-3"),
    ("deepseek*", "claude-code"),
    ("glm*", "claude-code"),
    ("kimi*", "claude-code"),
    ("minimax*", "claude-code"),
)
"""Globs of model names, each with its dialect; the first that matches counts."""

_NONE: Mapping[str, str] = MappingProxyType({})


class DialectChoice(NamedTuple):
    """Names the dialect for a model, with a note for the user if the family of the model is unknown."""

    dialect: str
    note: str = ""


def choose_dialect(model: str, models: Mapping[str, str] = _NONE) -> DialectChoice:
    """Return the dialect for a model. `models` are globs and dialects of the user's own, which come first."""
    for glob, dialect in (*models.items(), *FAMILIES):
        if any(fnmatchcase(name, glob.lower()) for name in _names(model)):
            return DialectChoice(dialect)
    note = f"unknown model {model!r}: using the dialect {UNKNOWN}; the setting `models` can name another one"
    return DialectChoice(UNKNOWN, note)


def dialect_for(model: str, models: Mapping[str, str] = _NONE) -> str:
    """Return the name of the dialect that a model was trained on; warn if the model is unknown.

    Args:
        model: The name of the model, as an API or a router of models writes it: `claude-opus-5-5`,
            `openai:gpt-5.1`, `us.anthropic.claude-opus-5-5-v1:0`.
        models: Globs of model names, each with its dialect, which come before the built-in table.

    """
    choice = choose_dialect(model, models)
    if choice.note:
        warnings.warn(choice.note, stacklevel=2)
    return choice.dialect


def _names(model: str) -> Iterator[str]:
    """Yield a name in lower case, then its ends without one provider after the other: `a/b:c` gives `b:c` and `c`."""
    name = model.strip().lower()
    yield name
    for at, letter in enumerate(name):
        if letter in "/:.":
            yield name[at + 1 :]
