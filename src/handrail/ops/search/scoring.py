"""Relevance: how much a file has to do with a few words. No index: names, counts and some lines are enough.

A word counts the more the fewer files it is in. In a name it counts more than in the text, as a word of its own more
than as part of one; `camelCase` and `snake_case` are several words. Many lines with a word count more than few, with
less and less added.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

_RUN = re.compile(r"\d+|[^\W\d_]+")
_TOKEN = re.compile(r"\w+")
_PART = 0.4
_NAME, _NAME_PART, _DIRECTORY, _DIRECTORY_PART = 10.0, 6.0, 4.0, 3.0


def words_of(text: str) -> list[str]:
    """The words of a text or an identifier, in lower case."""
    return [word.lower() for run in _RUN.findall(text) for word in _camel_parts(run)]


def _camel_parts(run: str) -> list[str]:
    """`HTTPResponse` is `HTTP` and `Response`: a capital starts a word where a small letter stands beside it."""
    if run.islower() or run.isupper() or run.isdigit():
        return [run]
    later = [
        at
        for at in range(1, len(run))
        if run[at].isupper() and (run[at - 1].islower() or run[at + 1 : at + 2].islower())
    ]
    return [run[start:end] for start, end in pairwise([0, *later, len(run)])]


def terms_of(query: str, at_most: int) -> tuple[str, ...]:
    """What is looked for: each identifier of the query as it stands, and each of its words."""
    terms: list[str] = []
    for token in _TOKEN.findall(query):
        words = words_of(token)
        terms += [token.lower(), *words] if len(words) > 1 else words
    if not terms and query.strip():
        terms = [query.strip().lower()]
    return tuple(dict.fromkeys(terms))[:at_most]


def weights(terms: Iterable[str], counts: dict[str, int], files: int) -> dict[str, float]:
    """What each term is worth, by the number of files that it occurs in."""
    return {term: math.log(1 + (files + 1) / (counts[term] + 0.5)) for term in terms}


@dataclass(frozen=True, slots=True)
class Snippet:
    line: int
    content: str


def name_score(path: str, weight: dict[str, float]) -> float:
    directory, _, name = path.rpartition("/")
    score = 0.0
    for term, worth in weight.items():
        if term in name.lower():
            score += worth * (_NAME if _has_word(name, term) else _NAME_PART)
        elif term in directory.lower():
            score += worth * (_DIRECTORY if _has_word(directory, term) else _DIRECTORY_PART)
    return score


def body_score(lines: dict[str, int], whole: set[str], weight: dict[str, float]) -> float:
    """`lines`: how many hold each term; `whole`: the terms that stand somewhere as words of their own."""
    return sum(
        weight[term] * count / (count + 2) * (1.0 if term in whole else _PART) for term, count in lines.items() if count
    )


def whole_terms(snippets: Iterable[Snippet], terms: Iterable[str]) -> set[str]:
    left = set(terms)
    for snippet in snippets:
        left -= {term for term in left if _has_word(snippet.content, term)}
    return set(terms) - left


def best_snippet(snippets: Iterable[Snippet], weight: dict[str, float]) -> Snippet | None:
    """The line that says most; of equals the first."""
    return max(snippets, key=lambda snippet: (_line_score(snippet.content, weight), -snippet.line), default=None)


def _line_score(content: str, weight: dict[str, float]) -> float:
    lower = content.lower()
    return sum(worth * (1.0 if _has_word(content, term) else _PART) for term, worth in weight.items() if term in lower)


def _has_word(text: str, term: str) -> bool:
    if term not in text.lower():
        return False
    return term in words_of(text) or term in map(str.lower, _TOKEN.findall(text))
