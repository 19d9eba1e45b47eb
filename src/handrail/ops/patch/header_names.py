"""Reads the names in the headers of a diff: quoted, with a prefix, with a time after them, or missing."""

import re
from typing import NamedTuple

from handrail.model.paths import unquote

_TIME = re.compile(rb"\s+(\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*|\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d.*)$")
_EPOCH = re.compile(rb"19(?:70-01-01|69-12-31)\b|\w{3} (?:Jan  ?1|Dec 31) .* 19(?:70|69)\b")
_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"')
_PREFIXES = {"a", "b", "c", "i", "o", "w", "1", "2"}


class Name(NamedTuple):
    """Holds the name of a file in a header."""

    text: str
    """The name; `""` for /dev/null."""
    epoch: bool = False
    """True if the time is the start of 1970, which `diff -N` writes for a file that does not exist."""


def read_name(raw: bytes) -> Name:
    """Read the text after `--- ` or `+++ `."""
    raw = raw.removesuffix(b"\r")
    quoted = _QUOTED.match(raw)
    if quoted:
        name, time = quoted[0], raw[quoted.end() :].strip()
    elif b"\t" in raw:
        name, _, time = raw.partition(b"\t")
    else:
        dated = _TIME.search(raw)
        name, time = (raw[: dated.start()], dated[1]) if dated else (raw.rstrip(), b"")
    text = _text(name)
    return Name("" if text == "/dev/null" else text, bool(_EPOCH.match(time)))


def read_path(raw: bytes) -> str:
    """Read a name that fills the rest of its line, as after `rename from `."""
    return _text(raw.removesuffix(b"\r"))


def read_pair(raw: bytes) -> tuple[str, str]:
    """Read the two names after `diff --git `. Unquoted names with spaces are split where both parts are the same."""
    raw = raw.removesuffix(b"\r")
    first = _QUOTED.match(raw)
    if first:
        return _text(first[0]), _text(raw[first.end() :].strip())
    if raw.endswith(b'"') and b' "' in raw:
        cut = raw.index(b' "')
        return _text(raw[:cut]), _text(raw[cut + 1 :])
    half = len(raw) // 2
    if raw[half : half + 1] == b" " and _tail(raw[:half]) == _tail(raw[half + 1 :]):
        return _text(raw[:half]), _text(raw[half + 1 :])
    old, _, new = raw.partition(b" ")
    return _text(old), _text(new)


def strip_prefixes(old: str, new: str) -> tuple[str, str]:
    """Remove git's `a/` and `b/` if both names have such a prefix; `""` stands for a missing name."""
    first, second = old.partition("/")[0], new.partition("/")[0]
    both = old and new and first != second and {first, second} <= _PREFIXES
    alone = (not old and second in ("a", "b")) or (not new and first in ("a", "b"))
    if ("/" in old or not old) and ("/" in new or not new) and (both or alone):
        return old.partition("/")[2], new.partition("/")[2]
    return old, new


def _tail(name: bytes) -> bytes:
    return name.partition(b"/")[2] or name


def _text(raw: bytes) -> str:
    return unquote(raw.decode(errors="surrogateescape"))
