"""Scores how relevant a file is to a few words. It needs no index: names, counts and some lines are enough.

A word that occurs in fewer files counts more. A word in a name counts more than in the text, and a whole word counts
more than a part of a word; `camelCase` and `snake_case` are several words. More lines with a word count more, but each
further line adds less.
"""

import math
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

_RUN = re.compile(r"\d+|[^\W\d_]+")
_TOKEN = re.compile(r"\w+")
_PART = 0.4
_NAME, _NAME_PART, _DIRECTORY, _DIRECTORY_PART = 10.0, 6.0, 4.0, 3.0


def words_of(text: str) -> list[str]:
    """Return the words of a text or an identifier, in lower case."""
    return [word.lower() for run in _RUN.findall(text) for word in _camel_parts(run)]


def _camel_parts(run: str) -> list[str]:
    """Split `HTTPResponse` into `HTTP` and `Response`: a capital next to a small letter starts a word."""
    if run.islower() or run.isupper() or run.isdigit():
        return [run]
    later = [
        at
        for at in range(1, len(run))
        if run[at].isupper() and (run[at - 1].islower() or run[at + 1 : at + 2].islower())
    ]
    return [run[start:end] for start, end in pairwise([0, *later, len(run)])]


def terms_of(query: str, at_most: int) -> tuple[str, ...]:
    """Return the terms to search for: each identifier of the query, and each of its words."""
    terms: list[str] = []
    for token in _TOKEN.findall(query):
        words = words_of(token)
        terms += [token.lower(), *words] if len(words) > 1 else words
    if not terms and query.strip():
        terms = [query.strip().lower()]
    return tuple(dict.fromkeys(terms))[:at_most]


def weights(terms: Iterable[str], counts: dict[str, int], files: int) -> dict[str, float]:
    """Return the weight of each term. `counts` are the numbers of files that contain it, `files` the number of all."""
    return {term: math.log(1 + (files + 1) / (counts[term] + 0.5)) for term in terms}


class Snippet(NamedTuple):
    """Holds one line of a file that contains a term."""

    line: int
    content: str


def name_score(path: str, weight: dict[str, float]) -> float:
    """Score the name and the directory of a file."""
    directory, _, name = path.rpartition("/")
    score = 0.0
    for term, worth in weight.items():
        if term in name.lower():
            score += worth * (_NAME if _has_word(name, term) else _NAME_PART)
        elif term in directory.lower():
            score += worth * (_DIRECTORY if _has_word(directory, term) else _DIRECTORY_PART)
    return score


def body_score(lines: dict[str, int], whole: set[str], weight: dict[str, float]) -> float:
    """Score the text of a file. `lines` counts the lines with each term; `whole` are the terms that occur as words."""
    return sum(
        weight[term] * count / (count + 2) * (1.0 if term in whole else _PART) for term, count in lines.items() if count
    )


def whole_terms(snippets: Iterable[Snippet], terms: Iterable[str]) -> set[str]:
    """Return the terms that occur as whole words in the snippets."""
    left = set(terms)
    for snippet in snippets:
        left -= {term for term in left if _has_word(snippet.content, term)}
    return set(terms) - left


def best_snippet(snippets: Iterable[Snippet], weight: dict[str, float]) -> Snippet | None:
    """Return the line with the highest score; of equal ones the first. None if there are no lines."""
    return max(snippets, key=lambda snippet: (_line_score(snippet.content, weight), -snippet.line), default=None)


def _line_score(content: str, weight: dict[str, float]) -> float:
    lower = content.lower()
    return sum(worth * (1.0 if _has_word(content, term) else _PART) for term, worth in weight.items() if term in lower)


def _has_word(text: str, term: str) -> bool:
    if term not in text.lower():
        return False
    return term in words_of(text) or term in map(str.lower, _TOKEN.findall(text))
