"""Finds the tool or the parameter that a model most likely meant by a name that does not exist."""

import re
from collections.abc import Mapping

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
# Words with one meaning, in the names of tools and of parameters.
_MEANINGS = {
    "read": "view cat open show",
    "edit": "replace patch update modify apply insert multiedit change substitute str",
    "write": "create save make new add",
    "run": "shell bash sh exec execute terminal command cmd powershell process script",
    "search": "grep ripgrep rg find query regex pattern",
    "list": "ls tree dir",
    "delete": "remove rm unlink",
    "fetch": "web webpage url browse download http curl",
    "path": "filename filepath directory workdir cwd folder absolute target",
    "text": "content contents body data",
    "old": "find before original",
    "after": "replacement with",
    "first": "start offset begin",
    "last": "end",
    "limit": "max count results num",
}
_MEANING = {word: meaning for meaning, words in _MEANINGS.items() for word in words.split()}
_RELATED = {"write": "edit", "edit": "write"}
_FAINT = frozenset(["file", "files", "line", "lines", "string", "tool", "functions", "in"])
_RARE = frozenset(["stdin", "last"])
"""Words that a name must share: a tool for a special case is not the nearest one to a general name."""
_EXACT, _SAME_MEANING, _NEARLY, _FAINTLY, _UNASKED = 2.0, 1.5, 1.0, 0.3, 0.25
_ENOUGH = 0.7


def nearest_name(name: str, known: Mapping[str, str]) -> str | None:
    """Return the known name that fits best; None if none is near. The values of `known` are descriptions."""
    from difflib import get_close_matches  # noqa: PLC0415  only when something is wrong

    if spelled := get_close_matches(name, known, 1, 0.85):
        return spelled[0]
    wanted = _words(name)
    scores = {each: _score(wanted, _words(each), _words(about)) for each, about in known.items()}
    best = max(scores, key=lambda each: scores[each], default="")
    if best and scores[best] >= _ENOUGH:
        return best
    return next(iter(get_close_matches(name, known, 1)), None)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _score(wanted: set[str], found: set[str], described: set[str]) -> float:
    """Return how well the words of a name fit: equal words count most, then words of one or of a related meaning."""
    if (found & _RARE) - wanted:
        return 0.0
    asked, offered = _meanings(wanted), _meanings(found)
    related = asked | {_RELATED[meaning] for meaning in asked & _RELATED.keys()}
    score = -_UNASKED * sum(_MEANING.get(word, word) not in related for word in found - wanted - _FAINT)
    for word in wanted - _FAINT:
        meaning = _MEANING.get(word, word)
        if word in found:
            score += _EXACT
        elif meaning in offered:
            score += _SAME_MEANING
        elif _RELATED.get(meaning) in offered or word in described:
            score += _NEARLY
    return score + _FAINTLY * len(wanted & found & _FAINT)


def _meanings(words: set[str]) -> set[str]:
    return {_MEANING.get(word, word) for word in words - _FAINT}
