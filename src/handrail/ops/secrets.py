"""Hides text that looks like a secret.

No pattern requires anything after a run of characters that may be long. So a match that has begun never fails late,
and the time grows linearly with the text, not with its square.
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
    r"|(?(double)(?=[^\"\n]{4})(?>[^\"\\\n]++|\\.)++"
    r"|(?(single)(?=[^'\n]{4})(?>[^'\\\n]++|\\.)++"
    r"|[^\s\"',;&]{6,})))"
)
_BEFORE = r"(?:\\{0,3}[\"'])?\s*+[:=]>?\s*+"
_SCHEME = r"(?:(?:basic|bearer|digest|token)\s++)?"
_BLOCK = r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"


class _Kind(NamedTuple):
    """Describes one kind of secret."""

    hints: tuple[str, ...]
    """Every text in which the pattern matches contains one of these; the search for them is fifty times as fast."""
    pattern: str
    """The regular expression of the secret; its group `kept`, if any, stays visible."""

    def may_be_in(self, lowered: str) -> bool:
        return any(map(lowered.__contains__, self.hints))


# Most sessions see no secret: `re` compiles these patterns at their first use and caches them.
_KINDS = (
    _Kind(("private key",), rf"-----BEGIN {_BLOCK}(?s:.*?)(?:-----END {_BLOCK}|\Z)"),
    _Kind(("://",), r"(?P<kept>://[^\s/:@\"']{0,256}:)[^\s/@\"']++(?=@)"),
    _Kind(
        (
            *("sk-", "sk_", "rk_", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "glpat-", "xox"),
            *("npm_", "pypi-", "hf_"),
        ),
        (
            r"(?i)\b(?:sk-[\w-]{16,}|[rs]k_(?:live|test)_\w{16,}|gh[oprsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
            r"|xox[abeprs]-[\w-]{10,}|npm_\w{30,}|pypi-[\w-]{30,}|hf_\w{30,})"
        ),
    ),
    _Kind(("akia", "asia", "aiza"), r"(?i)\b(?:A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,})"),
    _Kind(("eyj",), r"\beyJ[\w-]{10,}+(?>\.[\w-]++)*+"),
    _Kind(("bearer",), r"(?i)(?P<kept>\bbearer\s++)[\w.~+/=-]{12,}"),
    _Kind(
        ("key", "token", "secret", "passw", "passp", "pwd", "credential", "authorization"),
        rf"(?i)(?P<kept>{_NAME}{_BEFORE}{_OPENED}{_SCHEME}){_VALUE}",
    ),
)
_LONGEST_NAME = 100
_DOTS = 2
"""The number of dots in a JSON web token; a truncated token may have fewer."""
_HINTS = tuple(hint for kind in _KINDS for hint in kind.hints)


def may_hold_secret(text: str) -> bool:
    """Return False only if the text certainly holds no secret."""
    return any(map(text.lower().__contains__, _HINTS))


def hide_secrets(text: str) -> str:
    """Replace every text that looks like a secret by `[hidden]`."""
    lowered = text.lower()
    for kind in _KINDS:
        if kind.may_be_in(lowered):
            text = re.sub(kind.pattern, _hidden, text)
    return text


def names_secret(name: str) -> bool:
    """Return whether a variable or field with this name holds a secret."""
    return len(name) <= _LONGEST_NAME and re.fullmatch(rf"(?i).*{_NAME}", name) is not None


def _hidden(match: re.Match[str]) -> str:
    if match[0].startswith("eyJ") and match[0].count(".") < _DOTS and match.end() < len(match.string):
        return match[0]  # base64 of other JSON, not a token
    return f"{match.groupdict().get('kept') or ''}{HIDDEN}"
