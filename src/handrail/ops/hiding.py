"""Hiding what looks like a secret.

No pattern asks for anything behind a run of characters that may be long: a match that has begun well never fails, so
that the time grows with the text and not with its square.
"""

import re
from typing import NamedTuple

HIDDEN = "[hidden]"
_NAME = (
    r"(?:api[_-]?key|(?:access|account|encryption|private|secret|signing)[_-]?key|token|secret|passwor[dt]|passwd"
    r"|passphrase|(?<=[_-])pwd|credentials?|authorization)"
)
_OPENED = r"(?:(?P<escaped>\\{1,3}[\"'])|(?P<double>\")|(?P<single>')|)"
_VALUE = (
    r"(?(escaped)[^\"'\\\n]{4,}"
    r"|(?(double)(?=[^\"\n]{4})(?:[^\"\\\n]++|\\.)++"
    r"|(?(single)(?=[^'\n]{4})(?:[^'\\\n]++|\\.)++"
    r"|[^\s\"',;&]{6,})))"
)
_BEFORE = r"(?:\\{0,3}[\"'])?\s*+[:=]>?\s*+"
_SCHEME = r"(?:(?:basic|bearer|digest|token)\s++)?"
_BLOCK = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"


class _Kind(NamedTuple):
    hints: tuple[str, ...]
    """One of these is in every text that the pattern finds something in, and they are found fifty times as fast."""
    pattern: re.Pattern[str]
    """Its group, where it has one called `kept`, stays to be seen."""

    def may_be_in(self, lowered: str) -> bool:
        return any(map(lowered.__contains__, self.hints))


_KINDS = (
    _Kind(("private key",), re.compile(rf"-----BEGIN {_BLOCK}(?s:.*?)(?:-----END {_BLOCK}|\Z)")),
    _Kind(("://",), re.compile(r"(?P<kept>://[^\s/:@\"']{0,256}:)[^\s/@\"']++(?=@)")),
    _Kind(
        (
            *("sk-", "sk_", "rk_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "glpat-", "xox"),
            *("npm_", "pypi-", "hf_"),
        ),
        re.compile(
            r"(?i)\b(?:sk-[\w-]{16,}|[rs]k_(?:live|test)_\w{16,}|gh[oprsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
            r"|xox[abeprs]-[\w-]{10,}|npm_\w{30,}|pypi-[\w-]{30,}|hf_\w{30,})"
        ),
    ),
    _Kind(("akia", "asia", "aiza"), re.compile(r"(?i)\b(?:A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,})")),
    _Kind(("eyj",), re.compile(r"\beyJ[\w-]{10,}+(?:\.[\w-]++)*+")),
    _Kind(("bearer",), re.compile(r"(?i)(?P<kept>\bbearer\s++)[\w.~+/=-]{12,}")),
    _Kind(
        ("key", "token", "secret", "passw", "passp", "pwd", "credential", "authorization"),
        re.compile(rf"(?i)(?P<kept>{_NAME}{_BEFORE}{_OPENED}{_SCHEME}){_VALUE}"),
    ),
)
_LONGEST_NAME = 100
_DOTS = 2
"""A JSON web token has as many; one that was cut off may have fewer."""
_is_named = re.compile(rf"(?i).*{_NAME}").fullmatch


def may_hold_secret(text: str) -> bool:
    lowered = text.lower()
    return any(kind.may_be_in(lowered) for kind in _KINDS)


def hide_secrets(text: str) -> str:
    lowered = text.lower()
    for kind in _KINDS:
        if kind.may_be_in(lowered):
            text = kind.pattern.sub(_hidden, text)
    return text


def names_secret(name: str) -> bool:
    """Whether what goes by this name is one."""
    return len(name) <= _LONGEST_NAME and _is_named(name) is not None


def _hidden(match: re.Match[str]) -> str:
    if match[0].startswith("eyJ") and match[0].count(".") < _DOTS and match.end() < len(match.string):
        return match[0]  # some other JSON in base 64
    return f"{match.groupdict().get('kept') or ''}{HIDDEN}"
